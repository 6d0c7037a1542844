// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the build id of an ELF file (System V ABI, chapters 4 and 5: program headers and notes). A
 * user may have made the file, so no field is trusted, and the work is bounded.
 */

#include "elf.h"
#include "images.h"

#define MAX_PHDRS 128
#define MAX_NOTES 16 /* in a segment */

struct note {
	u32 name_bytes, desc_bytes, type;
	char name[4];
};

/* Returns a length with padding: names and contents are padded to 4 bytes. */
static u64 padded(u32 bytes)
{
	return ((u64)bytes + 3) & ~3ull;
}

/* Searches a segment of notes. */
static u32 find_in_segment(os_file_t *file, const struct program_header *segment, u8 *build_id)
{
	u64 at = segment->offset, end = at + segment->filesz;
	struct note note;

	for (u32 i = 0; i < MAX_NOTES && at + sizeof(note) > at && at + sizeof(note) <= end; i++) {
		if (!elf_read(file, &note, sizeof(note), at))
			break;
		at += __builtin_offsetof(struct note, name) + padded(note.name_bytes);
		if (note.type == NT_GNU_BUILD_ID && note.name_bytes == sizeof(note.name) &&
		    !memcmp(note.name, "GNU", sizeof(note.name))) {
			if (note.desc_bytes > IMAGE_BUILD_ID_BYTES ||
			    !elf_read(file, build_id, note.desc_bytes, at))
				break;
			return note.desc_bytes;
		}
		at += padded(note.desc_bytes);
	}
	return 0;
}

u32 image_read_build_id(os_file_t *file, u8 build_id[IMAGE_BUILD_ID_BYTES])
{
	struct program_header segment;
	struct elf_header header;
	u32 bytes = 0;

	memset(build_id, 0, IMAGE_BUILD_ID_BYTES);
	if (!elf_read_header(file, &header))
		return 0;
	for (u32 i = 0; !bytes && i < pf_min((u32)header.phnum, (u32)MAX_PHDRS); i++) {
		u64 at = header.phoff + i * sizeof(segment);

		if (!elf_read(file, &segment, sizeof(segment), at))
			break;
		if (segment.type == PT_NOTE)
			bytes = find_in_segment(file, &segment, build_id);
	}
	return bytes;
}
