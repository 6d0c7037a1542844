/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FD_TREE_H
#define LEGO_FD_TREE_H

/*
 * A map from descriptors, or other small numbers, to pointers: a radix tree of nodes with 64 slots.
 * It grows by a level at the root, so nothing is ever copied, and every operation on one descriptor
 * takes at most FD_TREE_LEVELS steps. The first leaf is part of the tree: descriptors below 64 need
 * no other memory. A leaf stays until the tree is freed.
 *
 * The owner provides the lock. fd_tree_init() needs zeroed memory. Any context but NMI.
 */

#include <lego/kernel.h>

#define FD_TREE_BITS   6
#define FD_TREE_SLOTS  (1 << FD_TREE_BITS)
#define FD_TREE_LEVELS 4

struct fd_node {
	u64 full;  /* a bit for each slot: nothing is free there */
	u64 marks; /* in a leaf: a bit for each slot, with a meaning that the owner chooses */
	void *slots[FD_TREE_SLOTS];
};

struct fd_tree {
	struct fd_node *root;
	unsigned int shift;    /* fd >> shift is its slot in the root */
	unsigned int nr_nodes; /* those that were allocated */
	struct fd_node first;
};

void fd_tree_init(struct fd_tree *tree);
/* Frees the nodes, but not what the slots point to. */
void fd_tree_free(struct fd_tree *tree);

/* Returns the leaf of fd, or NULL. fd is not negative. */
static inline struct fd_node *fd_tree_leaf(const struct fd_tree *tree, int fd)
{
	struct fd_node *node = tree->root;
	unsigned int shift = tree->shift;

	if (fd < FD_TREE_SLOTS)
		return (struct fd_node *)&tree->first;
	if (fd >> shift >= FD_TREE_SLOTS)
		return NULL;
	for (; shift && node; shift -= FD_TREE_BITS)
		node = node->slots[fd >> shift & (FD_TREE_SLOTS - 1)];
	return node;
}

static inline void *fd_tree_get(const struct fd_tree *tree, int fd)
{
	const struct fd_node *leaf = fd_tree_leaf(tree, fd);

	return leaf ? leaf->slots[fd % FD_TREE_SLOTS] : NULL;
}

/* Returns the leaf of fd, which has at most 24 bits, or NULL: no memory. */
struct fd_node *fd_tree_add_leaf(struct fd_tree *tree, int fd);
static inline struct fd_node *fd_tree_make_leaf(struct fd_tree *tree, int fd)
{
	return fd_tree_leaf(tree, fd) ?: fd_tree_add_leaf(tree, fd);
}

/* Sets the slot of fd in its leaf. A value of NULL makes it free. */
void fd_tree_update_above(struct fd_tree *tree, int fd);
static inline void fd_tree_set(struct fd_tree *tree, struct fd_node *leaf, int fd, void *value)
{
	u64 old = leaf->full, bit = BIT(fd % FD_TREE_SLOTS);

	leaf->slots[fd % FD_TREE_SLOTS] = value;
	leaf->full = value ? old | bit : old & ~bit;
	if (tree->shift && (old == ~0ULL || leaf->full == ~0ULL))
		fd_tree_update_above(tree, fd);
}

/* Makes the leaf of fd a copy of the other tree's. False: no memory. */
bool fd_tree_copy_leaf(struct fd_tree *tree, const struct fd_tree *from, int fd);

/* Returns the first descriptor from fd on that is free, which may have no leaf yet. */
int fd_tree_search_free(const struct fd_tree *tree, int fd);
static inline int fd_tree_next_free(const struct fd_tree *tree, int fd)
{
	u64 clear = fd < FD_TREE_SLOTS ? ~tree->first.full >> fd : 0;

	return clear ? fd + __builtin_ctzll(clear) : fd_tree_search_free(tree, fd);
}
/* Returns the first one from fd on that is not free, or -1. */
int fd_tree_next(const struct fd_tree *tree, int fd);

#endif
