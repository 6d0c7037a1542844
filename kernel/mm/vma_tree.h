/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VMA_TREE_H
#define VMA_TREE_H

/*
 * A tree of areas by address, which do not overlap. The caller holds mm->lock, for writing if areas
 * or bounds of holes change, and owns the areas: nothing is allocated here. For vma_tree_find(),
 * which looks at no bounds, pt_lock is enough. The time of each call grows with the
 * logarithm of their number, that of vma_tree_place() on average.
 */

#include <lego/vma.h>

/*
 * Returns the first area that ends after addr (the area that contains addr, if there is one), or
 * NULL.
 */
static inline struct vma *vma_tree_find(const struct vma_tree *tree, u64 addr)
{
	struct vma *vma = tree->root, *found = NULL;

	while (vma) {
		if (vma->end <= addr) {
			vma = vma->child[1];
		} else {
			found = vma;
			vma = vma->child[0];
		}
	}
	return found;
}

/*
 * Returns the highest free place of that size that ends at or below end, and sets *next to the area
 * after it (NULL: it is the last); 0: there is none. The caller holds the lock for writing.
 */
u64 vma_tree_place(struct vma_tree *tree, u64 end, u64 bytes, struct vma **next);

/* Adds an area directly after prev; NULL: before all others. */
void vma_tree_add(struct vma_tree *tree, struct vma *vma, struct vma *prev);

/*
 * Make a tree of many areas in linear time: append each one after all others, then build the tree.
 * nr is their number. Until then, only the list is valid.
 */
void vma_tree_append(struct vma_tree *tree, struct vma *vma);
void vma_tree_build(struct vma_tree *tree, unsigned int nr);

void vma_tree_remove(struct vma_tree *tree, struct vma *vma);

/* Must be called after the hole below an area has grown. NULL: no area. */
void vma_tree_raise_gap(struct vma_tree *tree, struct vma *vma);

/*
 * For assertions. Returns true if links, order, heights, bounds of holes and the number of areas
 * are right.
 */
bool vma_tree_is_sound(const struct vma_tree *tree, unsigned int nr);

#endif
