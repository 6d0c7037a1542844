/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_SOURCE_UNIT_H
#define TESTS_SOURCE_UNIT_H

/*
 * Shared by the tests of the source of samples: a store that only counts samples, and simulated
 * interrupts.
 */

#include "unit.h"

#define PERIOD 1000000ull /* at 1000 Hz; a cycle is a nanosecond */
#define TEXT   0xffffffff81000000ull

static struct source_snapshot snap;
static u64 nr_samples, last_sample, sample_costs;
static u64 nr_taken[HOST_NR_CPUS], generations[HOST_NR_CPUS];
static bool last_in_nmi;
static int nr_resets;

/*
 * Stands in for the store. A sample belongs to the generation at its start, even if a reset falls
 * into it.
 */
static bool resets_in_sample, reports_in_sample;
static void (*stalled_in_reset)(void);
static u64 generation;
u64 sample_start_cycles;

static void report_adds_up(void);

void sample_take(const struct pt_regs *regs, u64 start_cycles, u32 in_nmi)
{
	if (generations[host_cpu] != generation) {
		generations[host_cpu] = generation;
		nr_taken[host_cpu] = 0;
		source_first_sample();
	}
	nr_samples++;
	nr_taken[host_cpu]++;
	last_sample = host_now;
	if (resets_in_sample) {
		host_now += sample_costs / 2;
		source_reset();
	}
	last_in_nmi = in_nmi;
	host_now += sample_costs;
	if (reports_in_sample)
		report_adds_up();
}

void sample_reset(void)
{
	nr_resets++;
	sample_start_cycles = host_now;
	if (stalled_in_reset)
		stalled_in_reset();
	generation++;
}

u64 sample_generation(void)
{
	return generation;
}

static inline u64 taken(unsigned int cpu)
{
	return generations[cpu] == generation ? nr_taken[cpu] : 0;
}

void sample_self_cost(u64 *nr, u64 *cycles)
{
	*nr = taken(host_cpu);
	*cycles = 0;
}

const struct sample_stats *samples_stats(unsigned int cpu)
{
	static struct sample_stats stats;

	memset(&stats, 0, sizeof(stats));
	stats.nr_attempts = stats.nr_class[HEAT_KERNEL] = taken(cpu);
	source_pin_cpu(cpu, &stats.source);
	return &stats;
}

static inline void apply(const char *words)
{
	assert_int_equal(host_file_write("profile/source", words), 0);
}

static inline int show_source(os_text_t *text, const void *arg)
{
	source_show(text);
	return 0;
}

static inline int setup(void **state)
{
	static bool ready;

	host_cpu = 0;
	host_idle = false;
	host_panicking = false;
	host_nmi_timer = "test";
	sample_costs = 0;
	reports_in_sample = false;
	if (!ready) {
		source_init();
		os_add_file("profile/source", SOURCE_WORDS, show_source, NULL, source_control);
	}
	ready = true;
	apply("off");
	apply("on source timer hz 1000 seed 1");
	source_reset();
	nr_samples = nr_resets = 0;
	host_log_clear();
	return 0;
}

/* Takes the timer interrupt late_cycles after its deadline. */
static inline void timer_comes(u64 late_cycles)
{
	struct pt_regs regs = { .pc = TEXT + 0x10 };

	host_now = max(host_now, host_timer_deadline) + late_cycles;
	profile_tick(&regs, os_cycles());
	host_timer_rearm();
}

static inline void nmi_comes(bool irqs_off)
{
	struct pt_regs regs = { .pc = TEXT, .irqs_off = irqs_off };
	bool handled = false;

	profile_nmi(&regs, &handled);
	assert_true(handled);
}

/* Checks that the expected samples of every CPU add up. */
static void report_adds_up(void)
{
	source_snapshot(&snap);
	for (int cpu = 0; cpu < HOST_NR_CPUS - 1; cpu++) {
		const struct source_sums *sums = &snap.cpus[cpu];

		assert_int_equal(sums->leftover, 0);
		assert_int_equal(sums->expected, sums->taken + sums->lost + sums->self);
	}
}

/* Checks CPU 0's counts, too. */
static inline void expect_sums(u64 taken, u64 lost, u64 self)
{
	report_adds_up();
	assert_int_equal(snap.cpus[0].taken, taken);
	assert_int_equal(snap.cpus[0].lost, lost);
	assert_int_equal(snap.cpus[0].self, self);
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

#endif
