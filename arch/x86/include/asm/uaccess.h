/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_UACCESS_H
#define ASM_UACCESS_H

/*
 * The exception table: a fault at insn resumes at fixup. Offsets are relative to the fields' own
 * addresses. Instructions that access user memory run between stac and clac if the CPU has SMAP.
 */

#include <asm/page.h>

struct exception_entry {
	int insn;
	int fixup;
};

/*
 * Emits an entry, inside an asm statement. The two arguments are labels or expressions, as strings.
 */
#define ASM_EXCEPTION(insn, fixup)                       \
	"	.pushsection __ex_table, \"a\", @progbits\n"   \
	"	.long (" insn ") - ., (" fixup ") - .\n" \
	"	.popsection\n"

struct pt_regs;

/*
 * Sets regs->rip to the fixup if the faulting instruction has an entry, and returns true. Any
 * context.
 */
bool exception_fixup(struct pt_regs *regs);

/* Returns whether the instruction has an entry. */
bool exception_has_fixup(u64 rip);

#endif
