/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_CALL_FRAMES_H
#define PROFILE_CALL_FRAMES_H

/*
 * Call frame information: what .eh_frame of an ELF file says about the frames of its functions
 * (DWARF 5, 6.4; Linux Standard Base, Core, 10.6). Each function has an entry with a program, which
 * describes the frame at each instruction.
 *
 * A user may have made the file, so no field is trusted: nothing outside of `bytes` is read, and
 * the work is bounded. Any context, NMIs included.
 */

#include "../util.h"

#include <profile/user_unwind.h>

/* A copy of .eh_frame, or of more: an end mark ends it. */
struct call_frames {
	const u8 *bytes;
	u32 nr_bytes;
	u64 vaddr; /* of the first byte, in the ELF file */
};

/*
 * Lists of the entries, for a file without an index: each has the functions that begin in a range
 * of addresses. An entry is an offset in `bytes`.
 */
#define LOG2_LIST_BYTES	   9  /* of code for each list: about one function */
#define MIN_FUNCTION_BYTES 20 /* of an entry: four words, and the augmentation with padding */

struct listed_frame {
	u32 at;
	u32 next; /* as in struct frame_lists */
};

struct frame_lists {
	u64 base; /* the lowest address */
	u32 nr;
	u32 *first;		      /* of each list: its index in `entries` + 1; 0: none */
	struct listed_frame *entries; /* nr_bytes / MIN_FUNCTION_BYTES */
};

/*
 * Fills lists, which are empty. Leaves out functions whose address is not in the encoding that all
 * assemblers write. Takes 40 instructions for each function.
 */
void call_frames_list(const struct call_frames *from, struct frame_lists *to);

/* Returns the entry of the last function that begins at or before an address, or NO_CALL_FRAME. */
#define NO_CALL_FRAME ~0u
u32 call_frames_find(const struct call_frames *frames, const struct frame_lists *lists, u64 addr);

/* A rule, and the range of addresses that have it. */
struct call_frames_rule {
	struct profile_user_unwind rule;
	u64 begin, end;
};

/*
 * Sets the rule at an address, by the entry of its function. Subtracts the steps of the entry's
 * program from *steps. Returns false, and an unknown rule, if there were not enough.
 */
bool call_frames_rule(const struct call_frames *frames, u32 at, u64 addr, u32 *steps,
		      struct call_frames_rule *rule);

#endif
