// SPDX-License-Identifier: BSD-2-Clause
/* When samples are taken: deadlines, what becomes of late ones, NMIs, and the controls. */

#include "unit.h"

#define PERIOD 1000000ull /* at 1000 Hz; a cycle is a nanosecond */
#define TEXT   0xffffffff81000000ull

static struct source_snapshot snap;
static u64 nr_samples, last_sample, sample_costs;
static u64 nr_taken[HOST_NR_CPUS], epochs[HOST_NR_CPUS];
static bool last_in_nmi;
static int nr_resets;

/* What the store would do: a sample belongs to the generation that it found. */
static bool resets_in_sample;
static void (*stalled_in_reset)(void);
static u64 generation;
u64 sample_start_cycles;

void sample_take(const struct pt_regs *regs, u64 start_cycles, u32 in_nmi)
{
	if (epochs[host_cpu] != generation) {
		epochs[host_cpu] = generation;
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

static u64 taken(unsigned int cpu)
{
	return epochs[cpu] == generation ? nr_taken[cpu] : 0;
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

static void apply(const char *words)
{
	assert_int_equal(host_file_write("profile/source", words), 0);
}

static int show_source(os_text_t *text, const void *arg)
{
	source_show(text);
	return 0;
}

static int setup(void **state)
{
	static bool ready;

	host_cpu = 0;
	host_idle = false;
	host_panicking = false;
	host_nmi_timer = "test";
	sample_costs = 0;
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

/*
 * Checks CPU 0's numbers, and that on every CPU the samples expected by the clock are accounted
 * for.
 */
static void expect_sums(u64 taken, u64 lost, u64 self)
{
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].taken, taken);
	assert_int_equal(snap.cpus[0].lost, lost);
	assert_int_equal(snap.cpus[0].self, self);
	for (int cpu = 0; cpu < HOST_NR_CPUS - 1; cpu++) {
		const struct source_sums *sums = &snap.cpus[cpu];
		s64 allowed = 1 + snap.nr_switches / snap.nr_cpus;

		assert_true(sums->leftover >= -allowed && sums->leftover <= allowed);
		assert_int_equal(sums->expected,
				 sums->taken + sums->lost + sums->self + sums->leftover);
	}
}

/* Nothing is reset, and samples of both rates add up. */
static void test_borrowed(void **state)
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

/* What was off is on meanwhile, and off again. */
static void test_borrowed_while_off(void **state)
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
	expect_sums(10000, 0, 0);
	assert_in_range(snap.cpus[0].expected, 9999, 10000);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 0);
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

/* No CPU's random numbers are those of another CPU with another seed, not even later on. */
static void test_seeds_share_no_streams(void **state)
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

static void test_cpus_that_take_turns(void **state)
{
	source_snapshot(&snap);
	report_print_source_notes(&snap, false);
	assert_null(strstr(host_log, "take turns"));
	host_counts_instructions = true;
	source_snapshot(&snap);
	host_counts_instructions = false;
	report_print_source_notes(&snap, false);
	assert_non_null(strstr(host_log, "CPUs take turns in this emulator, "));
}

/* What is off now is said besides how it ran. */
static void test_off_says_how_it_ran(void **state)
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

/* Not a sample is made up for those that a late one stands for, but all are counted. */
static void test_late(void **state)
{
	u64 nr_due;

	timer_comes(900 * PERIOD);
	assert_int_equal(nr_samples, 1);
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 899, 901);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 1);
	assert_int_equal(snap.nr_stretches, 1);
	assert_int_equal(snap.longest[0].cycles, 900 * PERIOD);
	assert_int_equal(snap.longest[0].pc, TEXT + 0x10);
	nr_due = snap.cpus[0].taken + snap.cpus[0].lost;
	/* The deadline is in the future again, in the slot behind. */
	assert_in_range(os_per_cpu(profile_deadline, 0) - host_now, 1, 2 * PERIOD);
	for (int i = 0; i < 99; i++)
		timer_comes(0);
	expect_sums(100, nr_due - 1, 0);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 1);
	report_print_source_notes(&snap, true);
	assert_non_null(strstr(host_log, "     900000000    0       1  test             "
					 "ffffffff81000010  fn_0+0x10\n"));
}

