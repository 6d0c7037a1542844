// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the table of functions in .gopclntab: see go_frames.h. The table is sorted by address. An
 * entry leads to a description of the function, and that to pairs of numbers: by how many bytes the
 * frame grows, and for how many bytes of code it then has this size. A function with a frame saves
 * rbp at the top of it.
 */

#include "go_frames.h"

#define MAGIC_1_18  0xfffffff0u
#define MAGIC_1_20  0xfffffff1u
#define FLAGS_1_18  37
#define FLAGS_1_20  41 /* a line number comes before them */
#define TOP_FRAME   1  /* flags: no caller */
#define WRITES_SP   2  /* the stack pointer is not what the table says */
#define PCSP_OFFSET 16
#define KIND_MCALL  11 /* in the byte before the flags; Go 1.23 has numbered kinds anew */
#define MAX_BYTES   (8u << 20)

struct header {
	u32 magic;
	u8 zero[2], quantum, pointer_bytes;
	u64 nr_functions, nr_files, text, names, units, files, pcs, functions;
};

struct function {
	u32 begin, description;
};

static bool get(const struct go_frames *frames, u64 at, void *to, u32 nr)
{
	if (at > frames->nr_bytes || frames->nr_bytes - at < nr)
		return false;
	memcpy(to, frames->bytes + at, nr);
	return true;
}

u64 go_frames_begin(struct go_frames *frames, os_file_t *file, const struct section_header *section)
{
	struct header header;

	*frames = (struct go_frames){ 0 };
	if (section->size < sizeof(header) ||
	    !elf_read(file, &header, sizeof(header), section->offset) ||
	    (header.magic != MAGIC_1_18 && header.magic != MAGIC_1_20) || header.quantum != 1 ||
	    header.pointer_bytes != sizeof(u64) || header.pcs < sizeof(header) ||
	    header.pcs > header.functions || header.functions > section->size ||
	    section->size - header.pcs > MAX_BYTES ||
	    header.nr_functions >= (section->size - header.functions) / sizeof(struct function))
		return 0;
	*frames = (struct go_frames){
		.nr_bytes = section->size - header.pcs,
		.nr = header.nr_functions,
		.functions = header.functions - header.pcs,
		.flags = header.magic == MAGIC_1_18 ? FLAGS_1_18 : FLAGS_1_20,
		.text = header.text,
	};
	return section->offset + header.pcs;
}

/* Reads a number of seven bits a byte. Returns false beyond the end. */
static bool get_number(const struct go_frames *frames, u32 *at, u32 *number)
{
	*number = 0;
	for (u32 shift = 0; shift < 35 && *at < frames->nr_bytes; shift += 7) {
		u8 byte = frames->bytes[(*at)++];

		*number |= (u32)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Finds the size of the frame at an address, and the range of addresses that have it. */
static bool find_size(const struct go_frames *frames, u32 at, u32 addr, u32 *steps, u32 *size,
		      u32 *begin, u32 *end)
{
	u32 grows, nr;

	*size = -1; /* the first number is one more than the size */
	*end = *begin;
	do {
		if (!*steps || !get_number(frames, &at, &grows) || !get_number(frames, &at, &nr))
			return false;
		--*steps;
		*size += grows & 1 ? ~(grows >> 1) : grows >> 1;
		*begin = *end;
		*end += nr;
	} while (nr && addr - *begin >= nr);
	return nr;
}

/* Finds the last function that begins at or before an address, in its table with an end mark. */
static bool find_go_function(const struct go_frames *frames, u32 addr, struct function *function)
{
	u32 low = 0, high = frames->nr + 1;

	while (low < high) {
		u32 middle = low + (high - low) / 2, begin;

		if (!get(frames, frames->functions + (u64)middle * sizeof(*function), &begin,
			 sizeof(begin)))
			return false;
		if (begin <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && low <= frames->nr &&
	       get(frames, frames->functions + (low - 1ull) * sizeof(*function), function,
		   sizeof(*function));
}

bool go_frames_rule(const struct go_frames *frames, u64 addr, u32 *steps,
		    struct call_frames_rule *rule)
{
	struct function function;
	u32 pcsp, size, end;
	u64 description;
	u8 kind_and_flags[2], kind, flags;

	*rule = (struct call_frames_rule){ .begin = addr, .end = addr + 1 };
	addr -= frames->text;
	if (addr >> 32 || !find_go_function(frames, addr, &function))
		return true;
	description = (u64)frames->functions + function.description;
	if (!get(frames, description + PCSP_OFFSET, &pcsp, sizeof(pcsp)) ||
	    !get(frames, description + frames->flags - 1, kind_and_flags, sizeof(kind_and_flags)))
		return true;
	kind = kind_and_flags[0];
	flags = kind_and_flags[1];
	if (flags & TOP_FRAME) {
		rule->rule.kind = PROFILE_UNWIND_OUTERMOST;
		return true;
	}
	/* It calls a function that never returns, so Go's traces begin there. */
	if (flags & WRITES_SP && kind == KIND_MCALL) {
		rule->rule.kind = PROFILE_UNWIND_OTHER_STACK;
		return true;
	}
	if (flags & WRITES_SP || pcsp >= frames->nr_bytes)
		return true;
	if (!find_size(frames, pcsp, addr, steps, &size, &function.begin, &end))
		return *steps;
	rule->begin = frames->text + function.begin;
	rule->end = frames->text + end;
	if (size % sizeof(u64) || size / sizeof(u64) >= PROFILE_UNWIND_MAX_CFA)
		return true;
	rule->rule = (struct profile_user_unwind){
		.kind = PROFILE_UNWIND_SP,
		.fp = size ? 2 : 0,
		.cfa = size / sizeof(u64) + 1,
	};
	return true;
}
