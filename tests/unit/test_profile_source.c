// SPDX-License-Identifier: BSD-2-Clause
/* Tests when samples are taken: deadlines, NMIs, and the controls. */

#include "source_unit.h"

/*
 * Another user borrows the source at its own rate. Nothing is reset, and samples of both rates add
 * up.
 */
TEST(borrowed)
{
	for (int i = 0; i < 100; i++)
		timer_comes(0);
	assert_int_equal(source_borrow(0), -OS_EINVAL);
	assert_int_equal(source_borrow(100), 0);
	assert_int_equal(source_borrow(200), -OS_EBUSY);
	assert_int_equal(host_file_write("profile/source", "off"), -OS_EBUSY);
	for (int i = 0; i < 50; i++)
		timer_comes(0);
	assert_int_equal(nr_resets, 0);
	expect_sums(150, 0, 0);
	assert_int_equal(snap.settings.hz, 100);
	assert_true(snap.borrowed.time.is_off && snap.borrowed.ns >= 48 * 10 * PERIOD);
	assert_int_equal(snap.off.ns, 0);
	source_give_back();
	source_give_back();
	for (int i = 0; i < 50; i++)
		timer_comes(0);
	expect_sums(200, 0, 0);
	assert_int_equal(snap.settings.hz, 1000);
	assert_false(snap.borrowed.time.is_off);
	source_reset();
	expect_sums(0, 0, 0);
	assert_int_equal(snap.borrowed.ns, 0);
}

/* Borrowing switches a source on that was off; returning it switches it off again. */
TEST(borrowed_while_off)
{
	apply("off");
	assert_int_equal(source_borrow(1000), 0);
	timer_comes(0);
	assert_int_equal(nr_samples, 1);
	source_give_back();
	source_snapshot(&snap);
	assert_false(snap.settings.on);
	assert_int_equal(snap.borrowed.ns, 0);
	assert_true(snap.off.time.is_off);
}

/* Each slot has one deadline, at a random place in it. */
TEST(one_deadline_in_each_slot)
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
	/*
	 * The mean rate does not drift: the first and last of 10000 deadlines are somewhere in
	 * their slots.
	 */
	assert_true(last_sample - start > 9998 * PERIOD && last_sample - start < 10000 * PERIOD);
	for (int i = 0; i < 4; i++)
		assert_in_range(nr_quarter[i], 2300, 2700);
	assert_int_equal(nr_samples, 10000);
	expect_sums(10000, 0, 0);
	assert_in_range(snap.cpus[0].expected, 9999, 10000);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 0);
}

TEST(no_jitter)
{
	apply("seed none");
	timer_comes(0);
	for (int i = 0; i < 100; i++) {
		u64 before = last_sample;

		timer_comes(0);
		assert_int_equal(last_sample - before, PERIOD);
	}
}

TEST(seeds)
{
	u64 first[HOST_NR_CPUS], at;

	host_now = 7 * PERIOD;
	apply("seed 2");
	host_now = 7 * PERIOD;
	apply("seed 3");
	for (int cpu = 0; cpu < HOST_NR_CPUS; cpu++) {
		first[cpu] = os_per_cpu(profile_deadline, cpu);
		for (int other = 0; other < cpu; other++)
			assert_int_not_equal(first[cpu], first[other]);
	}
	timer_comes(0);
	at = last_sample;
	for (int round = 0; round < 2; round++) {
		apply("seed 2");
		host_now = 7 * PERIOD;
		apply(round ? "seed 4" : "seed 3");
		assert_int_equal(os_per_cpu(profile_deadline, 0) == first[0], !round);
		timer_comes(0);
		assert_int_equal(last_sample == at, !round);
	}
}

static int compare_numbers(const void *a, const void *b)
{
	return compare_u64(*(const u64 *)a, *(const u64 *)b);
}

/*
 * The random numbers of a CPU never equal those of another CPU or seed, nor a later part of them.
 */
TEST(seeds_share_no_streams)
{
	static u64 numbers[512 * 64 * 4];
	size_t nr = 0;

	for (u64 seed = 0; seed < 512; seed++) {
		for (unsigned int cpu = 0; cpu < 64; cpu++) {
			u64 random = source_first_random(seed, cpu);

			for (int i = 0; i < 4; i++) {
				numbers[nr++] = random;
				random = random * 6364136223846793005ull + 1;
			}
		}
	}
	sort(numbers, nr, sizeof(numbers[0]), compare_numbers);
	for (size_t i = 1; i < nr; i++)
		assert_int_not_equal(numbers[i], numbers[i - 1]);
}