/* Normal lateness is no news; a bit more is. */
static void test_limit(void **state)
{
	source_snapshot(&snap);
	timer_comes(snap.limit_ns);
	source_snapshot(&snap);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 0);
	timer_comes(snap.limit_ns + 1);
	source_snapshot(&snap);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 1);
	assert_int_equal(snap.limit_ns, 100); /* os_wait_for_interrupt() */
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
	nr_due = snap.cpus[0].taken + snap.cpus[0].self;
	expect_sums(1000, 0, snap.cpus[0].self);
	assert_in_range(nr_due, (host_now - start) / 10000 - 2, (host_now - start) / 10000 + 8);
}

static void test_off(void **state)
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

static void test_off_leaves_a_trace(void **state)
{
	u64 start = host_now;

	apply("reset");
	source_snapshot(&snap);
	assert_int_equal(snap.off.ns, 0);
	apply("off");
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

static void test_nmi(void **state)
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
	/* Only the boot CPU moves the next one. */
	assert_int_equal(nr_samples, 20);
	assert_int_equal(host_nr_nmis_moved, 10);
	assert_true(last_in_nmi);
	expect_sums(10, 0, 0);
	assert_int_equal(snap.cpus[1].lost, 10);
	/* While they are off none is due. */
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

/* NMIs that nobody asked for are surplus: the report says so. */
static void test_nmis_too_many(void **state)
{
	apply("source nmi");
	for (int i = 0; i < 100; i++) {
		host_now += PERIOD;
		nmi_comes(false);
		nmi_comes(false);
	}
	source_snapshot(&snap);
	assert_int_equal(snap.cpus[0].expected, 100);
	assert_int_equal(snap.cpus[0].taken, 200);
	assert_int_equal(snap.cpus[0].leftover, -100);
	report_print_source_notes(&snap, false);
	assert_non_null(strstr(host_log, "expected: 300 samples by the clock and the rate = 200 "
					 "taken + 200 lost + 0 in the profiler + -100 left over "));
}

/* Each of these faults makes the sums of the timer wrong, and the report shows each. */
static void test_what_does_not_add_up_is_told(void **state)
{
	struct pt_regs regs = { .pc = TEXT };

	for (int i = 0; i < 50; i++)
		timer_comes(0);
	expect_sums(50, 0, 0);
	for (int i = 0; i < 10; i++)
		sample_take(&regs, host_now, 0);
	source_snapshot(&snap);
	assert_true(snap.cpus[0].leftover >= -11 && snap.cpus[0].leftover <= -9);
	nr_taken[0] -= 20;
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].leftover, 9, 11);
	report_print_source_notes(&snap, false);
	assert_non_null(strstr(host_log, " left over (up to "));
}

/* The sums add up with late interrupts, resets, switches off and on, and a slow sampler. */
static void test_all_that_is_expected_is_accounted_for(void **state)
{
	u64 seed = 1;

	for (int i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005ull + 1;
		sample_costs = seed >> 63 ? seed >> 43 & 0x3fffff : 100;
		if (seed >> 56 == 7)
			apply("off");
		else if (seed >> 56 == 8)
			apply("on");
		else if (seed >> 56 == 9)
			source_reset();
		else if (seed >> 60 == 2)
			host_now += (seed >> 30 & 0xf) * PERIOD / 3; /* interrupts are off */
		else if (snap.settings.on)
			timer_comes(seed >> 60 == 3 ? (seed >> 40 & 0xff) * PERIOD / 16 : 0);
		source_snapshot(&snap);
		expect_sums(snap.cpus[0].taken, snap.cpus[0].lost, snap.cpus[0].self);
	}
	assert_true(nr_samples > 5000);
}

