// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the users of sequence counts (kernel/profile/seq.h) in all interleavings (interleave.h):
 * while a CPU counts a wait, counts a sample, stops its source of samples or notes a late
 * interrupt, another one copies these counters. Each copy is of one moment.
 */

#include "unit.h"

#include "../../kernel/profile/samples/source.h"
#include "../../kernel/profile/samples/store.h"
#undef LOG2_RECENT
#undef RECORD_BYTES
#include "../../kernel/profile/waits/store.h"

#define PC     0xffffffff81000010ull
#define CYCLES 10 /* of a wait, of a sample, or of lateness beyond the limit */
#define PERIOD 1000000

static struct process process = { .pid = 1, .comm = "test" };
static struct task task = { .proc = &process };

static void set_up(void)
{
	host_now = 1000;
	host_step = 0;
	host_current = &task;
	if (!sample_newest_generation) {
		sample_init();
		samples_pin(); /* for good: only reports may read their counters */
	}
}

/* Waits: the sums of a record. */
static const struct wait_record *wait_of_task;

static void count_wait(void)
{
	task.profile.waits.out_cycles = host_now - CYCLES;
	profile_wait_ended(host_now);
}

static void read_wait(void)
{
	struct wait_counts counts = waits_read(0, wait_of_task);

	il_check(counts.ready_cycles == CYCLES * counts.nr);
}

static void make_wait(void)
{
	set_up();
	if (!wait_of_task) {
		waits_init();
		host_here = (struct pt_regs){ .pc = PC };
		waits_since_cycles = 0;
		count_wait();
		waits_pin();
		wait_of_task = waits_next(0, NULL);
		waits_unpin();
	}
	il_share((void *)wait_of_task, offsetof(struct wait_record, process));
	il_share(&os_per_cpu(wait_cpus, 0).store.seq, sizeof(u64));
}

/* Samples: the counters of the store. */
static void take_sample(void)
{
	const struct pt_regs regs = { .pc = PC };

	sample_take(&regs, host_now - CYCLES, 0);
}

static void read_counts(void)
{
	const struct sample_stats *stats = samples_stats(0);

	sample_read_cpu(0, false);
	il_check(stats->self_cycles == CYCLES * stats->nr_later);
}

static void make_sample(void)
{
	struct sample_cpu *s = &os_per_cpu(sample_cpus, 0);

	set_up();
	take_sample();
	il_share(&s->store.seq, sizeof(u64));
	il_share(&s->counts, sizeof(s->counts));
}

/* The source: samples that are expected by the clock were taken, lost, or not taken by itself. */
static void stop_source(void)
{
	source_time_here(false);
}

static void read_source(void)
{
	struct source_pin pin;

	source_pin_cpu(0, &pin);
	il_check(pin.expected == pin.counts.lost[LATE_KERNEL] + pin.pending);
	il_check(pin.nr_switches == 1 + (pin.counts.lost[LATE_KERNEL] > 0));
}

static void start_source(void)
{
	struct source_cpu *s = &os_per_cpu(source_cpus, 0);

	set_up();
	memset(s, 0, sizeof(*s));
	source_set_slots(1000000000 / PERIOD, false);
	source_time_here(true);
	host_now += 5 * PERIOD + PERIOD / 2;
	il_share(s, sizeof(*s));
	il_keep(&os_per_cpu(profile_deadline, 0), sizeof(u64));
}

/* The source: the longest stretches with interrupts off. */
static void count_late(void)
{
	const struct pt_regs regs = { .pc = PC };

	profile_timer_came(&regs, os_cycles());
}

static struct source_snapshot snap;

static void read_stretches(void)
{
	source_snapshot(&snap);
	for (u32 i = 0; i < snap.nr_stretches; i++) {
		il_check(snap.longest[i].cycles == source.late_limit + CYCLES);
		il_check(snap.longest[i].pc == PC);
	}
}

static void read_one_stretch(void)
{
	read_stretches();
	il_check(snap.nr_stretches == 1);
}

static void start_late_source(void)
{
	start_source();
	source.late_limit = 100;
	host_timer_deadline = host_now - source.late_limit - CYCLES;
	os_per_cpu(profile_deadline, 0) = ~0ull;
}

/* These loads are volatile, so they keep their order. */
#define VOLATILE " seq_try_again:pf_mb "

const struct il_test il_tests[] = {
	{ "waits", make_wait, { { count_wait, 0 }, { read_wait, 1 } }, read_wait, 3, VOLATILE },
	{ "samples", make_sample, { { take_sample, 0 }, { read_counts, 1 } }, read_counts, 3, "" },
	{ "source", start_source, { { stop_source, 0 }, { read_source, 1 } }, read_source, 3, "" },
	{ "stretches",
	  start_late_source,
	  { { count_late, 0 }, { read_stretches, 1 } },
	  read_one_stretch,
	  2,
	  "" },
	{ 0 },
};
