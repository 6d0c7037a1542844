/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_VMA_H
#define LEGO_VMA_H

/* Areas of an address space, and the tree that they are in. */

#include <lego/types.h>

struct file;

#define MM_MIN_ADDR 0x10000UL /* NULL and addresses near it stay unmapped */

/*
 * The area [start, end), page aligned. Private: pages of a file or zeros, copied before they are
 * written. Shared: the file's own pages; anonymous shared memory is a file without a name.
 */
struct vma {
	u64 start;
	u64 end;
	u32 flags; /* MAP_SHARED or MAP_PRIVATE, MAP_ANONYMOUS if shared, MAP_STACK, VMA_* */
	u16 prot;  /* PROT_* */
	/* Height of the area's subtree. For vma_tree.c, as are the fields after file_bytes. */
	u16 height;
	struct file *file; /* NULL: private and anonymous; holds a reference */
	u64 file_offset;   /* of start, page aligned */
	u64 file_bytes;	   /* from start; the rest reads as zero */

	struct vma *prev, *next; /* by address; NULL: none */
	struct vma *parent, *child[2];
	u64 max_gap; /* bytes: no hole directly below an area of its subtree is larger */
};

/* All zero: empty. */
struct vma_tree {
	struct vma *root;
	struct vma *first, *last;
	/*
	 * Where vma_tree_place() begins, if it is to end at or below place_end: no hole between
	 * this area and place_end has place_bytes. NULL: not known.
	 */
	struct vma *place_above;
	u64 place_end, place_bytes;
};

#endif
