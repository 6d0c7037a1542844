// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registers trace as a profiler: its start, the boot parameter trace_event=, and its four files of
 * an export. Its other files are in /sys/kernel/tracing (files.c).
 */

#include "../event_keys.h"
#include "../hook_keys.h"
#include "../profiler.h"
#include "../report.h"
#include "../words.h"
#include "pids.h"
#include "trace.h"

/* The values of trace_event=, until init() switches these events on. */
static char wanted_events[256];

/* Adds to the list, so that the parameter can be given several times. */
static int set_events(const char *value)
{
	size_t used = strlen(wanted_events);

	if (used + 1 + strlen(value) >= sizeof(wanted_events))
		return -OS_EINVAL;
	if (used)
		wanted_events[used++] = ',';
	memcpy(wanted_events + used, value, strlen(value) + 1);
	return 0;
}
/* Events to record from boot on; may be given several times. Without it, no event is on. */
OS_BOOT_PARAM(trace_event, "trace_event", "[<system>:]<event>[,...]", set_events);

const struct trace_event *trace_find_event(u32 id)
{
	struct trace_event *event;

	if (trace_calls && id >= trace_calls->id && id <= trace_calls_end[-1].id)
		return &trace_calls[id - trace_calls->id];
	for (event = __start_trace_events; event < __stop_trace_events; event++) {
		if (event->id == id)
			return event;
	}
	return NULL;
}

/* Returns the offset of the thread that an event switches to or wakes; 0: none. */
static u16 offset_of_other_tid(const struct trace_event *event)
{
	const struct trace_field *field = NULL;

	if (!strcmp(event->name, "sched_switch"))
		field = trace_find_field(event, "next_pid");
	else if (!strcmp(event->name, "sched_wakeup"))
		field = trace_find_field(event, "pid");
	return field ? field->offset : 0;
}

bool profile_trace_wants_tick(void)
{
	return !trace_session_is_on() ||
	       (!os_task_idle(os_current_task()) && !report_is_made_here());
}

static void write_sample(u64 ip, bool user, u32 code_map)
{
	profile_trace_tick(sample, ip, user, code_map);
}

static void init(void)
{
	char word[sizeof(wanted_events)];
	const char *words = wanted_events;
	struct trace_event *event;

	hook_keys_register(HOOK_CALL, &profile_trace_key_sys_enter, false);
	hook_keys_register(HOOK_CALL, &profile_trace_key_sys_exit, false);
	hook_keys_register(HOOK_SWITCH, &profile_trace_key_sched_switch, false);
	hook_keys_register(HOOK_KMALLOC, &profile_trace_key_kmalloc, false);
	hook_keys_register(HOOK_KMALLOC, &profile_trace_key_kfree, false);
	hook_keys_register(HOOK_PAGE_ALLOC, &profile_trace_key_mm_page_alloc, false);
	hook_keys_register(HOOK_PAGE_ALLOC, &profile_trace_key_mm_page_free, false);
	if (!trace_calls_init())
		os_printk("profile: no memory for the events of system calls\n");
	/* One key for both, so that point_end is recorded whenever point_begin is. */
	trace_for_each_event(event) {
		if (event->key == &profile_trace_key_point_end)
			event->key = &profile_trace_key_point_begin;
	}
	profile_event_writers = (struct profile_event_writers){
		.point_begin = profile_trace_point_begin,
		.point_end = profile_trace_point_end,
		.sample = write_sample,
	};
	trace_for_each_event(event)
		event->other_tid = offset_of_other_tid(event);
	trace_add_files();
	/* As on Linux, a wrong name leaves the other events of the list switched on. */
	while (words_next(&words, word, sizeof(word)) > 0) {
		if (trace_switch_words(word))
			os_printk("profile: trace_event=%s: cannot be switched on\n", word);
	}
}

PROFILE_CONTROL(trace_event, "trace_event", "[!][<system>:]<event>[,...]", "", trace_switch_words);

static void trace_exec(struct profile_process *unused)
{
	profile_trace_task(os_current_task());
}

static void begin_task(os_task_t *task)
{
	profile_trace_task(task);
	trace_pids_fork(task);
}

static const struct profiler_file files[] = {
	{ "profile/trace_events.json", .print = trace_print_events_json, .is_json = true },
	{ "profile/trace_tasks.json", .print = trace_print_tasks_json, .is_json = true },
	{ "profile/trace_calls.json", .print = trace_print_calls_json, .is_json = true },
	{ "profile/trace_cpus.json", .print = trace_print_cpus_json, .is_json = true },
	{ "profile/trace_pages.json", .print = trace_print_pages_json, .is_json = true },
	{ 0 },
};

PROFILER(trace) = {
	.name = "trace",
	.place = 40, /* after points, which measure the cost of a pair without events */
	.init = init,
	.process_exec = trace_exec,
	.task_init = begin_task,
	.files = PROFILER_FILES(files),
};
