// SPDX-License-Identifier: BSD-2-Clause
/*
 * SysRq w: what each thread of a process waits for now, since when, and in which functions of the
 * kernel. For a machine that hangs: its report would add up waits, and show only the longest.
 */

#include "waits.h"

static u32 nr_waiting;

static void print_thread(unsigned int cpu, const struct wait_record *rec)
{
	u64 us = os_cycles_to_ns(rec->max_cycles) / (NS_PER_SEC / 1000000);
	const char *name = rec->name ? rec->name : "an event without a name";
	char comm[17], what[WAIT_NAME_BYTES], line[400];
	size_t len;

	report_wait_comm(comm, rec->comm);
	if (rec->addr)
		os_snprintf(what, sizeof(what), "%s %#lx", name, rec->addr);
	else
		os_strscpy(what, rec->kind == WAIT_PREEMPTED ? "a CPU" : name, sizeof(what));
	len = os_snprintf(line, sizeof(line), "%s (pid %u) has waited %lu.%06lu s for %s in ", comm,
			  stack_process_pid(rec->process), us / 1000000, us % 1000000, what);
	report_add_wait_chain(line, sizeof(line), len, rec, true);
	report_printf("%s\n", line);
	nr_waiting++;
}

static void print_threads(const struct report *unused)
{
	nr_waiting = 0;
	waits_pin();
	waits_visit_in_flight(NULL, print_thread);
	waits_unpin();
	report_printf("threads that wait: %u\n", nr_waiting);
}

static void print_waiting(void)
{
	if (!report_try_print(print_threads))
		os_printk("profile: no list of waits: a report is being printed\n");
}
OS_SYSRQ_KEY(profile_waiting, 'w', "print what each thread waits for", print_waiting);
