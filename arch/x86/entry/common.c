// SPDX-License-Identifier: BSD-2-Clause
#include <asm/traps.h>

#include <asm/irqflags.h>
#include <lego/errno.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/syscall.h>

/* The C half of entry.S. */

/* As in Linux the number is eax; in rax's upper half stands nothing. */
void do_syscall_64(struct pt_regs *regs)
{
	unsigned long nr = (u32)regs->orig_rax;
	long ret = -ENOSYS;

	local_irq_enable();
	profile_syscall_enter(nr);
	if (likely(nr < NR_SYSCALLS))
		ret = syscall_table[nr](regs);
	profile_syscall_exit(ret);
	regs->rax = ret;
	local_irq_disable();
	exit_to_user_mode(regs);
}

void do_vector(struct pt_regs *regs, unsigned int vector)
{
	if (vector < NR_EXCEPTIONS)
		do_exception(regs, vector);
	else
		do_irq(regs, vector);
	if (user_mode(regs))
		exit_to_user_mode(regs);
}

/* The frame that iretq refused: not the kernel's mistake, so the process pays. */
void do_bad_iret(struct pt_regs *regs)
{
	local_irq_enable();
	process_fault(11, "bad return frame", regs->rip, regs);
	local_irq_disable();
	exit_to_user_mode(regs);
}
