// SPDX-License-Identifier: BSD-2-Clause
/*
 * Page faults. The kernel accesses user memory only by instructions with an exception table entry.
 * Any other page fault in the kernel is a bug and ends in die().
 */

#include <asm/traps.h>

#include <asm/irqflags.h>
#include <asm/ptrace.h>
#include <asm/smap.h>
#include <asm/uaccess.h>
#include <lego/errno.h>
#include <lego/irq.h>
#include <lego/mm.h>
#include <lego/profile.h>
#include <lego/sched.h>

DEFINE_PROFILE_POINT_SLEEPS(page_fault)

/* Error code (SDM vol. 3, 4.7). */
#define FAULT_WRITE    BIT(1)
#define FAULT_RESERVED BIT(3)
#define FAULT_FETCH    BIT(4)

#define RFLAGS_AC BIT(18)

static u32 fault_access(u64 error_code)
{
	if (error_code & FAULT_FETCH)
		return PROT_EXEC;
	return error_code & FAULT_WRITE ? PROT_WRITE : PROT_READ;
}

/*
 * Makes a user page present. Faults of the kernel are not killable: a thread that was killed still
 * unlocks its robust futexes. Returns 0 or a negative errno. Interrupts on, process context.
 */
static int fault_user_address(u64 error_code, u64 addr, bool killable)
{
	u64 *faults;
	int kind;
	PROFILE_SCOPE(page_fault);

	kind = mm_fault(current->mm, addr, fault_access(error_code), killable);
	if (kind < 0)
		return kind;
	faults = &current->faults.nr[kind];
	WRITE_ONCE(*faults, *faults + 1);
	this_cpu_inc(cpu_account.events[CPU_FAULTS]);
	return 0;
}

/* Sends the signal for an access that mm_fault() could not resolve. */
static void fail_user_access(struct pt_regs *regs, int error, u64 addr)
{
	switch (error) {
	case -ENOMEM:
		process_fault(SIGKILL, "out of memory", addr, regs);
		break;
	case -ENXIO:
		signal_force_fault(SIGBUS, BUS_ADRERR, addr, regs, "bus error");
		break;
	case -EACCES:
		signal_force_fault(SIGSEGV, SEGV_ACCERR, addr, regs, "segmentation fault");
		break;
	default:
		signal_force_fault(SIGSEGV, SEGV_MAPERR, addr, regs, "segmentation fault");
	}
}

static void fault_from_user(struct pt_regs *regs, u64 error_code, u64 addr)
{
	int error = -EFAULT;

	local_irq_enable();
	if (addr < TASK_SIZE)
		error = fault_user_address(error_code, addr, true);
	/* A killed thread exits now, and gets no signal. */
	if (error && !task_killed(current)) {
		trap_note_signal(TRAP_PAGE_FAULT, error_code, addr);
		fail_user_access(regs, error, addr);
	}
}

/*
 * Returns true between STAC and CLAC, where sleeping is allowed. Elsewhere SMAP forbids the access,
 * so making the page present would not help.
 */
static bool copying_user(const struct pt_regs *regs)
{
	return (!smap_enabled || regs->rflags & RFLAGS_AC) && !irqs_disabled_flags(regs->rflags) &&
	       !in_irq() && !in_nmi();
}

/* Handles a fault of the kernel. Returns true if it was resolved. */
static bool fault_from_kernel(struct pt_regs *regs, u64 error_code, u64 addr)
{
	profile_trace(page_fault_kernel, addr, regs, error_code);
	if (!exception_has_fixup(regs->rip))
		return false;
	if (addr < TASK_SIZE && copying_user(regs) && current->mm) {
		local_irq_enable();
		if (!fault_user_address(error_code, addr, false))
			return true;
	}
	return exception_fixup(regs);
}

void trap_page_fault(struct pt_regs *regs, u64 error_code, u64 addr)
{
	const char *why = "page fault";

	if (error_code & FAULT_RESERVED) {
		why = "page fault: reserved bit in a page table";
	} else if (user_mode(regs)) {
		profile_trace(page_fault_user, addr, regs, error_code);
		fault_from_user(regs, error_code, addr);
		profile_trace(page_fault_end, current);
		return;
	} else if (fault_from_kernel(regs, error_code, addr)) {
		profile_trace(page_fault_end, current);
		return;
	}
	die(regs, why);
}
