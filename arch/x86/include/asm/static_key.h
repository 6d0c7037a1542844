/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_STATIC_KEY_H
#define ASM_STATIC_KEY_H

#include <lego/kernel.h>

struct static_key {
	bool on;
	bool changes; /* is about to be switched */
};

/* One use of a key, in section static_key_sites. Offsets are from the fields' own addresses. */
struct static_key_site {
	s32 code;   /* the five bytes: NOP, or JMP rel32 to target */
	s32 target; /* the code for "on" */
	s64 key;
};

/*
 * Returns whether the key is on. While it is off this is one NOP (SDM vol. 2, NOP: its 5-byte
 * form), while it is on one jump.
 */
static __always_inline bool static_key_on(struct static_key *const key)
{
	asm goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
		 ".pushsection static_key_sites, \"a\"\n\t"
		 ".balign 8\n\t"
		 ".long 1b - .\n\t"
		 ".long %l[on] - .\n\t"
		 ".quad %c0 - .\n\t"
		 ".popsection"
		 :
		 : "i"(key)
		 :
		 : on);
	return false;
on:
	return true;
}

#endif
