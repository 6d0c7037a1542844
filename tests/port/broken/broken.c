// SPDX-License-Identifier: BSD-2-Clause
/* Breaks one contract of kernel/profile/os.h at a time. The self-test of the profilers has to say
 * so; what follows may fail, so the machine ends then. */

/* The contracts, for OS_BOOT_PARAM. They include os.h of this folder. */
#include <profile/../../os.h>

#define EXIT_OK 16

struct task broken_task;
static char broken[16];

static int set_break(const char *value)
{
	battery_snprintf(broken, sizeof(broken), "%s", value);
	return 0;
}
OS_BOOT_PARAM(broken, "break", "<contract>", set_break);

bool breaks(const char *contract)
{
	return !strcmp(broken, contract);
}

int broken_vprintk(const char *fmt, va_list args)
{
	static struct process process = { .pid = 7 };
	u64 ns = battery_cycles_to_ns(battery_cycles(), cycles_per_second);
	int len = battery_console_vprintf(console_put, ns, panicking, fmt, args);

	if (!memcmp(fmt, "port: contracts", 15))
		exit_qemu(EXIT_OK);
	if (!memcmp(fmt, "port: all", 9) && breaks("task"))
		profile_task_exit(&broken_task);
	if (!memcmp(fmt, "port: all", 9) && breaks("process"))
		profile_process_exit(&process);
	return len;
}

int broken_vsnprintf(char *buf, size_t size, const char *fmt, va_list args)
{
	return battery_vsnprintf(buf, size, breaks("printf") ? "%lu" : fmt, args);
}

void *broken_zalloc(size_t size)
{
	void *memory = breaks("full") && size == 5000 ? NULL : battery_zalloc(size);

	return memory && breaks("zeroed") && size == 24 ? memset(memory, 1, size) : memory;
}

bool broken_symbol_lookup(u64 addr, u64 *start, char *name, size_t size)
{
	if (breaks("names"))
		return false;
	return battery_symbol_lookup(addr - 4096 * breaks("symbols"), start, name, size);
}

u64 broken_lock(void)
{
	u64 flags = battery_irq_save();

	if (breaks("lock"))
		battery_irq_restore(FLAGS_IRQS_ON);
	return flags;
}

void broken_unlock(u64 flags)
{
	if (!breaks("unlock"))
		battery_irq_restore(breaks("inner") ? FLAGS_IRQS_ON : flags);
}

/* asleep: as if it were computed from the clock, without the time of the present sleep. */
u64 broken_exec_cycles(const struct task *task)
{
	bool grows = breaks("asleep") && !(pf_read_once(task->time.word) & BATTERY_RUNS);

	return (battery_time_on(&task->time, battery_cycles()) + grows * battery_cycles()) >>
	       breaks("exec");
}
