// SPDX-License-Identifier: BSD-2-Clause
/* The files of /proc for the whole system, in Linux's formats (proc(5)). */

#include "../lock.h"
#include "../mount.h"
#include "../permission.h"
#include "internal.h"

#include <lego/account.h>
#include <lego/assert.h>
#include <lego/boot.h>
#include <lego/errno.h>
#include <lego/kallsyms.h>
#include <lego/page.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/sysrq.h>
#include <generated/config_gz.h>
#include <generated/version.h>

#define U64(x) ((unsigned long long)(x))

#define SYMBOLS_A_STEP 64

static int show_meminfo(struct text *text, const void *unused)
{
	u64 total = page_nr_total() * PAGE_SIZE >> 10, free = page_nr_free() * PAGE_SIZE >> 10;

	text_printf(text, "MemTotal:       %8llu kB\nMemFree:        %8llu kB\n", U64(total),
		    U64(free));
	/* There are no caches that could be freed. */
	text_printf(text, "MemAvailable:   %8llu kB\nBuffers:        %8d kB\n", U64(free), 0);
	text_printf(text, "Cached:         %8d kB\nSwapCached:     %8d kB\n", 0, 0);
	text_printf(text, "SwapTotal:      %8d kB\nSwapFree:       %8d kB\n", 0, 0);
	text_printf(text, "Slab:           %8llu kB\nSReclaimable:   %8d kB\n",
		    U64(slab_bytes_live() >> 10), 0);
	return 0;
}

static int show_uptime(struct text *text, const void *unused)
{
	u64 up_ns = clock_monotonic_ns(), idle = 0;
	struct cpu_ticks ticks;
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		account_cpu_times(cpu, &ticks);
		idle += ticks.idle;
	}
	text_printf(text, "%llu.%02llu %llu.%02llu\n", U64(up_ns / NSEC_PER_SEC),
		    U64(proc_clock_ticks(up_ns) % 100), U64(idle / 100), U64(idle % 100));
	return 0;
}

struct counts {
	unsigned int nr_threads, nr_runnable;
};

static bool count_threads(struct process *proc, void *arg)
{
	struct counts *counts = arg;

	ASSERT_HELD(&process_tree_lock);
	counts->nr_threads += READ_ONCE(proc->nr_threads);
	return true;
}

static void count_tasks(struct counts *counts)
{
	unsigned int cpu;

	*counts = (struct counts){ 0 };
	process_for_each(count_threads, counts);
	for_each_online_cpu(cpu)
		counts->nr_runnable += sched_nr_runnable(cpu);
}

static int show_loadavg(struct text *text, const void *unused)
{
	struct counts counts;
	u64 loads[3];

	count_tasks(&counts);
	account_load_averages(loads);
	for (int i = 0; i < 3; i++)
		text_printf(text, "%llu.%02llu ", U64(loads[i] >> 16),
			    U64((loads[i] & 0xffff) * 100 >> 16));
	text_printf(text, "%u/%u %d\n", counts.nr_runnable, counts.nr_threads, pid_last());
	return 0;
}

static void show_cpu_line(struct text *text, const struct cpu_ticks *t)
{
	/* user nice system idle iowait irq softirq steal guest guest_nice */
	text_printf(text, " %llu 0 %llu %llu 0 %llu 0 0 0 0\n", U64(t->user), U64(t->system),
		    U64(t->idle), U64(t->irq));
}

static int show_stat(struct text *text, const void *unused)
{
	struct cpu_ticks all = { 0 }, ticks;
	struct counts counts;
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		account_cpu_times(cpu, &ticks);
		all.user += ticks.user;
		all.system += ticks.system;
		all.irq += ticks.irq;
		all.idle += ticks.idle;
	}
	text_printf(text, "cpu ");
	show_cpu_line(text, &all);
	for_each_online_cpu(cpu) {
		account_cpu_times(cpu, &ticks);
		text_printf(text, "cpu%u", cpu);
		show_cpu_line(text, &ticks);
	}
	count_tasks(&counts);
	text_printf(text, "intr %llu\n", U64(proc_nr_interrupts()));
	text_printf(text, "ctxt %llu\n", U64(sched_nr_switches()));
	text_printf(text, "btime %llu\n",
		    U64((clock_realtime_ns() - clock_monotonic_ns()) / NSEC_PER_SEC));
	text_printf(text, "processes %llu\n", U64(process_nr_created()));
	text_printf(text, "procs_running %u\nprocs_blocked 0\n", counts.nr_runnable);
	return 0;
}

