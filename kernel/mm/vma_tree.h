/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VMA_TREE_H
#define VMA_TREE_H

/*
 * Areas by address, none over another. The caller holds mm->lock, for writing where areas change,
 * and owns the areas: nothing is allocated here. Each call takes a time that grows with the
 * logarithm of their number.
 */

#include <lego/vma.h>

/* Returns the first area that ends behind addr: the one that holds it, if any does. Or NULL. */
struct vma *vma_tree_find(const struct vma_tree *tree, u64 addr);

/* Returns the highest free place of that size that ends at or below end; 0: there is none. */
u64 vma_tree_place(const struct vma_tree *tree, u64 end, u64 bytes);

/* Adds an area right behind prev; NULL: before all others. */
void vma_tree_add(struct vma_tree *tree, struct vma *vma, struct vma *prev);

/*
 * Make a tree of many areas in linear time: append each behind all others, then build it. nr: how
 * many they are. Until then the tree has the list only.
 */
void vma_tree_append(struct vma_tree *tree, struct vma *vma);
void vma_tree_build(struct vma_tree *tree, unsigned int nr);

void vma_tree_remove(struct vma_tree *tree, struct vma *vma);

/* Must follow a change to an area's start, or to the end of the one before it. NULL: no area. */
void vma_tree_update(struct vma_tree *tree, struct vma *vma);

/* For assertions: true when links, order, heights, holes and the number of areas are right. */
bool vma_tree_is_sound(const struct vma_tree *tree, unsigned int nr);

#endif
