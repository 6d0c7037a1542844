// SPDX-License-Identifier: BSD-2-Clause
/* When samples are taken: deadlines, what becomes of late ones, NMIs, and the controls. */

#include "unit.h"

#define PERIOD 1000000ull /* at 1000 Hz; a cycle is a nanosecond */
#define TEXT   0xffffffff81000000ull

static struct source_snapshot snap;
static u64 nr_samples, last_sample, last_late, sample_costs;
static bool last_in_nmi;
static int nr_resets;

/* What the store would do. */
void sample_take(const struct pt_regs *regs, u64 start_cycles, u64 late_cycles, u32 in_nmi)
{
	nr_samples++;
	last_sample = host_now;
	last_late = late_cycles;
	last_in_nmi = in_nmi;
	host_now += sample_costs;
}

void sample_reset(void)
{
	nr_resets++;
}

static void apply(const char *words)
{
	assert_int_equal(host_file_write("profile/source", words), 0);
}

static int setup(void **state)
{
	static bool ready;

	host_cpu = 0;
	host_idle = false;
	host_panicking = false;
	host_nmi_timer = "test";
	sample_costs = 0;
	if (!ready)
		source_init();
	ready = true;
	apply("off");
	apply("on source timer hz 1000 seed 1");
	source_reset();
	nr_samples = nr_resets = 0;
	host_log_clear();
	return 0;
}

/* The timer's interrupt, so many cycles late. */
static void timer_comes(u64 late_cycles)
{
	struct pt_regs regs = { .pc = TEXT + 0x10 };

	host_now = max(host_now, host_timer_deadline) + late_cycles;
	profile_tick(&regs);
	host_timer_rearm();
}

static void nmi_comes(bool irqs_off)
{
	struct pt_regs regs = { .pc = TEXT, .irqs_off = irqs_off };
	bool handled = false;

	profile_nmi(&regs, &handled);
	assert_true(handled);
}

static void expect_due(u64 taken, u64 missed, u64 own)
{
	source_snapshot(&snap);
	assert_int_equal(snap.all.taken, taken);
	assert_int_equal(snap.all.missed, missed);
	assert_int_equal(snap.all.own, own);
}

/* One in each slot, anywhere in it. */
static void test_one_deadline_in_each_slot(void **state)
{
	u64 start, nr_quarter[4] = {};

	timer_comes(0);
	start = last_sample;
	for (int i = 1; i < 10000; i++) {
		u64 before = last_sample;

		timer_comes(0);
		assert_true(last_sample > before && last_sample - before < 2 * PERIOD);
		nr_quarter[last_sample % PERIOD * 4 / PERIOD]++;
	}
	/* The mean does not drift: 10000 slots, the ends somewhere in theirs. */
	assert_true(last_sample - start > 9998 * PERIOD && last_sample - start < 10000 * PERIOD);
	for (int i = 0; i < 4; i++)
		assert_in_range(nr_quarter[i], 2300, 2700);
	assert_int_equal(nr_samples, 10000);
	expect_due(10000, 0, 0);
	assert_int_equal(snap.all.late, 0);
}

static void test_no_jitter(void **state)
{
	apply("seed none");
	timer_comes(0);
	for (int i = 0; i < 100; i++) {
		u64 before = last_sample;

		timer_comes(0);
		assert_int_equal(last_sample - before, PERIOD);
	}
}

static void test_seeds(void **state)
{
	u64 first[HOST_NR_CPUS], at;

	host_now = 7 * PERIOD;
	apply("seed 2");
	host_now = 7 * PERIOD;
	apply("seed 3");
	for (int cpu = 0; cpu < HOST_NR_CPUS; cpu++) {
		first[cpu] = per_cpu(profile_deadline, cpu);
		for (int other = 0; other < cpu; other++)
			assert_int_not_equal(first[cpu], first[other]);
	}
	timer_comes(0);
	at = last_sample;
	for (int round = 0; round < 2; round++) {
		apply("seed 2");
		host_now = 7 * PERIOD;
		apply(round ? "seed 4" : "seed 3");
		assert_int_equal(per_cpu(profile_deadline, 0) == first[0], !round);
		timer_comes(0);
		assert_int_equal(last_sample == at, !round);
	}
}

