// SPDX-License-Identifier: BSD-2-Clause
/* The C half of entry.S. */

#include <asm/traps.h>

#include <asm/irqflags.h>
#include <lego/cputime.h>
#include <lego/errno.h>
#include <lego/irq.h>
#include <lego/sched.h>
#include <lego/syscall.h>

#include <profile/syscall.h> /* behind the task structure */

/*
 * Returns true for a code that the user must not see: signal_deliver() handles it, even if there is
 * no signal any more.
 */
static bool is_restart_code(long ret)
{
	return ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK;
}

/* Read where it is used: to keep it until then would cost a register, which has to be saved. */
static unsigned long syscall_number(const struct pt_regs *regs)
{
	return READ_ONCE(*(const u32 *)&regs->orig_rax);
}

notrace bool do_syscall_64(struct pt_regs *regs)
{
	struct pt_regs *arg = regs;
	unsigned long nr;
	long ret = -ENOSYS;

	/* Without this, GCC saves regs, and then loads it where it still is. */
	asm("" : "+r"(arg));
	local_irq_enable();
	profile_sys_enter(syscall_number(regs));
	nr = syscall_number(regs);
	if (likely(nr < NR_SYSCALLS))
		ret = syscall_table[nr](arg);
	regs->rax = ret;
	if (unlikely(is_restart_code(ret)))
		current->signal_pending = true;
	profile_sys_exit(syscall_number(regs), READ_ONCE(regs->rax));
	might_sleep(); /* nothing is held any more */
	local_irq_disable();
	lock_check_leave("user mode");
	if (likely(!has_user_work(current)))
		return true;
	return exit_call_to_user_mode(regs);
}

static u32 vector_owner(unsigned int vector)
{
	if (vector >= NR_EXCEPTIONS)
		return CPUTIME_IRQ;
	return vector == TRAP_PAGE_FAULT ? CPUTIME_FAULT : CPUTIME_EXCEPTION;
}

notrace u32 do_vector(struct pt_regs *regs, unsigned int vector, u64 now_cycles)
{
	u32 before = CPUTIME_SYSTEM;

	/* An exception in an NMI is part of it. */
	if (likely(!in_nmi())) {
		before = cputime_enter(vector_owner(vector), now_cycles);
		this_cpu_write(cpu_account.interrupted, user_mode(regs) ? CPUTIME_USER : before);
	}
	if (vector < NR_EXCEPTIONS)
		do_exception(regs, vector);
	else
		do_irq(regs, vector);
	if (user_mode(regs)) {
		regs->orig_rax = ~0ULL; /* not a system call */
		exit_to_user_mode(regs);
	}
	return before;
}

/* Handles a frame that iretq refused. The user chose its values, so the process gets the signal. */
void do_bad_iret(struct pt_regs *regs)
{
	local_irq_enable();
	signal_force_fault(SIGSEGV, SI_KERNEL, 0, regs, "bad return frame");
	local_irq_disable();
	exit_to_user_mode(regs);
}
