// SPDX-License-Identifier: BSD-2-Clause
/* Prints registers and stacks, in a panic and of a CPU that runs. */
#include <asm/traps.h>

#include <asm/page.h>
#include <asm/ptrace.h>
#include <asm/setup.h>
#include <asm/stacktrace.h>
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/kallsyms.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/spinlock.h>

#define MAX_STACK_SYMBOLS 16

static DEFINE_PER_CPU(const struct pt_regs *, panic_regs);

static void print_symbol(const char *what, u64 addr)
{
	u64 start, size;
	const char *name = kallsyms_lookup(addr, &start, &size);

	if (name)
		printk("%s %016llx %s+%#llx/%#llx\n", what, (unsigned long long)addr, name,
		       (unsigned long long)(addr - start), (unsigned long long)size);
	else
		printk("%s %016llx\n", what, (unsigned long long)addr);
}

static void print_four(const char *const *names, const u64 *values)
{
	printk("%s %016llx %s %016llx %s %016llx %s %016llx\n", names[0],
	       (unsigned long long)values[0], names[1], (unsigned long long)values[1], names[2],
	       (unsigned long long)values[2], names[3], (unsigned long long)values[3]);
}

#define PRINT_FOUR(a, b, c, d, va, vb, vc, vd) \
	print_four((const char *const[]){ a, b, c, d }, (const u64[]){ va, vb, vc, vd })

static u64 read_cr2(void)
{
	u64 value;

	asm volatile("mov %%cr2, %0" : "=r"(value));
	return value;
}

static u64 read_cr3(void)
{
	u64 value;

	asm volatile("mov %%cr3, %0" : "=r"(value));
	return value;
}

/* Prints all registers, with the place on the first line. Any context. */
static void dump_registers(const struct pt_regs *regs)
{
	print_symbol(user_mode(regs) ? "user rip" : "rip", regs->rip);
	PRINT_FOUR("rax", "rbx", "rcx", "rdx", regs->rax, regs->rbx, regs->rcx, regs->rdx);
	PRINT_FOUR("rsi", "rdi", "rbp", "rsp", regs->rsi, regs->rdi, regs->rbp, regs->rsp);
	PRINT_FOUR("r8 ", "r9 ", "r10", "r11", regs->r8, regs->r9, regs->r10, regs->r11);
	PRINT_FOUR("r12", "r13", "r14", "r15", regs->r12, regs->r13, regs->r14, regs->r15);
	PRINT_FOUR("flg", "err", "cr2", "cr3", regs->rflags, regs->orig_rax, read_cr2(),
		   read_cr3());
}

/*
 * Prints all words on the stack that may be return addresses, without frame pointers. Some are left
 * over from earlier calls.
 */
static void dump_stack(u64 sp)
{
	u64 start = (u64)current->kernel_stack, end = start + KERNEL_STACK_SIZE;
	u64 function, last = 0;
	int nr = 0;

	if (sp - (start - PAGE_SIZE) < PAGE_SIZE)
		sp = start; /* overflown */
	if (sp < start || sp >= end || sp % 8)
		return;
	printk("on the stack:\n");
	for (; sp < end && nr < MAX_STACK_SYMBOLS; sp += 8) {
		u64 word = stack_return_address(current, (const u64 *)sp);

		/*
		 * No call returns to the start of a function, and a recursion needs only one line.
		 */
		if (!kallsyms_lookup(word, &function, NULL) || word == function || word == last)
			continue;
		print_symbol(" ", word);
		last = word;
		nr++;
	}
}

void dump_cpu(const struct pt_regs *regs)
{
	static DEFINE_SPINLOCK(dump_lock); /* one CPU at a time */

	ASSERT_IRQS_OFF();
	spin_lock(&dump_lock);
	printk("CPU%u runs %pE[%d]\n", smp_processor_id(), current->comm, current->pid);
	print_symbol(user_mode(regs) ? "user rip" : "rip", regs->rip);
	if (!user_mode(regs))
		dump_stack(regs->rsp);
	spin_unlock(&dump_lock);
}

void die(const struct pt_regs *regs, const char *why)
{
	u64 start;
	const char *name = kallsyms_lookup(regs->rip, &start, NULL);

	if (!this_cpu_read(panic_regs))
		this_cpu_write(panic_regs, regs);
	if (name)
		panic("%s at %s+%#llx", why, name, (unsigned long long)(regs->rip - start));
	panic("%s at %016llx", why, (unsigned long long)regs->rip);
}

void dump_panic(u64 caller, u64 frame)
{
	const struct pt_regs *regs = this_cpu_read(panic_regs);

	if (regs) {
		dump_registers(regs);
		if (!user_mode(regs))
			dump_stack(regs->rsp);
	} else {
		print_symbol("called at", caller);
		dump_stack(frame + 2 * sizeof(u64)); /* above rbp and the return address */
	}
}