/* Prints the notes on user code of which half the samples came late. */
static void print_late_samples(void)
{
	source_snapshot(&snap);
	snap.is_imprecise = true;
	snap.nr_taken[LATE_USER] = 100;
	snap.counts.late[LATE_USER] = 50;
	host_log_clear();
	report_print_source_notes(&snap, false);
}

/* Where CPUs take turns, it is not the host that gives them no time. */
TEST(cpus_that_take_turns)
{
	print_late_samples();
	assert_non_null(strstr(host_log, "the host gave the CPU no time"));
	host_counts_instructions = true;
	print_late_samples();
	host_counts_instructions = false;
	assert_null(strstr(host_log, "late"));
}

/* A report says that sampling is off now, and how it ran before. */
TEST(report_while_off)
{
	apply("seed 5");
	apply("off");
	source_snapshot(&snap);
	report_print_source(&snap);
	assert_string_equal(host_log, "sampling: APIC timer, 1000 per second and CPU at random "
				      "moments (seed 5); off now\n");
	host_log_clear();
	apply("on source nmi");
	apply("off");
	source_snapshot(&snap);
	report_print_source(&snap);
	assert_string_equal(host_log, "sampling: NMI by test, 1000 per second and CPU at random "
				      "moments (seed 5); off now\n");
}

TEST(off)
{
	apply("off");
	assert_int_equal(os_per_cpu(profile_deadline, 0), ~0ull);
	assert_int_equal(nr_resets, 0);
	timer_comes(0);
	assert_int_equal(nr_samples, 0);
	host_now = 0;
	apply("on");
	assert_int_equal(nr_resets, 0);
	timer_comes(0);
	assert_int_equal(nr_samples, 1);
}

TEST(off_leaves_a_trace)
{
	struct task task = { 0 };
	u64 start = host_now;

	apply("reset");
	source_snapshot(&snap);
	assert_int_equal(snap.off.ns, 0);
	host_current = &task;
	apply("off");
	host_current = NULL;
	host_now += 7000;
	source_snapshot(&snap);
	assert_true(snap.off.time.is_off);
	assert_in_range(snap.off.ns, 7000, 7100);
	apply("on");
	source_snapshot(&snap);
	assert_false(snap.off.time.is_off);
	assert_in_range(snap.off.time.from_ns, start, start + 100);
	assert_string_equal((const char *)snap.off.time.comm, "test");
	apply("reset");
	source_snapshot(&snap);
	assert_int_equal(snap.off.ns, 0);
}

TEST(nmi)
{
	apply("source nmi");
	assert_int_equal(nr_resets, 1);
	assert_int_equal(host_nmi_hz, 1000);
	assert_int_equal(os_per_cpu(profile_deadline, 0), ~0ull);
	host_nr_nmis_moved = 0;
	for (int i = 1; i <= 10; i++) {
		host_now += PERIOD;
		nmi_comes(i <= 4);
		host_cpu = 2;
		nmi_comes(false);
		host_cpu = 0;
	}
	/* Only the boot CPU moves the next NMI. */
	assert_int_equal(nr_samples, 20);
	assert_int_equal(host_nr_nmis_moved, 10);
	assert_true(last_in_nmi);
	expect_sums(10, 0, 0);
	assert_int_equal(snap.cpus[1].lost, 10);
	/* While NMIs are off, no sample is due. */
	host_now += 5 * PERIOD;
	apply("off");
	assert_int_equal(host_nmi_hz, 0);
	host_now += 100 * PERIOD;
	expect_sums(10, 5, 0);
	apply("on");
	host_now += PERIOD;
	expect_sums(10, 6, 0);
	source_reset();
	expect_sums(0, 0, 0);
	host_panicking = true;
	host_now += PERIOD;
	nmi_comes(false);
	assert_int_equal(nr_samples, 20);
}

/* Without an NMI timer, the boot CPU sends NMIs to the others. */
TEST(nmi_by_ipi)
{
	host_nmi_timer = NULL;
	apply("source nmi");
	assert_int_not_equal(os_per_cpu(profile_deadline, 0), ~0ull);
	assert_int_equal(os_per_cpu(profile_deadline, 1), ~0ull);
	host_nr_nmis_sent = 0;
	for (int i = 0; i < 10; i++) {
		timer_comes(0);
		host_cpu = 1;
		nmi_comes(true);
		host_cpu = 0;
	}
	assert_int_equal(host_nr_nmis_sent, 10);
	assert_int_equal(nr_samples, 20);
	expect_sums(10, 0, 0);
	assert_int_equal(snap.cpus[1].lost, 0);
	assert_in_range(snap.cpus[2].lost, 9, 10);
	report_print_source(&snap);
	assert_non_null(
		strstr(host_log, "sampling: NMI by CPU 0's APIC timer, 1000 per second and CPU"));
}

TEST(words)
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

TEST(parameters)
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
