/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Balanced trees (AVL: the heights of two siblings differ by at most one, so no path is longer than
 * 1.44 times the logarithm of the number of nodes). A source file defines AVL_NODE, the type of its
 * nodes, and includes this once. The type has the members `parent`, `child[2]`, of which child[0]
 * comes before the node, and `height`. The caller searches for the place of a new node, holds a
 * lock, and owns the memory.
 *
 * Nodes may have a summary of their subtree. Then the caller links or unlinks a node, corrects the
 * summaries from its parent up to the root, and rebalances. A rotation gives two nodes other
 * subtrees, and calls `rotated` for their summaries: `lower` first, which has become a child of
 * `upper`.
 */

#include <lego/kernel.h>

typedef void avl_rotated_fn(AVL_NODE *lower, AVL_NODE *upper);

static inline int avl_height(const AVL_NODE *node)
{
	return node ? node->height : 0;
}

/* Updates a node's height. Returns how much higher the side of later nodes is. */
static inline int avl_set_height(AVL_NODE *node)
{
	int before = avl_height(node->child[0]), after = avl_height(node->child[1]);

	node->height = 1 + max(before, after);
	return after - before;
}

/* Replaces old by new, or by nothing, below its parent. */
static inline void avl_replace(AVL_NODE **root, const AVL_NODE *old, AVL_NODE *new)
{
	AVL_NODE *parent = old->parent;

	if (parent)
		parent->child[parent->child[1] == old] = new;
	else
		*root = new;
	if (new)
		new->parent = parent;
}

static inline void avl_set_child(AVL_NODE *node, int side, AVL_NODE *child)
{
	node->child[side] = child;
	if (child)
		child->parent = node;
}

/* Puts the child on that side in the place of its parent, which becomes its child. */
static __always_inline AVL_NODE *avl_rotate(AVL_NODE **root, AVL_NODE *node, int side,
					    avl_rotated_fn *rotated)
{
	AVL_NODE *child = node->child[side];

	avl_replace(root, node, child);
	avl_set_child(node, side, child->child[!side]);
	avl_set_child(child, !side, node);
	avl_set_height(node);
	avl_set_height(child);
	if (rotated)
		rotated(node, child);
	return child;
}

/* Lowers the side that is too high by one. Returns the new root of the subtree. */
static __always_inline AVL_NODE *avl_lower(AVL_NODE **root, AVL_NODE *node, int side,
					   avl_rotated_fn *rotated)
{
	AVL_NODE *child = node->child[side];

	if (avl_height(child->child[side]) < avl_height(child->child[!side]))
		avl_rotate(root, child, !side, rotated);
	return avl_rotate(root, node, side, rotated);
}

/*
 * Updates heights from a node upwards, as long as they change. NULL: nothing to do. Only leaves are
 * below a node of height 2, so it is as high as before if it still has one.
 */
static __always_inline void avl_rebalance(AVL_NODE **root, AVL_NODE *node, avl_rotated_fn *rotated)
{
	if (node && node->height == 2 && (node->child[0] || node->child[1]))
		return;
	for (; node; node = node->parent) {
		int height = node->height, slope = avl_set_height(node);

		if (slope < -1 || slope > 1)
			node = avl_lower(root, node, slope > 0, rotated);
		if (node->height == height)
			return;
	}
}

/*
 * Adds a node below a parent that has no child on that side; NULL: the tree is empty. Returns the
 * lowest node whose height changes, or NULL. Rebalance from there.
 */
static inline AVL_NODE *avl_link(AVL_NODE **root, AVL_NODE *node, AVL_NODE *parent, bool after)
{
	node->parent = parent;
	node->child[0] = node->child[1] = NULL;
	node->height = 1;
	*(parent ? &parent->child[after] : root) = node;
	return parent && parent->height == 1 ? parent : NULL;
}

/*
 * Removes a node. If it has two children, the next node takes its place. Returns the lowest node
 * whose subtree has changed, or NULL. Rebalance from there.
 */
static inline AVL_NODE *avl_unlink(AVL_NODE **root, AVL_NODE *node, AVL_NODE *next)
{
	AVL_NODE *changed = node->parent;

	if (!node->child[0] || !node->child[1]) {
		avl_replace(root, node, node->child[0] ?: node->child[1]);
		return changed;
	}
	/* The next one is below the node and has no child before it. */
	changed = next->parent == node ? next : next->parent;
	avl_replace(root, next, next->child[1]);
	avl_replace(root, node, next);
	avl_set_child(next, 0, node->child[0]);
	avl_set_child(next, 1, node->child[1]);
	next->height = node->height;
	return changed;
}