static int show_version(struct text *text, const void *unused)
{
	text_printf(text, "Linux version 6.1.0-lego (%s) #1 SMP\n", LEGO_VERSION);
	return 0;
}

/* The configuration that the kernel was built with, in the format of gzip. */
static int show_config(struct text *text, const void *unused)
{
	text_append(text, config_gz, sizeof(config_gz));
	return 0;
}

static int show_filesystems(struct text *text, const void *unused)
{
	fs_show_types(text);
	return 0;
}

static int show_locks(struct text *text, const void *unused)
{
	locks_text(text);
	return 0;
}

static int show_cmdline(struct text *text, const void *unused)
{
	text_printf(text, "%s\n", boot_info.cmdline);
	return 0;
}

/* Prints up to SYMBOLS_A_STEP symbols, with their addresses for those who may see them. */
static bool show_more_symbols(struct text *text, void *next_)
{
	u32 *next = next_, end = *next + SYMBOLS_A_STEP;
	const char *name;
	u64 addr;

	bool shows = READ_ONCE(kptr_restrict) < (fs_is_root() ? 2 : 1);

	for (; *next < end && (name = kallsyms_at(*next, &addr)); ++*next)
		text_printf(text, "%016llx T %s\n", shows ? U64(addr) : 0ULL, name);
	return *next == end;
}

static void end_symbols(void *next)
{
	kfree(next);
}

static int show_kallsyms(struct text *text, const void *unused)
{
	u32 *next = kzalloc(sizeof(*next));

	if (!next)
		return -ENOMEM;
	text_stream(text, show_more_symbols, end_symbols, next);
	return 0;
}

/* There are none: all code is in the kernel. */
static int show_modules(struct text *text, const void *unused)
{
	return 0;
}

static int write_sysrq_trigger(const char *text)
{
	return sysrq_run(text[0]) ? 0 : -EINVAL;
}

static const struct proc_file system_files[] = {
	{ .name = "cmdline", .mode = 0444, .show = show_cmdline },
	{ .name = "config.gz", .mode = 0444, .show = show_config },
	{ .name = "cpuinfo", .mode = 0444, .show = proc_show_cpuinfo },
	{ .name = "filesystems", .mode = 0444, .show = show_filesystems },
	{ .name = "interrupts", .mode = 0444, .show = proc_show_interrupts },
	{ .name = "kallsyms", .mode = 0444, .show = show_kallsyms },
	{ .name = "loadavg", .mode = 0444, .show = show_loadavg },
	{ .name = "locks", .mode = 0444, .show = show_locks },
	{ .name = "meminfo", .mode = 0444, .show = show_meminfo },
	{ .name = "modules", .mode = 0444, .show = show_modules },
	{ .name = "slabinfo", .mode = 0400, .show = proc_show_slabinfo },
	{ .name = "stat", .mode = 0444, .show = show_stat },
	{ .name = "sysrq-trigger", .mode = 0200, .write = write_sysrq_trigger },
	{ .name = "uptime", .mode = 0444, .show = show_uptime },
	{ .name = "version", .mode = 0444, .show = show_version },
	{ .name = "vmstat", .mode = 0444, .show = proc_show_vmstat },
};

int proc_create_system_files(struct inode *root)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_files); i++) {
		struct inode *inode = proc_create_file(root, &system_files[i]);

		if (IS_ERR(inode))
			return PTR_ERR(inode);
	}
	return 0;
}