/* Not a sample is made up for those that a late one stands for, but all are counted. */
static void test_late(void **state)
{
	u64 due;

	timer_comes(900 * PERIOD);
	assert_int_equal(nr_samples, 1);
	assert_int_equal(last_late, 900 * PERIOD);
	source_snapshot(&snap);
	assert_in_range(snap.all.missed, 899, 901);
	assert_int_equal(snap.all.late, 1);
	assert_int_equal(snap.nr_stretches, 1);
	assert_int_equal(snap.longest[0].cycles, 900 * PERIOD);
	assert_int_equal(snap.longest[0].pc, TEXT + 0x10);
	due = snap.all.taken + snap.all.missed;
	/* The deadline is in the future again, in the slot behind. */
	assert_in_range(per_cpu(profile_deadline, 0) - host_now, 1, 2 * PERIOD);
	for (int i = 0; i < 99; i++)
		timer_comes(0);
	expect_due(100, due - 1, 0);
	assert_int_equal(snap.all.late, 1);
	report_print_source(&snap);
	assert_non_null(strstr(host_log, "late, or not at all)"));
	host_log_clear();
	report_print_unseen(&snap);
	assert_non_null(strstr(host_log, "     900000000    0       1  test             "
					 "ffffffff81000010  fn_0+0x10\n"));
}

/* Normal lateness is no news; a bit more is. */
static void test_limit(void **state)
{
	source_snapshot(&snap);
	timer_comes(snap.limit_ns);
	source_snapshot(&snap);
	assert_int_equal(snap.all.late, 0);
	timer_comes(snap.limit_ns + 1);
	source_snapshot(&snap);
	assert_int_equal(snap.all.late, 1);
	assert_in_range(snap.limit_ns, 100, 120); /* os_wait_for_interrupt() */
}

static void test_longest_are_kept(void **state)
{
	for (u64 i = 1; i <= 20; i++)
		timer_comes((i * 7 % 20 + 1) * 1000);
	source_snapshot(&snap);
	assert_int_equal(snap.nr_stretches, NR_STRETCHES);
	for (u64 i = 0; i < NR_STRETCHES; i++)
		assert_int_equal(snap.longest[i].cycles, (20 - i) * 1000);
	host_now++;
	source_reset();
	source_snapshot(&snap);
	assert_int_equal(snap.nr_stretches, 0);
	timer_comes(500);
	source_snapshot(&snap);
	assert_int_equal(snap.nr_stretches, 1);
	assert_int_equal(snap.longest[0].cycles, 500);
}

/* A rate the sampler cannot keep up with: half of the time is for the others all the same. */
static void test_own(void **state)
{
	u64 nr_due, start;

	apply("hz 100000");
	sample_costs = 30000;
	start = host_now;
	for (int i = 0; i < 1000; i++) {
		u64 before = last_sample;

		timer_comes(0);
		assert_true(i == 0 || last_sample - before > 60000);
	}
	source_snapshot(&snap);
	assert_int_equal(snap.all.taken, 1000);
	assert_int_equal(snap.all.missed, 0);
	nr_due = snap.all.taken + snap.all.own;
	assert_in_range(nr_due, (host_now - start) / 10000 - 2, (host_now - start) / 10000 + 8);
}

static void test_off(void **state)
{
	apply("off");
	assert_int_equal(per_cpu(profile_deadline, 0), ~0ull);
	assert_int_equal(nr_resets, 0);
	timer_comes(0);
	assert_int_equal(nr_samples, 0);
	host_now = 0;
	apply("on");
	assert_int_equal(nr_resets, 0);
	timer_comes(0);
	assert_int_equal(nr_samples, 1);
}

static void test_nmi(void **state)
{
	apply("source nmi");
	assert_int_equal(nr_resets, 1);
	assert_int_equal(host_nmi_hz, 1000);
	assert_int_equal(per_cpu(profile_deadline, 0), ~0ull);
	for (int i = 1; i <= 10; i++) {
		host_now += PERIOD;
		nmi_comes(i <= 4);
		host_now += 10;
		nmi_comes(false); /* its echo */
	}
	assert_int_equal(nr_samples, 10);
	assert_int_equal(host_nr_nmis_moved, 10);
	assert_true(last_in_nmi);
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].taken, 10);
	assert_int_equal(snap.cpus[0].missed, 0);
	assert_int_equal(snap.cpus[0].echoes, 10);
	assert_int_equal(snap.cpus[1].missed, 10);
	assert_int_equal(snap.all.irqs_off, 4);
	/* While they are off none is due. */
	host_now += 5 * PERIOD;
	apply("off");
	assert_int_equal(host_nmi_hz, 0);
	host_now += 100 * PERIOD;
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].missed, 5);
	apply("on");
	host_now += PERIOD;
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].missed, 6);
	source_reset();
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].missed, 0);
	host_panicking = true;
	host_now += PERIOD;
	nmi_comes(false);
	assert_int_equal(nr_samples, 10);
}

