// SPDX-License-Identifier: BSD-2-Clause
/* The table of system calls and their names, both from the list in arch/x86/entry/syscalls.tbl. */

#include <lego/syscall.h>

#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/printk.h>

#define TABLE_ENTRY(nr, name, entry) [nr] = entry,
#define NAME_ENTRY(nr, name, entry)  [nr] = "sys_" #name,

const syscall_fn_t syscall_table[NR_SYSCALLS] = { [0 ... NR_SYSCALLS - 1] = sys_ni,
						  SYSCALL_LIST(TABLE_ENTRY) };

static const char *const syscall_names[NR_SYSCALLS] = { SYSCALL_LIST(NAME_ENTRY) };

const char *syscall_name(unsigned long nr)
{
	return nr < NR_SYSCALLS ? syscall_names[nr] : NULL;
}

#ifdef CONFIG_PROFILE_TRACE

#define PARAMS_ENTRY(nr, params) [nr] = params,

static const char *const syscall_params_list[NR_SYSCALLS] = { SYSCALL_PARAMS_LIST(PARAMS_ENTRY) };

const char *syscall_params(unsigned long nr)
{
	return nr < NR_SYSCALLS ? syscall_params_list[nr] : NULL;
}

#endif

/* Handles calls that do not exist. The log names each of them once. */
long sys_ni(const struct pt_regs *regs)
{
	static u64 logged[DIV_ROUND_UP(NR_SYSCALLS, 64)];
	unsigned long nr = (u32)regs->orig_rax;
	const char *name = syscall_name(nr);

	if (nr >= NR_SYSCALLS || atomic_or_bits(&logged[nr / 64], BIT(nr % 64)) & BIT(nr % 64))
		return -ENOSYS;
	printk("syscall: %s (%lu) is not implemented\n", name ? name : "a call without a name", nr);
	return -ENOSYS;
}
