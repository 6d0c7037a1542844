// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts events exactly, without a ring that could overflow: the files events/.../count. They count
 * the events that `filter` and set_event_pid let pass, whether these are recorded or not. Each CPU
 * has a counter for each event, and only the CPU itself writes it. Readers add the counters up, and
 * subtract their sum from when counting began.
 */

#include "trace.h"

#include "../words.h"

static OS_DEFINE_PER_CPU(u64 *, trace_counts); /* of each event; NULL: there was no memory */
static bool can_count;			       /* all CPUs have counters */

static u64 index_of(const struct trace_event *event)
{
	u64 nr_others = __stop_trace_events - __start_trace_events;

	return event->call ? nr_others + (event - trace_calls) :
			     (u64)(event - __start_trace_events);
}

void trace_count(const struct trace_event *event)
{
	os_add(os_this_cpu_read(os_local(trace_counts))[index_of(event)], 1);
}

bool trace_counts_init(void)
{
	u64 nr = (__stop_trace_events - __start_trace_events) + (trace_calls_end - trace_calls);
	u64 *counts;
	u32 cpu;

	os_for_each_cpu(cpu) {
		counts = os_zalloc(nr * sizeof(*counts));
		if (!counts)
			return false;
		os_per_cpu(trace_counts, cpu) = counts;
	}
	can_count = true;
	return true;
}

/* Returns the number of events on all CPUs since boot. */
static u64 sum_of(const struct trace_event *event)
{
	const u64 *counts;
	u64 sum = 0;
	u32 cpu;

	os_for_each_cpu(cpu) {
		counts = os_per_cpu(trace_counts, cpu);
		sum += can_count ? pf_read_once(counts[index_of(event)]) : 0;
	}
	return sum;
}

u64 trace_count_of(const struct trace_event *event)
{
	return (event->wanted_slow & TRACE_SLOW_COUNT ? sum_of(event) : event->count_end) -
	       event->count_begin;
}

bool trace_is_counted(const struct trace_event *event)
{
	return event->wanted_slow & TRACE_SLOW_COUNT || trace_count_of(event);
}

static int set_count(struct trace_event *event, const char *text)
{
	bool on = words_are(text, "1");

	if (!on && !words_are(text, "0"))
		return -OS_EINVAL;
	if (on && !can_count)
		return -OS_ENOMEM;
	if (on)
		event->count_begin = sum_of(event);
	trace_set_slow(event, TRACE_SLOW_COUNT, on);
	event->count_end = sum_of(event);
	return 0;
}

int trace_show_count(os_text_t *text, const void *event)
{
	os_text_printf(text, "%lu\n", trace_count_of(event));
	return 0;
}

int trace_write_count(const char *text, const void *event)
{
	return set_count((struct trace_event *)event, text);
}

/* Prints a line for each event that is counted. */
int trace_show_counts(os_text_t *text, const void *system)
{
	struct trace_event *event;

	trace_for_each_event_of(event, system) {
		if (trace_is_counted(event))
			os_text_printf(text, "%s:%s %lu\n", event->system, event->name,
				       trace_count_of(event));
	}
	return 0;
}

int trace_write_counts(const char *text, const void *system)
{
	struct trace_event *event;
	int error = 0;

	trace_for_each_event_of(event, system)
		error = error ?: set_count(event, text);
	return error;
}
