/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROFILE_ABI_H
#define LEGO_PROFILE_ABI_H

/*
 * How a tool on the host finds an export in the memory of a guest. The kernel's symbol table has
 * `profile_export`; kernel/profile/formats.md describes the text that the ranges hold. All numbers
 * are little-endian.
 *
 * Policy: a change that old tools would read wrongly gives PROFILE_EXPORT_VERSION a new number, and
 * a tool refuses a number that it does not know. Keys and files may be added to the text at any
 * time; a tool ignores those it does not know.
 */

#include <stdint.h>

#define PROFILE_EXPORT_MAGIC	   "LEGOPROF" /* 8 bytes, without the NUL */
#define PROFILE_EXPORT_VERSION	   1
#define PROFILE_EXPORT_RANGE_BYTES (1u << 20)
#define PROFILE_EXPORT_MAX_RANGES  64

enum profile_export_state {
	PROFILE_EXPORT_NONE,
	PROFILE_EXPORT_WRITING, /* also when the kernel died while it wrote */
	PROFILE_EXPORT_COMPLETE,
};

struct profile_export {
	char magic[8];
	uint32_t version;
	uint32_t state;	    /* enum profile_export_state */
	uint32_t number;    /* of the snapshot; the first one is 1 */
	uint32_t nr_ranges; /* of PROFILE_EXPORT_RANGE_BYTES each */
	uint64_t bytes;	    /* of text, from the start of the first range on */
	uint64_t ranges[PROFILE_EXPORT_MAX_RANGES]; /* physical addresses */
};

#endif
