// SPDX-License-Identifier: BSD-2-Clause
/*
 * A balanced tree (<lego/avl.h>). Each area stores a bound: no hole directly below an area of its
 * subtree is larger. The search for a free place enters only subtrees whose bound is large enough.
 * A hole that grows raises bounds. A hole that shrinks leaves them as they are: the search lowers
 * those that have misled it. So a program that maps and unmaps memory again and again changes no
 * bounds. A bound misleads only one search before it is lowered, so the time of a search is
 * logarithmic on average.
 *
 * A tree remembers, as place_above, the area above which the last search found no hole. The next
 * search for as much or more goes on there, and most often finds its place at once. A hole that
 * grows above the area moves place_above up again.
 *
 * Areas are also in a list. A new area becomes a leaf, below the area before it or the area after
 * it, so it needs no search from the root.
 */

#include "vma_tree.h"

#define AVL_NODE struct vma
#include <lego/avl.h>

static u64 gap_below(const struct vma *vma)
{
	return vma->start - (vma->prev ? vma->prev->end : MM_MIN_ADDR);
}

static u64 max_gap_of(const struct vma *vma)
{
	return vma ? vma->max_gap : 0;
}

/* Lowers the bound of an area as far as those of its children allow. */
static void set_max_gap(struct vma *vma)
{
	vma->max_gap =
		max(gap_below(vma), max(max_gap_of(vma->child[0]), max_gap_of(vma->child[1])));
}

/* After a rotation, the upper area has the same areas below it as the other one had before. */
static void set_rotated_gaps(struct vma *lower, struct vma *upper)
{
	upper->max_gap = lower->max_gap;
	set_max_gap(lower);
}

static void raise_bounds(struct vma *vma, u64 gap)
{
	for (; vma && vma->max_gap < gap; vma = vma->parent)
		vma->max_gap = gap;
}

/* Lets the next search see the hole below an area. NULL: that above the last one. */
static __always_inline void raise_place(struct vma_tree *tree, struct vma *vma)
{
	if (!vma || (tree->place_above && vma->start >= tree->place_above->start))
		tree->place_above = vma;
}

void vma_tree_raise_gap(struct vma_tree *tree, struct vma *vma)
{
	raise_place(tree, vma);
	if (vma)
		raise_bounds(vma, gap_below(vma));
}

/*
 * Returns the last area of a subtree with such a hole directly below it, or NULL. Lowers the bounds
 * that were too high.
 */
static struct vma *last_in_subtree(struct vma *root, u64 bytes)
{
	struct vma *vma = root;

	while (root->max_gap >= bytes) {
		if (max_gap_of(vma->child[1]) >= bytes) {
			vma = vma->child[1];
		} else if (gap_below(vma) >= bytes) {
			return vma;
		} else if (max_gap_of(vma->child[0]) >= bytes) {
			vma = vma->child[0];
		} else {
			set_max_gap(vma);
			vma = vma->parent; /* looks at its other candidates */
		}
	}
	return NULL;
}

/* Returns the last area up to this one with such a hole directly below it, or NULL. */
static struct vma *last_with_gap(struct vma *vma, u64 bytes)
{
	bool looked_at =
		false; /* vma and its greater side have been searched, or come after the first */

	for (; vma; vma = vma->parent) {
		const struct vma *parent = vma->parent;

		if (!looked_at) {
			struct vma *lower = vma->child[0];

			if (gap_below(vma) >= bytes)
				return vma;
			lower = lower ? last_in_subtree(lower, bytes) : NULL;
			if (lower)
				return lower;
		}
		looked_at = parent && parent->child[0] == vma;
	}
	return NULL;
}

u64 vma_tree_place(struct vma_tree *tree, u64 end, u64 bytes, struct vma **next)
{
	struct vma *above = tree->place_above, *below;
	u64 top;

	if (unlikely(!above || end != tree->place_end || bytes < tree->place_bytes)) {
		above = tree->place_above = vma_tree_find(tree, end - 1);
		tree->place_end = end;
		tree->place_bytes = bytes;
	}
	*next = above;
	below = above ? above->prev : tree->last;
	/* The area above may begin below end. */
	top = above ? min(end, above->start) : end;
	if (likely((below ? below->end : MM_MIN_ADDR) + bytes <= top))
		return top - bytes;
	if (below && below->end > end) { /* it was added after the search from which above is */
		tree->place_above = NULL;
		return vma_tree_place(tree, end, bytes, next);
	}
	*next = last_with_gap(below, bytes);
	if (bytes == tree->place_bytes)
		tree->place_above = *next;
	return *next ? (*next)->start - bytes : 0;
}

static void set_next(struct vma_tree *tree, struct vma *vma, struct vma *next)
{
	if (likely(vma))
		vma->next = next;
	else
		tree->first = next;
}

static void set_prev(struct vma_tree *tree, struct vma *vma, struct vma *prev)
{
	if (likely(vma))
		vma->prev = prev;
	else
		tree->last = prev;
}

void vma_tree_add(struct vma_tree *tree, struct vma *vma, struct vma *prev)
{
	struct vma *next = prev ? prev->next : tree->first, *changed;

	vma->prev = prev;
	vma->next = next;
	set_next(tree, prev, vma);
	set_prev(tree, next, vma);
	vma->max_gap = gap_below(vma);
	if (next && !next->child[0]) {
		/* The bounds of next and above are right: the hole below it was as large. */
		changed = avl_link(&tree->root, vma, next, false);
	} else {
		changed = avl_link(&tree->root, vma, prev, true);
		raise_bounds(prev, vma->max_gap);
	}
	avl_rebalance(&tree->root, changed, set_rotated_gaps);
}

void vma_tree_append(struct vma_tree *tree, struct vma *vma)
{
	vma->prev = tree->last;
	vma->next = NULL;
	set_next(tree, tree->last, vma);
	tree->last = vma;
}

/* Makes a subtree of the next nr areas, and sets *next to the area after them. */
static struct vma *build_subtree(struct vma **next, unsigned int nr)
{
	struct vma *vma, *left;

	if (!nr)
		return NULL;
	left = build_subtree(next, nr / 2); /* as deep as the tree: at most 32 calls */
	vma = *next;
	*next = vma->next;
	avl_set_child(vma, 0, left);
	avl_set_child(vma, 1, build_subtree(next, nr - nr / 2 - 1));
	avl_set_height(vma);
	set_max_gap(vma);
	return vma;
}

void vma_tree_build(struct vma_tree *tree, unsigned int nr)
{
	struct vma *next = tree->first;

	tree->root = build_subtree(&next, nr);
	if (tree->root)
		tree->root->parent = NULL;
}

void vma_tree_remove(struct vma_tree *tree, struct vma *vma)
{
	struct vma *prev = vma->prev, *next = vma->next, *changed;

	raise_place(tree, next);
	set_next(tree, prev, next);
	set_prev(tree, next, prev);
	if (vma->child[0] && vma->child[1])
		next->max_gap = vma->max_gap; /* it takes the place of vma */
	changed = avl_unlink(&tree->root, vma, next);
	if (next)
		raise_bounds(next, gap_below(next)); /* first: rotations require right bounds */
	avl_rebalance(&tree->root, changed, set_rotated_gaps);
}
