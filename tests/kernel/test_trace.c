// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events on the machine, written by all CPUs at once, in interrupts and in the code that they
 * interrupt.
 */

#include <asm/irqflags.h>
#include <lego/profile.h>
#include <lego/selftest.h>
#include <lego/smp.h>

#include "../../kernel/profile/trace/hist.h"

#define NR_EVENTS 500
#define CALLED	  1000 /* the id of events of smp_call_mask() */

static struct trace_event *find_event(void)
{
	struct trace_event *event;

	trace_for_each_event(event) {
		if (event->key == &profile_trace_key_sys_exit)
			return event;
	}
	return NULL;
}

static void write_called(void *unused)
{
	profile_trace(sys_exit, CALLED, smp_processor_id());
}

static void write_other(void *unused)
{
	profile_trace(sys_exit, CALLED + 1, smp_processor_id());
}

/* Checks and counts one CPU's events: none is lost, and time does not go backwards. */
static void count_events(u32 cpu, u64 *nr_called, u64 *nr_in_irq, u64 *nr_others)
{
	static struct ring_reader reader;
	struct ring_event event;
	u64 last_cycles = 0;

	ring_reader_init(&reader, cpu);
	while (ring_read(&reader, &event)) {
		const s64 *fields = (const s64 *)(event.content + 1);
		bool in_irq = event.content->flags & PROFILE_TRACE_HARDIRQ;

		EXPECT_EQ(event.lost, 0);
		EXPECT(event.cycles >= last_cycles);
		EXPECT(!in_irq || fields[0] == CALLED);
		EXPECT_EQ(fields[1], cpu);
		last_cycles = event.cycles;
		*nr_in_irq += in_irq;
		*nr_called += fields[0] == CALLED;
		*nr_others += fields[0] != CALLED;
	}
}

/* Writes events in thread context and, through smp_call_mask(), in interrupts on all other CPUs. */
SELFTEST(trace, all_cpus_in_interrupts)
{
	struct trace_event *event = find_event();
	u64 nr_called = 0, nr_in_irq = 0, nr_others = 0;
	unsigned int cpu, nr_cpus_online = 0;

	ASSERT(event);
	ASSERT(!trace_switch_event(event, true));
	ring_clear();
	for (int i = 0; i < NR_EVENTS; i++) {
		smp_call_mask(cpu_online_mask, write_called, NULL);
		profile_trace(sys_exit, i, smp_processor_id());
	}
	EXPECT_EQ(trace_switch_event(event, false), 0);
	for_each_online_cpu(cpu) {
		count_events(cpu, &nr_called, &nr_in_irq, &nr_others);
		nr_cpus_online++;
	}
	EXPECT_EQ(nr_others, NR_EVENTS);
	EXPECT_EQ(nr_called, NR_EVENTS * nr_cpus_online);
	/* smp_call_mask() calls the function directly on its own CPU, without an interrupt. */
	EXPECT_EQ(nr_in_irq, NR_EVENTS * (nr_cpus_online - 1));
	EXPECT_EQ(trace_resize_rings(0), 0);
}

/* Returns the number of events in a CPU's table of the event's only histogram. */
static u64 nr_in_hist(const struct trace_event *event, unsigned int cpu)
{
	const struct hist_table *table = event->hists->tables->of_cpu[cpu];
	u64 nr = 0;

	EXPECT_EQ(table->nr_lost, 0);
	for (u32 i = 0; i < table->nr_rows; i++) {
		const u64 *row = rows_at(&table->rows, i);

		EXPECT_EQ(row[0], cpu);	     /* common_cpu */
		EXPECT_EQ((s64)row[1], cpu); /* ret */
		nr += row[event->hists->key_words];
	}
	EXPECT_EQ(table->nr_rows, 2); /* of two ids */
	return nr;
}

/* Threads and interrupts add events to the same tables. None is missing. */
SELFTEST(trace, hists_of_all_cpus_in_interrupts)
{
	struct trace_event *event = find_event();
	unsigned int cpu, nr_cpus_online = 0;
	u64 nr = 0;

	ASSERT(event);
	ASSERT(!trace_write_trigger("hist:keys=common_cpu,ret,id", event));
	for_each_online_cpu(cpu)
		nr_cpus_online++;
	for (int i = 0; i < NR_EVENTS; i++) {
		smp_call_mask(cpu_online_mask, write_called, NULL);
		smp_call_mask(cpu_online_mask, write_other, NULL);
	}
	for_each_online_cpu(cpu)
		nr += nr_in_hist(event, cpu);
	EXPECT_EQ(nr, 2 * NR_EVENTS * nr_cpus_online);
	EXPECT_EQ(trace_truncate_triggers(event), 0);
	EXPECT(!event->hists);
	EXPECT(!os_key_is_set(event->key));
}
