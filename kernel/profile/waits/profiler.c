// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profiler of waits: its table in a report, its files, and its switch. In /proc/profile, waits
 * has the call chains of all waits, folded, and takes words; wakers adds the call chains of the
 * wakers; waits.json and waits_*.json have the tables. /proc/<pid>/waits and waits.json have the
 * tables of a process.
 */

#include "store.h"

#include "../hook_keys.h"
#include "../profiler.h"
#include "../programs.h"
#include "../table.h"
#include "../words.h"

struct profile_off_time waits_off_time;
static bool starts_on = true;

static int set_waits(const char *value)
{
	return words_on_off(value, &starts_on);
}
/* Whether the places where threads wait are recorded: on by default. */
OS_BOOT_PARAM(profile_waits, "profile.waits", "on|off", set_waits);

static void init(void)
{
	waits_init();
	hook_keys_register(HOOK_SWITCH, &profile_waits_key, true);
	off_time_switch(&waits_off_time, !starts_on, true);
	hook_key_set(&profile_waits_key, starts_on);
}

static void reset_waits(void)
{
	off_time_reset(&waits_off_time);
	waits_reset();
	waits_forget_longest();
}

static int write_waits(const char *text)
{
	bool on;

	if (words_are(text, "reset")) {
		reset_waits();
		return 0;
	}
	if (words_on_off(text, &on))
		return -OS_EINVAL;
	/* A wait that began while waits were off counts from now on. */
	if (waits_off_time.is_off)
		waits_restart_since();
	off_time_switch(&waits_off_time, !on, false);
	hook_keys_begin(&profile_waits_key);
	os_keys_begin();
	hook_keys_add(&profile_waits_key, on || os_key_is_set(&profile_delays_key));
	hook_keys_commit();
	hook_keys_end(&profile_waits_key);
	return 0;
}

PROFILE_CONTROL(profile_waits, "profile.waits", "on|off|reset", "", write_waits);

static void print_stacks(const void *unused)
{
	report_print_wait_stacks(false);
}

static void print_wakers(const void *unused)
{
	report_print_wait_stacks(true);
}

static void print_all(const void *unused)
{
	report_print_waits(&(struct report){ .top = REPORT_TOP_ALL });
}

static void print_calls(const void *unused)
{
	report_print_wait_view(report_print_wait_calls, wait_by_call);
}

static void print_tasks(const void *unused)
{
	report_print_wait_view(report_print_wait_tasks, wait_by_task);
}

static void print_spinlocks(const void *unused)
{
	report_print_wait_view(report_print_spinlocks, wait_by_spinlock);
}

static void print_locks(const void *unused)
{
	report_print_wait_view(report_print_wait_locks, wait_by_lock);
}

static void task_begin(os_task_t *task)
{
	struct profile_task *pt = os_task_profile(task);

	pt->waits.created_cycles = pt->waits.out_cycles = os_cycles();
	pt->waits.longest.generation = pf_read_once(waits_generation);
}

/* The thread's remaining time is not counted, and is no part of its last call, as for strace. */
static void task_end(struct profile_task *pt)
{
	if (!pt->process)
		return;
	pt->waits.call_phase = PROFILE_EXITED << PROFILE_PHASE_SHIFT;
	waits_end_thread(pt);
}

/* All threads have added their sums to the process. */
static void summarize_waits(os_process_t *proc, struct report_summary *summary)
{
	if (!proc)
		return;
	programs_add_threads(&summary->threads, &os_process_profile(proc)->waits.ended_threads);
	os_process_cpu_times(proc, &summary->cpu);
}

static void print_records(const void *unused)
{
	report_print_wait_records();
}

static const struct profiler_file files[] = {
	{ "profile/waits", "on|off|reset", write_waits, .print = print_stacks },
	{ "profile/wakers", .print = print_wakers },
	{ "profile/waits.json", .print = print_all, .is_json = true },
	{ "profile/waits_stacks.json", .print = print_records, .is_json = true },
	{ "profile/waits_calls.json", .print = print_calls, .is_json = true },
	{ "profile/waits_tasks.json", .print = print_tasks, .is_json = true },
	{ "profile/waits_locks.json", .print = print_locks, .is_json = true },
	{ "profile/spinlocks.json", .print = print_spinlocks, .is_json = true },
	{ 0 },
};

/* Prints all tables of a process: also those by system call, by task and by lock. */
static void print_process(const void *proc)
{
	report_print_process_waits((os_process_t *)proc, true);
}

static void print_process_alone(const void *proc)
{
	report_print_process_waits((os_process_t *)proc, false);
}

static int show_process(os_text_t *text, os_process_t *proc)
{
	report_to_text(text, &table_text, print_process, proc);
	return 0;
}

static int show_process_json(os_text_t *text, os_process_t *proc)
{
	report_to_text(text, &table_json, print_process_alone, proc);
	return 0;
}

static const struct profiler_process_file process_files[] = {
	{ "waits", .show = show_process },
	{ "waits.json", .show = show_process_json },
	{ 0 },
};

PROFILER(waits) = {
	.name = "waits",
	.place = 25,
	.init = init,
	.reset = reset_waits,
	.print = report_print_waits,
	.summarize = summarize_waits,
	.find = waits_find,
	.visit_running = waits_visit_running,
	.visit_chains = waits_visit_chains,
	.pin = waits_pin,
	.unpin = waits_unpin,
	.process_ended = waits_note_process,
	.task_init = task_begin,
	.task_exit = task_end,
	.files = PROFILER_FILES(files),
	.process_files = PROFILER_FILES(process_files),
};
