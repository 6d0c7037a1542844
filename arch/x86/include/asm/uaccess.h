/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_UACCESS_H
#define ASM_UACCESS_H

/*
 * The exception table: a fault at insn resumes at fixup. Offsets are relative to the fields' own
 * addresses. Instructions that touch user memory run between stac and clac where the CPU has SMAP.
 */

#include <asm/page.h>

struct exception_entry {
	int insn;
	int fixup;
};

/* An entry, inside an asm statement: two labels or expressions of it, as strings. */
#define ASM_EXCEPTION(insn, fixup)                       \
	"	.pushsection __ex_table, \"a\", @progbits\n"   \
	"	.long (" insn ") - ., (" fixup ") - .\n" \
	"	.popsection\n"

struct pt_regs;

/*
 * If the faulting instruction has an entry, set regs->rip to its fixup and return true. Any
 * context.
 */
bool exception_fixup(struct pt_regs *regs);

/* The same question without the change. */
bool exception_has_fixup(u64 rip);

#endif
