/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SMAP_H
#define ASM_SMAP_H

/*
 * Supervisor mode access prevention (SDM vol. 3, 4.6): with CR4.SMAP the kernel can access user
 * pages only between STAC and CLAC. Both are 3-byte NOPs until smap_init() finds that the CPU has
 * them. Each has a record in section smap_sites: its address, relative to the record, and the last
 * byte of the instruction.
 */

#define SMAP_CLAC_BYTE 0xca
#define SMAP_STAC_BYTE 0xcb

#ifdef __ASSEMBLY__
/* clang-format off */
#define ASM_SMAP_SITE(last)						\
771:	.byte 0x0f, 0x1f, 0x00;						\
	.pushsection smap_sites, "a", @progbits;			\
	.long 771b - ., last;						\
	.popsection
/* clang-format on */

#define ASM_STAC ASM_SMAP_SITE(SMAP_STAC_BYTE)
#define ASM_CLAC ASM_SMAP_SITE(SMAP_CLAC_BYTE)
#else
#include <lego/types.h>

#define ASM_SMAP_SITE(byte)                            \
	"771:	.byte 0x0f, 0x1f, 0x00\n"                \
	"	.pushsection smap_sites, \"a\", @progbits\n" \
	"	.long 771b - ., " byte "\n"            \
	"	.popsection\n"

#define ASM_STAC ASM_SMAP_SITE("0xcb")
#define ASM_CLAC ASM_SMAP_SITE("0xca")

struct smap_site {
	s32 offset;
	u32 byte;
};

/*
 * Writes STAC and CLAC into the code if the CPU has them. Boot CPU, once, while kernel text is
 * still writable. Each CPU then sets CR4.SMAP in its own set-up.
 */
void smap_init(void);

/* If true, user pages are inaccessible while RFLAGS.AC is 0. */
extern bool smap_enabled;
#endif

#endif