/* A deadline that passed before a reset is not lost after it. */
static void test_reset_in_a_stretch(void **state)
{
	struct pt_regs regs = { .pc = TEXT };

	timer_comes(0);
	host_now += 100 * PERIOD;
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 98, 100);
	expect_sums(1, snap.cpus[0].lost, 0);
	source_reset();
	expect_sums(0, 0, 0);
	host_now += 50 * PERIOD;
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 48, 50);
	expect_sums(0, snap.cpus[0].lost, 0);
	profile_tick(&regs);
	host_timer_rearm();
	source_snapshot(&snap);
	assert_in_range(snap.cpus[0].lost, 48, 50);
	expect_sums(1, snap.cpus[0].lost, 0);
	assert_in_range(snap.counts.lost[LATE_KERNEL], 48, 50);
}

static void samples_go_on(void)
{
	static const u64 late[] = { 0, 20 * PERIOD, 0 };

	for (u32 i = 0; i < ARRAY_SIZE(late); i++)
		timer_comes(late[i]);
}

/* A host stops the CPU that resets, while this one goes on, or is late itself. */
static void test_long_reset(void **state)
{
	for (int i = 0; i < 5; i++)
		timer_comes(0);
	stalled_in_reset = samples_go_on;
	source_reset();
	stalled_in_reset = NULL;
	source_snapshot(&snap);
	expect_sums(0, 0, snap.cpus[0].self);
	for (int i = 0; i < 10; i++)
		timer_comes(0);
	source_snapshot(&snap);
	expect_sums(10, 0, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].expected, 9 + snap.cpus[0].self, 10 + snap.cpus[0].self);
}

/* A sample that takes many slots, because a host stops its CPU, and a reset in the middle of it. */
static void test_reset_in_a_sample(void **state)
{
	apply("hz 100000"); /* the next deadline is near */
	sample_costs = PERIOD;
	resets_in_sample = true;
	timer_comes(0);
	resets_in_sample = false;
	sample_costs = 0;
	host_now += 2 * PERIOD;
	source_snapshot(&snap);
	expect_sums(0, snap.cpus[0].lost, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].expected, 299, 301);
}

/* A sample that took long skips deadlines. Then there is a reset, before their time has come. */
static void test_reset_behind_a_long_sample(void **state)
{
	apply("hz 100000");
	sample_costs = PERIOD; /* 100 of these slots, and as many are skipped after it */
	timer_comes(0);
	sample_costs = 0;
	source_reset();
	source_snapshot(&snap);
	expect_sums(0, 0, 0);
	host_now += PERIOD / 2;
	source_snapshot(&snap);
	expect_sums(0, 0, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].self, 49, 51);
	timer_comes(0);
	source_snapshot(&snap);
	expect_sums(1, 0, snap.cpus[0].self);
	assert_in_range(snap.cpus[0].self, 98, 101);
}

/* An idle CPU sleeps with interrupts on: its lateness hides nothing. */
static void test_idle_is_left_out(void **state)
{
	host_idle = true;
	for (int i = 0; i < 20; i++)
		timer_comes(5000);
	host_idle = false;
	source_snapshot(&snap);
	assert_int_equal(snap.counts.late[LATE_IDLE], 20);
	assert_int_equal(snap.counts.late[LATE_KERNEL], 0);
	assert_int_equal(snap.nr_stretches, 0);
}

/* Without a timer that can, the boot CPU sends them. */
static void test_nmi_by_ipi(void **state)
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
		TEST(test_limit),
		TEST(test_one_deadline_in_each_slot),
		TEST(test_borrowed),
		TEST(test_borrowed_while_off),
		TEST(test_no_jitter),
		TEST(test_seeds),
		TEST(test_seeds_share_no_streams),
		TEST(test_late),
		TEST(test_longest_are_kept),
		TEST(test_own),
		TEST(test_off),
		TEST(test_off_says_how_it_ran),
		TEST(test_cpus_that_take_turns),
		TEST(test_off_leaves_a_trace),
		TEST(test_nmi),
		TEST(test_nmis_too_many),
		TEST(test_nmi_by_ipi),
		TEST(test_what_does_not_add_up_is_told),
		TEST(test_all_that_is_expected_is_accounted_for),
		TEST(test_reset_in_a_stretch),
		TEST(test_long_reset),
		TEST(test_reset_in_a_sample),
		TEST(test_reset_behind_a_long_sample),
		TEST(test_idle_is_left_out),
		TEST(test_words),
		TEST(test_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
