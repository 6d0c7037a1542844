// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registers the call chains of the kernel's memory: their tables in a report, their switch, and
 * their files. In /proc/profile, kernel_chains has the tables and takes words; kernel_stacks has
 * the call chains, folded.
 */

#include "kernel_frees.h"

#include "../hook_keys.h"
#include "../os_stacks.h"
#include "../profiler.h"
#include "../stack_switch.h"
#include "../words.h"

#include <profile/memory.h>

static bool starts_on;

static int set_chains(const char *value)
{
	return words_on_off(value, &starts_on);
}
/*
 * Whether the kernel's allocations are counted by call chain and program, too, not only by place:
 * off by default.
 */
OS_BOOT_PARAM(profile_kernel_chains, "profile.kernel_chains", "on|off", set_chains);

static int set_by_process(const char *value)
{
	return words_copy_line(value, kernel_chains_by_process, sizeof(kernel_chains_by_process));
}
/*
 * Programs whose processes get call chains of their own for the kernel's memory: none by default.
 * The report of such a process says what it has left behind in the kernel. Needs
 * profile.kernel_chains=on.
 */
OS_BOOT_PARAM(profile_kernel_leaks, "profile.kernel_leaks", "<glob>[,<glob>...]", set_by_process);

static void forget_off_time(void)
{
	off_time_reset(&kernel_chains_off_time);
}

/* Counters are never reset, because memory belongs to them: this sets the mark of what is left. */
static void reset_chains(void)
{
	forget_off_time();
	memory_mark();
}

static struct stack_switch chains_switch = {
	.key = &profile_kernel_chains_key,
	.off_time = &kernel_chains_off_time,
	.init = kernel_chains_init,
	.reset = reset_chains,
};

static void init(void)
{
	hook_keys_register(HOOK_KMALLOC, &profile_kernel_chains_key, false);
	hook_keys_register(HOOK_PAGE_ALLOC, &profile_kernel_chains_key, false);
	stack_switch(&chains_switch, starts_on, true);
}

void kernel_chains_switch(bool on)
{
	stack_switch(&chains_switch, on, false);
}

static int write_chains(const char *text)
{
	return stack_switch_write(&chains_switch, text);
}

/* The memory is the machine's, so the tables are in the same reports as those by place. */
static void print(const struct report *report)
{
	if (report->is_run || (report->proc && run_is_last_process()))
		report_print_kernel_leaks(report);
	if (report->proc)
		report_print_kernel_leaks_of_process(report);
	if (report->wide || (!report->proc && !report->is_run))
		report_print_kernel_chains(report);
}

static void print_all(const void *unused)
{
	report_print_kernel_chains(&(struct report){ .top = REPORT_TOP_ALL });
}

static void print_stacks(const void *unused)
{
	report_print_kernel_stacks();
}

static void print_records(const void *unused)
{
	report_print_kernel_chain_records();
}

static void print_freed_stacks(const void *unused)
{
	report_print_freed_stacks();
}

static void print_free_records(const void *unused)
{
	report_print_free_records();
}

/* Leads to the names of their functions in an export. */
static void visit_chains(report_chain_fn *visit)
{
	const struct kernel_chain_view *view = &kernel_chain_view;
	const struct kernel_frees_view *frees = &kernel_frees_view;

	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		kernel_chains_make_view(kind, false);
		for (u32 i = 0; i < view->nr_rows; i++) {
			const struct kernel_chain *chain = view->rows[i].chain;

			if (chain)
				visit(&(struct report_chain){ .comm = chain->comm,
							      .call = OS_NO_SYSCALL,
							      .nr_kernel = chain->nr_pcs,
							      .kernel = chain->pcs });
		}
		kernel_frees_make_view(kind);
		for (u32 i = 0; i < frees->nr_rows; i++) {
			const struct kernel_free *by = frees->rows[i].by;

			visit(&(struct report_chain){ .comm = by->comm,
						      .call = OS_NO_SYSCALL,
						      .nr_kernel = by->nr_pcs,
						      .kernel = by->pcs });
		}
	}
}

static const struct profiler_file files[] = {
	{ "profile/kernel_chains", "on|off|reset", write_chains, .print = print_all },
	{ "profile/kernel_chains.json", .print = print_all, .is_json = true },
	{ "profile/kernel_stacks", .print = print_stacks },
	{ "profile/kernel_stacks.json", .print = print_records, .is_json = true },
	{ "profile/kernel_freed_stacks", .print = print_freed_stacks },
	{ "profile/kernel_freed_stacks.json", .print = print_free_records, .is_json = true },
	{ 0 },
};

PROFILER(kernel_chains) = {
	.name = "kernel_chains",
	.place = 29, /* after the kernel's memory */
	.init = init,
	.reset = forget_off_time, /* the profiler of memory sets the mark */
	.print = print,
	.visit_chains = visit_chains,
	.files = PROFILER_FILES(files),
};
