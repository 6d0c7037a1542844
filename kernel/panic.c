// SPDX-License-Identifier: BSD-2-Clause
/*
 * The panic. One CPU panics. Any other CPU that panics, too, halts here; all others are stopped by
 * NMI. Each step below may itself fault and so come back here. Then that step and all before it are
 * skipped, so each time the CPU gets one step closer to a plain halt.
 */

#include <lego/bug.h>

#include <asm/irqflags.h>
#include <asm/traps.h>
#include <asm/uart.h>
#include <lego/atomic.h>
#include <lego/boot.h>
#include <lego/printk.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/verdict.h>

#define PANIC_STATUS 127

static const char again[] = "\npanic: a second one inside the first: giving up\n"
			    "reboot: panic, status 127\n";

int panic_cpu = -1;
static int panic_depth; /* written by panic_cpu only */

/* Returns only on the CPU and the call that own the panic. */
static void enter(void)
{
	int cpu = smp_processor_id();
	int owner = cmpxchg(&panic_cpu, -1, cpu);

	if (owner >= 0 && owner != cpu)
		smp_stop_self();
	switch (++panic_depth) {
	case 1:
		return;
	case 2:
		uart_write(again);
		fallthrough;
	case 3:
		machine_exit(PANIC_STATUS);
	default:
		machine_halt();
	}
}

void panic(const char *fmt, ...)
{
	static char why[256];
	unsigned int nr_running;
	va_list args;

	local_irq_disable();
	enter();
	nr_running = smp_stop_others();
	printk_bust_locks();

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	verdict_set_panic(why);
	printk("Kernel panic: %s\n", why);
	printk("CPU %u, task %d %pE\n", smp_processor_id(), current->pid, current->comm);
	if (nr_running)
		printk("%u CPUs do not stop\n", nr_running);
	dump_panic(RETURN_ADDRESS(), (u64)__builtin_frame_address(0));
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
	verdict_count_warning();
	printk("WARNING: %s:%d %s\n", file, line, expr);
}
