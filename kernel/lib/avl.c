// SPDX-License-Identifier: BSD-2-Clause
/* Balanced trees: see avl.h. */

#include <lego/avl.h>

#include <lego/kernel.h>

static int height_of(const struct avl_node *node)
{
	return node ? node->height : 0;
}

/* Replaces old by new, or by nothing, below its parent. */
static void replace(struct avl_node **root, const struct avl_node *old, struct avl_node *new)
{
	struct avl_node *parent = old->parent;

	if (parent)
		parent->child[parent->child[1] == old] = new;
	else
		*root = new;
	if (new)
		new->parent = parent;
}

static void set_child(struct avl_node *node, int side, struct avl_node *child)
{
	node->child[side] = child;
	if (child)
		child->parent = node;
}

/* Updates what a node knows of its subtree. */
static void update(struct avl_node *node, avl_summarize_fn *summarize)
{
	node->height = 1 + max(height_of(node->child[0]), height_of(node->child[1]));
	if (summarize)
		summarize(node);
}

/* Puts the child on that side in the place of its parent, which becomes its child. */
static struct avl_node *rotate(struct avl_node **root, struct avl_node *node, int side,
			       avl_summarize_fn *summarize)
{
	struct avl_node *child = node->child[side];

	replace(root, node, child);
	set_child(node, side, child->child[!side]);
	set_child(child, !side, node);
	update(node, summarize);
	update(child, summarize);
	return child;
}

/* Updates a node whose subtree has changed, and balances it. Returns the root of the subtree. */
static struct avl_node *balance(struct avl_node **root, struct avl_node *node,
				avl_summarize_fn *summarize)
{
	int slope = height_of(node->child[1]) - height_of(node->child[0]), side = slope > 0;
	struct avl_node *child = node->child[side];

	if (slope >= -1 && slope <= 1) {
		update(node, summarize);
		return node;
	}
	if (height_of(child->child[side]) < height_of(child->child[!side]))
		rotate(root, child, !side, summarize);
	return rotate(root, node, side, summarize);
}

static void balance_up(struct avl_node **root, struct avl_node *node, avl_summarize_fn *summarize)
{
	for (; node; node = node->parent)
		node = balance(root, node, summarize);
}

void avl_insert(struct avl_node **root, struct avl_node *node, struct avl_node *parent, bool after,
		avl_summarize_fn *summarize)
{
	*node = (struct avl_node){ .parent = parent };
	*(parent ? &parent->child[after] : root) = node;
	balance_up(root, node, summarize);
}

void avl_remove(struct avl_node **root, struct avl_node *node, avl_summarize_fn *summarize)
{
	struct avl_node *changed = node->parent, *next;

	if (node->child[0] && node->child[1]) {
		/* The next one is below the node and has no child before it. It takes its place. */
		next = avl_next(node);
		changed = next->parent == node ? next : next->parent;
		replace(root, next, next->child[1]);
		replace(root, node, next);
		set_child(next, 0, node->child[0]);
		set_child(next, 1, node->child[1]);
	} else {
		replace(root, node, node->child[0] ?: node->child[1]);
	}
	balance_up(root, changed, summarize);
}

static struct avl_node *first_below(struct avl_node *node)
{
	while (node->child[0])
		node = node->child[0];
	return node;
}

struct avl_node *avl_first(struct avl_node *root)
{
	return root ? first_below(root) : NULL;
}

struct avl_node *avl_next(struct avl_node *node)
{
	if (node->child[1])
		return first_below(node->child[1]);
	while (node->parent && node->parent->child[1] == node)
		node = node->parent;
	return node->parent;
}
