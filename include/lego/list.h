/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_LIST_H
#define LEGO_LIST_H

/* Circular doubly linked list; the head is a node that carries no element. No locking of its own.
 */

#include <lego/kernel.h>

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

#define LIST_HEAD_INIT(name)     \
	{                        \
		&(name), &(name) \
	}
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void list_init(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return READ_ONCE(head->next) == head;
}

static inline void list_insert_between(struct list_head *node, struct list_head *prev,
				       struct list_head *next)
{
	next->prev = node;
	node->next = next;
	node->prev = prev;
	WRITE_ONCE(prev->next, node);
}

static inline void list_add(struct list_head *node, struct list_head *head)
{
	list_insert_between(node, head, head->next);
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	list_insert_between(node, head->prev, head);
}

/* Removes a node. It becomes an empty list, so that a second deletion is harmless. */
static inline void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	WRITE_ONCE(node->prev->next, node->next);
	list_init(node);
}

/* Moves all nodes of a list to another one, which is empty. */
static inline void list_splice(struct list_head *from, struct list_head *to)
{
	list_add(to, from);
	list_del(from);
}

/* Moves all nodes of a list to the end of another one. */
static inline void list_append(struct list_head *from, struct list_head *to)
{
	from->next->prev = to->prev;
	WRITE_ONCE(to->prev->next, from->next);
	to->prev = from->prev;
	from->prev->next = to;
	list_init(from);
}

/*
 * A walk through a list that others change meanwhile. The walks through a list are in a list of
 * their own, with the same lock. New nodes at the tail are still reached.
 */
struct list_walk {
	struct list_head node;
	struct list_head *next; /* the node that is looked at next */
};

/* Removes a node as list_del(). The walks for which it comes next skip it. */
static inline void list_del_walked(struct list_head *node, const struct list_head *walks)
{
	const struct list_head *at;

	for (at = walks->next; at != walks; at = at->next) {
		struct list_walk *walk = container_of(at, struct list_walk, node);

		if (walk->next == node)
			walk->next = node->next;
	}
	list_del(node);
}

#define list_entry(ptr, type, member)	     container_of(ptr, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_last_entry(head, type, member)  list_entry((head)->prev, type, member)

#define list_next_entry(pos, member) list_entry((pos)->member.next, __typeof__(*(pos)), member)

#define list_for_each_entry(pos, head, member)                                               \
	for (pos = list_first_entry(head, __typeof__(*pos), member); &pos->member != (head); \
	     pos = list_next_entry(pos, member))

#define list_for_each_entry_safe(pos, tmp, head, member)             \
	for (pos = list_first_entry(head, __typeof__(*pos), member), \
	    tmp = list_next_entry(pos, member);                      \
	     &pos->member != (head); pos = tmp, tmp = list_next_entry(tmp, member))

#endif
