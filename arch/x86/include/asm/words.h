/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_WORDS_H
#define ASM_WORDS_H

/* Copy and set many 8-byte words, by one string instruction. They move the pointers. */

#include <lego/compiler.h>
#include <lego/types.h>

static __always_inline void copy_words(char **dst, const char **src, size_t nr)
{
	asm volatile("rep movsq" : "+D"(*dst), "+S"(*src), "+c"(nr) : : "memory");
}

static __always_inline void set_words(char **dst, u64 word, size_t nr)
{
	asm volatile("rep stosq" : "+D"(*dst), "+c"(nr) : "a"(word) : "memory");
}

#endif
