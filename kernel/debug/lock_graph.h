/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DEBUG_LOCK_GRAPH_H
#define DEBUG_LOCK_GRAPH_H

/*
 * The pairs of lock classes of which one has been waited for while the other was held. All calls
 * with interrupts off.
 */

#include <lego/lock_check.h>

#define LOCK_CLASS_IRQ 1 /* not a lock: stands for interrupts of any code that has them on */
#define MAX_CHAIN      12

/* A task or CPU held from and waited for to. */
struct lock_pair {
	u16 from, to;
	unsigned long from_ip, to_ip; /* where each was taken */
};

/* The pairs of the path from a pair's end back to its beginning. */
struct lock_chain {
	unsigned int nr;
	struct lock_pair pairs[MAX_CHAIN]; /* truncated if there are more */
};

/* Returns the class of a lock, or 0: the table is full, which has been reported. */
unsigned int lock_class_of(struct lock_map *map);
const char *lock_class_place(unsigned int class);

/* Adds a pair. Returns true if it is new and closes a cycle; *chain is then the path back. */
bool lock_graph_add(const struct lock_pair *pair, struct lock_chain *chain);

/*
 * Returns the name of the table that is full, once; NULL: none.
 *
 */
const char *lock_graph_overflow(void);

#endif
