// SPDX-License-Identifier: BSD-2-Clause
/*
 * The exception table. It has a few dozen entries and is only read after a fault, so it is searched
 * linearly.
 */

#include <asm/uaccess.h>

#include <asm/ptrace.h>
#include <lego/kernel.h>

extern const struct exception_entry __start___ex_table[], __stop___ex_table[];

bool exception_fixup(struct pt_regs *regs)
{
	const struct exception_entry *entry;

	for (entry = __start___ex_table; entry < __stop___ex_table; entry++) {
		if ((u64)&entry->insn + entry->insn != regs->rip)
			continue;
		regs->rip = (u64)&entry->fixup + entry->fixup;
		return true;
	}
	return false;
}

bool exception_has_fixup(u64 rip)
{
	const struct exception_entry *entry;

	for (entry = __start___ex_table; entry < __stop___ex_table; entry++)
		if ((u64)&entry->insn + entry->insn == rip)
			return true;
	return false;
}