static void test_nmi_moves(void **state)
{
	apply("source nmi");
	host_nr_nmis_moved = 0;
	/* With jitter one may come soon after another; only the boot CPU moves the next one. */
	for (int i = 0; i < 4; i++) {
		host_now += PERIOD / 8;
		nmi_comes(false);
		host_cpu = 1;
		nmi_comes(false);
		host_cpu = 0;
	}
	assert_int_equal(nr_samples, 8);
	assert_int_equal(host_nr_nmis_moved, 4);
	/* Without, they are echoes, and none is moved. */
	apply("seed none");
	host_now += PERIOD;
	nmi_comes(false);
	host_now += PERIOD / 8;
	nmi_comes(false);
	assert_int_equal(nr_samples, 9);
	assert_int_equal(host_nr_nmis_moved, 4);
}

/* Without a timer that can, the boot CPU sends them. */
static void test_nmi_by_ipi(void **state)
{
	host_nmi_timer = NULL;
	apply("source nmi");
	assert_int_not_equal(per_cpu(profile_deadline, 0), ~0ull);
	assert_int_equal(per_cpu(profile_deadline, 1), ~0ull);
	host_nr_nmis_sent = 0;
	for (int i = 0; i < 10; i++) {
		timer_comes(0);
		host_cpu = 1;
		nmi_comes(true);
		host_cpu = 0;
	}
	assert_int_equal(host_nr_nmis_sent, 10);
	assert_int_equal(nr_samples, 20);
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].missed, 0);
	assert_int_equal(snap.cpus[1].missed, 0);
	assert_int_equal(snap.cpus[2].missed, 10);
	report_print_source(&snap);
	assert_non_null(strstr(host_log, "source: nmi by IPI of CPU 0's timer, 1000 Hz"));
}

static void test_words(void **state)
{
	static const char *const bad[] = { "hz",      "hz 0",	"hz 100001",
					   "hz 5x",   "source", "source pmu",
					   "seed -1", "offf",	"on hz 10 seed",
					   "997" };

	apply("source nmi hz 500\nseed none off\n");
	assert_string_equal(host_file_read("profile/source"),
			    "off\nsource nmi\nhz 500\nseed none\n");
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(host_file_write("profile/source", bad[i]), -EINVAL);
		assert_string_equal(host_file_read("profile/source"),
				    "off\nsource nmi\nhz 500\nseed none\n");
	}
	nr_resets = 0;
	apply("reset");
	assert_int_equal(nr_resets, 1);
	apply("");
	apply("off hz 500");
	assert_int_equal(nr_resets, 1);
	apply("hz 501");
	assert_int_equal(nr_resets, 2);
	apply("seed 18446744073709551615 source timer on");
	assert_string_equal(host_file_read("profile/source"),
			    "on\nsource timer\nhz 501\nseed 18446744073709551615\n");
}

static void test_parameters(void **state)
{
	static const char *const bad_hz[] = { "", "0", "100001", "-5", "1k" };

	for (u32 i = 0; i < ARRAY_SIZE(bad_hz); i++)
		assert_int_equal(host_set_param("profile.hz", bad_hz[i]), -EINVAL);
	assert_int_equal(host_set_param("profile.hz", "1"), 0);
	assert_int_equal(host_set_param("profile.hz", "100000"), 0);
	assert_int_equal(host_set_param("profile.source", "hpet"), -EINVAL);
	assert_int_equal(host_set_param("profile.source", ""), -EINVAL);
	assert_int_equal(host_set_param("profile.source", "timer"), 0);
	assert_int_equal(host_set_param("profile.source", "nmi"), 0);
	assert_int_equal(host_set_param("profile.seed", ""), -EINVAL);
	assert_int_equal(host_set_param("profile.seed", "none"), 0);
	assert_int_equal(host_set_param("profile.seed", "12"), 0);
}

#define TEST(fn) cmocka_unit_test_setup(fn, setup)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_limit),      TEST(test_one_deadline_in_each_slot),
		TEST(test_no_jitter),  TEST(test_seeds),
		TEST(test_late),       TEST(test_longest_are_kept),
		TEST(test_own),	       TEST(test_off),
		TEST(test_nmi),	       TEST(test_nmi_moves),
		TEST(test_nmi_by_ipi), TEST(test_words),
		TEST(test_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
