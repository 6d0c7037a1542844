/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_ELF_H
#define PROFILE_ELF_H

/* ELF files of 64 bits (System V ABI, chapters 4 and 5), as far as images need them. */

#include "../util.h"

#define ELF_IDENT "\177ELF\2\1" /* 64 bits, little endian */

#define PT_LOAD		1
#define PT_NOTE		4
#define PT_GNU_EH_FRAME 0x6474e550
#define PF_X		1
#define SHT_SYMTAB	2
#define SHT_DYNSYM	11
#define SHF_ALLOC	2
#define SHF_EXECINSTR	4
#define SHN_UNDEF	0
#define SHN_LORESERVE	0xff00
#define STT_NOTYPE	0
#define STT_OBJECT	1
#define STT_FUNC	2
#define STT_GNU_IFUNC	10
#define NT_GNU_BUILD_ID 3

struct elf_header {
	u8 ident[16];
	u16 type, machine;
	u32 version;
	u64 entry, phoff, shoff;
	u32 flags;
	u16 ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct program_header {
	u32 type, flags;
	u64 offset, vaddr, paddr, filesz, memsz, align;
};

struct section_header {
	u32 name, type;
	u64 flags, addr, offset, size;
	u32 link, info;
	u64 addralign, entsize;
};

struct elf_symbol {
	u32 name;
	u8 info, other;
	u16 section;
	u64 value, size;
};

/* The header of .eh_frame_hdr in the only encoding that linkers write: relative to itself. */
struct eh_frame_hdr {
	u8 version, frame_encoding, count_encoding, table_encoding;
	s32 frame;
	u32 nr;
};
#define EH_FRAME_ENCODINGS "\1\x1b\3\x3b"

static inline bool elf_read(os_file_t *file, void *buf, size_t n, u64 pos)
{
	return os_file_read(file, buf, n, pos) == (s64)n;
}

static inline bool elf_read_header(os_file_t *file, struct elf_header *header)
{
	return elf_read(file, header, sizeof(*header), 0) &&
	       !memcmp(header->ident, ELF_IDENT, sizeof(ELF_IDENT) - 1);
}

#endif
