// SPDX-License-Identifier: BSD-2-Clause
/*
 * Exceptions. An exception in user mode becomes a signal to the thread. One in the kernel resumes
 * at a fixup if the instruction has one; otherwise it is a bug in the kernel, and panics.
 */
#include <asm/traps.h>

#include <asm/fpu.h>
#include <asm/irqflags.h>
#include <asm/smp.h>
#include <asm/stack_match.h>
#include <asm/stacktrace.h>
#include <asm/text_patch.h>
#include <asm/tick.h>
#include <asm/tsc.h>
#include <asm/uaccess.h>
#include <lego/bug.h>
#include <lego/irq.h>
#include <lego/printk.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/selftest.h>

#define MAX_UNKNOWN_NMIS 10

#define DR6_SINGLE_STEP BIT(14)
#define DR6_DEFAULT	0xffff0ff0ULL

/* The signal for each exception in user mode. Code SI_KERNEL means that there is no address. */
static const struct {
	const char *name;
	int signal;
	int code;
} exceptions[NR_EXCEPTIONS] = {
	[TRAP_DIVIDE] = { "divide error", SIGFPE, FPE_INTDIV },
	[TRAP_DEBUG] = { "debug trap", SIGTRAP, TRAP_BRKPT },
	[TRAP_BREAKPOINT] = { "breakpoint", SIGTRAP, SI_KERNEL },
	[TRAP_OVERFLOW] = { "overflow", SIGSEGV, SI_KERNEL },
	[5] = { "bound range exceeded", SIGSEGV, SI_KERNEL },
	[TRAP_INVALID_OPCODE] = { "invalid opcode", SIGILL, ILL_ILLOPN },
	[7] = { "no FPU", SIGILL, SI_KERNEL },
	[10] = { "invalid TSS", SIGSEGV, SI_KERNEL },
	[11] = { "segment not present", SIGBUS, SI_KERNEL },
	[12] = { "stack segment fault", SIGBUS, SI_KERNEL },
	[13] = { "general protection fault", SIGSEGV, SI_KERNEL },
	[TRAP_X87] = { "x87 floating point error", SIGFPE, FPE_FLTINV },
	[TRAP_ALIGNMENT] = { "misaligned access", SIGBUS, BUS_ADRALN },
	[TRAP_SIMD] = { "SIMD floating point error", SIGFPE, FPE_FLTINV },
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

void trap_note_signal(unsigned int vector, u64 error_code, u64 addr)
{
	struct thread_struct *thread = &current->thread;

	thread->trap_nr = vector;
	thread->error_code = error_code;
	thread->fault_addr = addr;
}

/* Returns the reason of a debug trap, and clears DR6, in which the CPU only sets bits. */
static int debug_code(void)
{
	u64 dr6;

	asm volatile("mov %%dr6, %0" : "=r"(dr6));
	asm volatile("mov %0, %%dr6" ::"r"(DR6_DEFAULT));
	return dr6 & DR6_SINGLE_STEP ? TRAP_TRACE : TRAP_BRKPT;
}

static void user_exception(struct pt_regs *regs, unsigned int vector)
{
	const char *name = exceptions[vector].name ?: "reserved exception";
	int signal = exceptions[vector].signal ?: SIGSEGV;
	int code = exceptions[vector].signal ? exceptions[vector].code : SI_KERNEL;
	u64 addr = regs->rip;

	if (vector == TRAP_DEBUG)
		code = debug_code();
	if (vector == TRAP_X87 || vector == TRAP_SIMD)
		code = fpu_exception_code(vector == TRAP_X87);
	if (code == SI_KERNEL || vector == TRAP_ALIGNMENT)
		addr = 0;
	local_irq_enable();
	trap_note_signal(vector, regs->orig_rax == ~0ULL ? 0 : regs->orig_rax,
			 current->thread.fault_addr);
	if (code)
		signal_force_fault(signal, code, addr, regs, name);
	local_irq_disable();
}

/* Any exception but a page fault. Not inlined, so that page faults save no registers for it. */
static noinline notrace void other_exception(struct pt_regs *regs, unsigned int vector)
{
	if (user_mode(regs)) {
		user_exception(regs, vector);
	} else if (regs->rip == (u64)user_iretq) {
		regs->rip = (u64)bad_iret;
	} else if (vector == TRAP_BREAKPOINT && text_patch_breakpoint(regs)) {
		return;
	} else if (!exception_fixup(regs)) {
		die(regs, exceptions[vector].name ?: "reserved exception");
	}
}

notrace void do_exception(struct pt_regs *regs, unsigned int vector)
{
	if (vector == TRAP_PAGE_FAULT)
		page_fault(regs);
	else
		other_exception(regs, vector);
}

static void log_unknown_nmi(const struct pt_regs *regs)
{
	static u32 nr_logged;
	u32 nr = __atomic_fetch_add(&nr_logged, 1, __ATOMIC_RELAXED);

	if (nr < MAX_UNKNOWN_NMIS)
		printk("NMI: nobody asked for it; CPU %u at %016llx\n", smp_processor_id(),
		       (unsigned long long)regs->rip);
}

/*
 * The entry code reads the clock in some instructions. If the NMI came after the first and before
 * the end of the last one, its time would be missing: they begin again.
 */
static void repeat_clock_read(struct pt_regs *regs)
{
	static const struct clock_read {
		u64 first, last;
	} * read;
	extern const struct clock_read __start_clock_reads[], __stop_clock_reads[];

	for (read = __start_clock_reads; read < __stop_clock_reads; read++) {
		if (regs->rip > read->first && regs->rip <= read->last)
			regs->rip = read->first;
	}
}

#ifdef CONFIG_PROFILE_CALLCHAIN
/*
 * As profile_nmi(). A walk that this NMI interrupts finds its windows as they were. Inside a
 * context switch, when the windows are already those of the next task, none is valid.
 */
static void profile_nmi_in_walk(const struct pt_regs *regs, bool *handled)
{
	struct stack_windows *windows = this_cpu_ptr(&stack_windows), kept;
	bool may_be_in_walk = irqs_disabled_flags(regs->rflags);
	u64 generation = this_cpu_read(tlb_generation);

	if (may_be_in_walk) {
		kept = *windows;
		if (!stack_is_of_loaded_mm())
			this_cpu_write(tlb_generation, TLB_NO_MM);
	}
	profile_nmi(regs, handled);
	if (may_be_in_walk) {
		*windows = kept;
		this_cpu_write(tlb_generation, generation);
	}
}
#else
#define profile_nmi_in_walk profile_nmi
#endif

/*
 * NMIs that come at the same time are merged, so all possible senders are checked.
 *
 * Must not fault: the IRET of a nested exception would let the next NMI in, onto this stack.
 */
notrace void do_nmi(struct pt_regs *regs)
{
	u64 begin_cycles = unlikely(cpus_take_turns) ? rdtsc() : 0;
	bool handled;

	this_cpu_add(irq_context, NMI_OFFSET);
	handled = smp_handle_nmi();
	profile_nmi_in_walk(regs, &handled);
	if (IS_ENABLED(CONFIG_SELFTEST))
		selftest_nmi();
	if (!handled)
		log_unknown_nmi(regs);
	if (IS_ENABLED(CONFIG_CPU_ACCOUNTING) && pc_in_entry(regs->rip))
		repeat_clock_read(regs);
	if (unlikely(cpus_take_turns))
		tick_leave_nmi(begin_cycles);
	this_cpu_add(irq_context, -NMI_OFFSET);
}

/* Handles a double fault. Its usual cause is a stack that has overflowed into its guard page. */
notrace void do_double_fault(struct pt_regs *regs, u64 addr)
{
	u64 stack = (u64)current->kernel_stack;

	if (addr - (stack - PAGE_SIZE) < PAGE_SIZE || regs->rsp - (stack - PAGE_SIZE) < PAGE_SIZE)
		die(regs, "kernel stack overflow");
	die(regs, "double fault");
}

notrace void do_machine_check(struct pt_regs *regs)
{
	die(regs, "machine check");
}
