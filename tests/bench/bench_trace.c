// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the instructions of an event with two arguments: switched off, recorded, rejected by a
 * filter, counted, in a histogram, and with its call chain. The method is that of bench_points.c.
 */
#include <lego/selftest.h>

#include "../../kernel/profile/trace/trace.h"
#include "pairs.h"
#include <asm/irqflags.h>
#include <lego/printk.h>

#define NR_EVENTS 10000

DEFINE_PAIRS(no_event, , )
DEFINE_PAIRS(event, , profile_trace(sys_exit, 39, -11))

static void time_events(const char *name, void (*events)(int nr))
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc(), cycles;

	events(NR_EVENTS);
	cycles = rdtsc() - start;
	local_irq_restore(flags);
	printk("bench: %s %llu %d\n", name, (unsigned long long)cycles, NR_EVENTS);
}

static struct trace_event *find_event(void)
{
	struct trace_event *event;

	trace_for_each_event(event) {
		if (event->key == &profile_trace_key_sys_exit)
			return event;
	}
	return NULL;
}

SELFTEST(bench, trace)
{
	struct trace_event *event = find_event();

	ASSERT(event);
	ASSERT(!trace_switch_event(event, true));
	time_events("event_none", no_event_pairs);
	time_events("event_on", event_pairs);
	EXPECT_EQ(trace_set_filters(event->system, event->name, "id == 40"), 0);
	time_events("event_filtered", event_pairs);
	EXPECT_EQ(trace_set_filters(event->system, event->name, "0"), 0);
	EXPECT_EQ(trace_switch_event(event, false), 0);
	EXPECT_EQ(trace_write_count("1", event), 0);
	time_events("event_counted", event_pairs);
	EXPECT_EQ(trace_write_count("0", event), 0);
	EXPECT_EQ(trace_write_trigger("hist:keys=id", event), 0);
	time_events("event_hist", event_pairs);
	EXPECT_EQ(trace_truncate_triggers(event), 0);
	EXPECT_EQ(trace_switch_event(event, true), 0);
	trace_set_stacks(true);
	time_events("event_stack", event_pairs);
	trace_set_stacks(false);
	EXPECT_EQ(trace_switch_event(event, false), 0);
	time_events("event_off", event_pairs);
	EXPECT_EQ(trace_resize_rings(0), 0);
}
