// SPDX-License-Identifier: BSD-2-Clause
/*
 * Exceptions. One in user mode costs the process its life; one in the kernel resumes at a fixup if
 * the instruction has one, else it is the kernel's own mistake: panic.
 */
#include <asm/traps.h>

#include <asm/irqflags.h>
#include <asm/smp.h>
#include <asm/static_key.h>
#include <asm/uaccess.h>
#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/irq.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/selftest.h>
#include <lego/string.h>

#define SIGILL	4
#define SIGTRAP 5
#define SIGBUS	7
#define SIGFPE	8
#define SIGSEGV 11

#define MAX_UNKNOWN_NMIS 10

DEFINE_PER_CPU(unsigned int, nmi_depth);

static const struct {
	const char *name;
	int signal;
} exceptions[NR_EXCEPTIONS] = {
	[TRAP_DIVIDE] = { "divide error", SIGFPE },
	[TRAP_DEBUG] = { "debug trap", SIGTRAP },
	[TRAP_BREAKPOINT] = { "breakpoint", SIGTRAP },
	[TRAP_OVERFLOW] = { "overflow", SIGSEGV },
	[5] = { "bound range exceeded", SIGSEGV },
	[TRAP_INVALID_OPCODE] = { "invalid opcode", SIGILL },
	[7] = { "no FPU", SIGILL },
	[10] = { "invalid TSS", SIGSEGV },
	[11] = { "segment not present", SIGBUS },
	[12] = { "stack segment fault", SIGBUS },
	[13] = { "general protection fault", SIGSEGV },
	[16] = { "x87 floating point error", SIGFPE },
	[TRAP_ALIGNMENT] = { "misaligned access", SIGBUS },
	[19] = { "SIMD floating point error", SIGFPE },
};

static u64 read_cr2(void)
{
	u64 addr;

	asm volatile("mov %%cr2, %0" : "=r"(addr)::"memory");
	return addr;
}

static void page_fault(struct pt_regs *regs)
{
	u64 addr = read_cr2(); /* before interrupts, whose handlers may fault too */

	if (!irqs_disabled_flags(regs->rflags))
		local_irq_enable();
	trap_page_fault(regs, regs->orig_rax, addr);
	local_irq_disable();
}

static void user_exception(struct pt_regs *regs, const char *name, int signal)
{
	local_irq_enable();
	process_fault(signal, name, regs->rip, regs);
	local_irq_disable();
}

void do_exception(struct pt_regs *regs, unsigned int vector)
{
	const char *name = exceptions[vector].name ?: "reserved exception";

	if (vector == TRAP_PAGE_FAULT) {
		page_fault(regs);
	} else if (user_mode(regs)) {
		user_exception(regs, name, exceptions[vector].signal ?: SIGSEGV);
	} else if (regs->rip == (u64)user_iretq) {
		regs->rip = (u64)bad_iret;
	} else if (vector == TRAP_BREAKPOINT && static_key_breakpoint(regs)) {
		return;
	} else if (!exception_fixup(regs)) {
		die(regs, name);
	}
}

static void log_unknown_nmi(const struct pt_regs *regs)
{
	static u32 nr_logged;
	u32 nr = __atomic_fetch_add(&nr_logged, 1, __ATOMIC_RELAXED);

	if (nr < MAX_UNKNOWN_NMIS)
		printk("NMI: nobody asked for it; CPU %u at %016llx\n", smp_processor_id(),
		       (unsigned long long)regs->rip);
}

/* Must not fault: the IRET of a nested exception would let the next NMI in, onto this stack. */
void do_nmi(struct pt_regs *regs)
{
	this_cpu_inc(nmi_depth);
	smp_handle_nmi(regs);
	if (IS_ENABLED(CONFIG_SELFTEST))
		selftest_nmi();
	log_unknown_nmi(regs);
	this_cpu_dec(nmi_depth);
}

/* A fault could not be delivered. The usual cause is a stack that has grown into its guard page. */
void do_double_fault(struct pt_regs *regs, u64 addr)
{
	u64 stack = (u64)current->kernel_stack;

	if (addr - (stack - PAGE_SIZE) < PAGE_SIZE || regs->rsp - (stack - PAGE_SIZE) < PAGE_SIZE)
		die(regs, "kernel stack overflow");
	die(regs, "double fault");
}

void do_machine_check(struct pt_regs *regs)
{
	die(regs, "machine check");
}
