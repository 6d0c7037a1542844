/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_GO_FRAMES_H
#define PROFILE_GO_FRAMES_H

/*
 * The frames of functions that Go's compiler has made. Its programs have no .eh_frame, and their
 * leaf functions no frame pointer, but the section .gopclntab says for each instruction how large
 * the frame is. Go 1.18 and later; debug/gosym of Go's library reads the same format.
 *
 * A user may have made the file, so no field is trusted: nothing outside of `bytes` is read, and
 * the work is bounded. go_frames_rule() may be called in any context, NMIs included.
 */

#include "call_frames.h"
#include "elf.h"

/* A copy of .gopclntab, without the names that come first. */
struct go_frames {
	const u8 *bytes;
	u32 nr_bytes;
	u32 nr;	       /* functions */
	u32 functions; /* where their table is, in bytes */
	u32 flags;     /* where the flags of a function are */
	u64 text;      /* the address to which all others are relative */
};

/*
 * Reads the header of the section. Sets all but `bytes`. Returns where to copy nr_bytes from in the
 * file; 0: this is not the format.
 */
u64 go_frames_begin(struct go_frames *frames, os_file_t *file,
		    const struct section_header *section);

/* As call_frames_rule(). */
bool go_frames_rule(const struct go_frames *frames, u64 addr, u32 *steps,
		    struct call_frames_rule *rule);

#endif
