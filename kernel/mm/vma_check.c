// SPDX-License-Identifier: BSD-2-Clause
/* Checks the tree of areas independently: by each area's place in the list and in the tree. */

#include "vma_tree.h"

#include <lego/kernel.h>

static const struct vma *end_of(const struct vma *vma, int side)
{
	while (vma->child[side])
		vma = vma->child[side];
	return vma;
}

/* Returns the next area, found by the tree alone. */
static const struct vma *next_in_tree(const struct vma *vma)
{
	if (vma->child[1])
		return end_of(vma->child[1], 0);
	while (vma->parent && vma->parent->child[1] == vma)
		vma = vma->parent;
	return vma->parent;
}

/* Returns true if vma_tree_place() would find no hole above the area where it begins. */
static bool place_is_sound(const struct vma_tree *tree)
{
	const struct vma *vma = tree->place_above;

	if (!vma)
		return true;
	for (; vma->next; vma = vma->next) {
		if (vma->end + tree->place_bytes <= min(vma->next->start, tree->place_end))
			return false;
	}
	return vma == tree->last && vma->end + tree->place_bytes > tree->place_end;
}

static bool area_is_sound(const struct vma_tree *tree, const struct vma *vma, u64 below)
{
	u64 max_gap = vma->start - below;
	int height[2] = { 0, 0 };

	if (vma->start < below || vma->start >= vma->end)
		return false;
	for (int side = 0; side < 2; side++) {
		const struct vma *child = vma->child[side];

		if (!child)
			continue;
		if (child->parent != vma)
			return false;
		height[side] = child->height;
		max_gap = max(max_gap, child->max_gap);
	}
	return (vma->parent ? vma->parent->child[0] == vma || vma->parent->child[1] == vma :
			      tree->root == vma) &&
	       vma->height == 1 + max(height[0], height[1]) && height[0] - height[1] <= 1 &&
	       height[1] - height[0] <= 1 && vma->max_gap >= max_gap &&
	       next_in_tree(vma) == vma->next;
}

bool vma_tree_is_sound(const struct vma_tree *tree, unsigned int nr)
{
	const struct vma *prev = NULL;
	u64 below = MM_MIN_ADDR;

	if (tree->root && end_of(tree->root, 0) != tree->first)
		return false;
	for (const struct vma *vma = tree->first; vma; vma = vma->next) {
		if (!nr-- || vma->prev != prev || !area_is_sound(tree, vma, below))
			return false;
		prev = vma;
		below = vma->end;
	}
	return !nr && prev == tree->last && !tree->root == !prev && place_is_sound(tree);
}
