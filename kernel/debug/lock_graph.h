/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DEBUG_LOCK_GRAPH_H
#define DEBUG_LOCK_GRAPH_H

/* Which class of locks has been waited for with which held. All calls with interrupts off. */

#include <lego/lock_check.h>

#define LOCK_CLASS_IRQ 1 /* not a lock: what interrupts any code that has interrupts on */
#define MAX_CHAIN      12

/* Someone held from, and waited for to. */
struct lock_pair {
	u16 from, to;
	unsigned long from_ip, to_ip; /* where each was taken */
};

/* Pairs that lead from a pair's end back to its beginning. */
struct lock_chain {
	unsigned int nr;
	struct lock_pair pairs[MAX_CHAIN]; /* cut if there are more */
};

/* The class of a lock, or 0: the table is full, and that has been reported. */
unsigned int lock_class_of(struct lock_map *map);
const char *lock_class_place(unsigned int class);

/* Remember a pair. True when it is new and closes a circle; *chain is then the other way round. */
bool lock_graph_add(const struct lock_pair *pair, struct lock_chain *chain);

/* What the graph has no room for, NULL: nothing. Once. */
const char *lock_graph_overflow(void);

#endif
