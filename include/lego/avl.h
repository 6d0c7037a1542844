/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_AVL_H
#define LEGO_AVL_H

/*
 * Balanced trees (AVL: the heights of two siblings differ by at most one). Nodes are members of
 * what they order; the caller searches for the place of a new one, holds a lock, and owns the
 * memory. The time of each call grows with the logarithm of the number of nodes.
 *
 * A tree may have a summary in each node, of the node's subtree: `summarize` makes it from the node
 * and the summaries of its children. NULL: no summaries.
 */

#include <lego/types.h>

struct avl_node {
	struct avl_node *parent, *child[2]; /* child[0] comes before the node */
	int height;
};

typedef void avl_summarize_fn(struct avl_node *node);

/* Adds a node below a parent that has no child on that side; NULL: the tree is empty. */
void avl_insert(struct avl_node **root, struct avl_node *node, struct avl_node *parent, bool after,
		avl_summarize_fn *summarize);
void avl_remove(struct avl_node **root, struct avl_node *node, avl_summarize_fn *summarize);

/* Return the first node of a tree, and the one after a node; NULL: none. */
struct avl_node *avl_first(struct avl_node *root);
struct avl_node *avl_next(struct avl_node *node);

#endif
