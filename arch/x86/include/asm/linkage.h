/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_LINKAGE_H
#define ASM_LINKAGE_H

/* Functions in assembly: global, typed and sized, so that symbol tables contain their ends. */

/* clang-format off */
#define ENTRY(name)			\
	.globl name;			\
	.type name, @function;		\
	.balign 16;			\
	name:

#define END(name) .size name, . - name
/* clang-format on */

#endif
