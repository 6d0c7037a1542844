// SPDX-License-Identifier: BSD-2-Clause
/*
 * The compiler puts the guard between the arrays of a function and its return address, and compares
 * it before the function returns. The guard finds errors, not attackers, so it is a constant, which
 * is right from the first instruction on. Its zero bytes stop strings.
 */

#include <lego/bug.h>
#include <lego/kallsyms.h>
#include <lego/lock_check.h>

extern const unsigned long __stack_chk_guard;
const unsigned long __stack_chk_guard = 0x00d15ea5ed0c0a00;

void __stack_chk_fail(void) __noreturn;

void __stack_chk_fail(void)
{
	u64 addr = RETURN_ADDRESS() - 1; /* the call may be the last instruction */
	const char *name = kallsyms_lookup(addr, NULL, NULL);

	panic("BUG: write behind an array on the stack of %s", name ?: "an unknown function");
}
