// SPDX-License-Identifier: BSD-2-Clause
#include <lego/bug.h>

#include <asm/irqflags.h>
#include <asm/traps.h>
#include <asm/uart.h>
#include <lego/atomic.h>
#include <lego/boot.h>
#include <lego/kallsyms.h>
#include <lego/printk.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/smp.h>

/*
 * The end. One CPU panics; a second one that comes here stops at once, and is stopped by NMI if
 * it does not come. Each step below may itself fault and so come back here: then the rest is
 * skipped, one step closer to a plain halt each time.
 */

#define PANIC_STATUS 127

static const char again[] = "\npanic: a second one inside the first: giving up\n"
			    "reboot: panic, status 127\n";

static int panic_cpu = -1;
static int panic_depth; /* written by panic_cpu only */

bool panic_in_progress(void)
{
	return READ_ONCE(panic_cpu) >= 0;
}

/* Returns only on the CPU and the call that own the panic. */
static void enter(void)
{
	int cpu = smp_processor_id();
	int owner = cmpxchg(&panic_cpu, -1, cpu);

	if (owner >= 0 && owner != cpu)
		machine_halt();
	switch (++panic_depth) {
	case 1:
		return;
	case 2:
		uart_write(again, sizeof(again) - 1);
		machine_exit(PANIC_STATUS);
	default:
		machine_halt();
	}
}

static void print_where(u64 caller)
{
	struct task *task = current;
	u64 start;
	const char *name = kallsyms_lookup(caller, &start, NULL);

	if (task)
		printk("CPU %u, task %d %s", smp_processor_id(), task->pid, task->comm);
	else
		printk("CPU %u, before the first task", smp_processor_id());
	if (name)
		printk(", panic called by %s+%#lx", name, caller - start);
	printk("\n");
}

void panic(const char *fmt, ...)
{
	static char why[256];
	va_list args;

	local_irq_disable();
	enter();
	smp_stop_others();
	printk_bust_locks();

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	printk("Kernel panic: %s\n", why);
	print_where((u64)__builtin_return_address(0));
	dump_panic_registers();
	profile_report("panic");
	printk("reboot: panic, status %d\n", PANIC_STATUS);
	machine_exit(PANIC_STATUS);
}

void bug_fail(const char *file, int line, const char *expr)
{
	panic("BUG: %s:%d %s", file, line, expr);
}

void warn_print(const char *file, int line, const char *expr)
{
	printk("WARNING: %s:%d %s\n", file, line, expr);
}
