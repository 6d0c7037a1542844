// SPDX-License-Identifier: BSD-2-Clause
/* Tests the store of samples with call chains: records, dropped samples, readers. */

#include "samples_unit.h"

#include "../../kernel/profile/samples/store.h"

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/*
 * A sixteenth of 64 MiB is too little for the full logs of 8 CPUs. Allocations of shorter logs
 * fail, too.
 */
TEST(little_memory)
{
	host_memory_bytes = 64 << 20;
	host_fail_alloc = 1;
	sample_init();
	host_fail_alloc = 0;
	host_memory_bytes = 1 << 30;
	assert_non_null(strstr(host_log, "no memory for samples of CPU 7\n"));
	assert_non_null(strstr(host_log, "memory is short: 16384 bytes, not 1048576, for"));
	take(1);
	assert_int_equal(check_stats().nr_dropped[DROP_NO_MEMORY], 1);
	host_log_clear();
}

/* Runs before the other tests: parameters are read before memory is allocated. */
TEST(parameters)
{
	assert_int_equal(host_set_param("profile.samples", "16383"), -EINVAL);
	assert_int_equal(host_set_param("profile.samples", "2097153"), -EINVAL);
	assert_int_equal(host_set_param("profile.samples", "many"), -EINVAL);
	assert_int_equal(host_set_param("profile.samples", "2097152"), 0);
	assert_int_equal(host_set_param("profile.depth", "0"), -EINVAL);
	assert_int_equal(host_set_param("profile.depth", "128"), -EINVAL);
	assert_int_equal(host_set_param("profile.depth", "8"), 0);
	sample_init();
	assert_string_equal(host_log, "");
}

TEST(equal_samples_share_a_record)
{
	for (int i = 0; i < 5; i++)
		take(1, 2, 3);
	take(1, 2);
	take(1, 2, 4);
	take(1, 3, 2);
	assert_int_equal(check_stats().nr_records, 4);
	host_syscall = 1;
	take(1, 2, 3);
	host_tid = 2;
	take(1, 2, 3);
	strcpy(host_comm, "other");
	take(1, 2, 3);
	host_idle = true;
	take(1, 2, 3);
	assert_int_equal(check_stats().nr_records, 8);
	assert_int_equal(check_stats().nr_stored, 12);
}

static int nr_walks;

static void count_walk(void)
{
	nr_walks++;
}

static int walks_of(const struct pt_regs *regs)
{
	nr_walks = 0;
	host_on_walk = count_walk;
	sample_take(regs, os_cycles(), 0);
	host_on_walk = NULL;
	return nr_walks;
}

/*
 * A sample like the last one needs no walk. Any other sample is walked, and finds its own record.
 */
TEST(sample_like_the_last_is_not_walked)
{
	u64 callers[] = { FN(2) + 8, FN(3) + 8, 0x401000, 0x402000 };
	struct pt_regs regs = {
		.pc = FN(1), .callers = callers, .nr_callers = 2, .nr_user_callers = 2
	};

	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	for (int i = 0; i < 4; i++) {
		callers[i]++;
		assert_int_equal(walks_of(&regs), 1);
		assert_int_equal(walks_of(&regs), 0);
		callers[i]--;
		assert_int_equal(walks_of(&regs), 1);
	}
	/* Shorter, longer and truncated chains. */
	regs.nr_user_callers = 1;
	assert_int_equal(walks_of(&regs), 1);
	regs.nr_user_callers = 0;
	assert_int_equal(walks_of(&regs), 1);
	regs.nr_callers = 1;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	regs.truncated = PROFILE_STACK_TRUNCATED_ENTRY;
	regs.nr_callers = 2;
	regs.nr_user_callers = 2;
	assert_int_equal(walks_of(&regs), 1);
	regs.truncated = PROFILE_STACK_WHOLE;
	assert_int_equal(walks_of(&regs), 1);
	/* A different stack pointer needs a walk, which finds the same record. */
	regs.sp = 0x100;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	assert_int_equal(check_stats().nr_records, 9);
	assert_int_equal(check_stats().nr_stored, 22);
	/* Another task has another record. */
	host_tid = 2;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(check_stats().nr_records, 10);
	/* A reset removes the records. */
	sample_reset();
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	assert_int_equal(check_stats().nr_records, 1);
	assert_int_equal(check_stats().nr_stored, 2);
	/* A sample of user code. */
	regs.user = true;
	regs.nr_callers = 0;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	callers[1]++;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(check_stats().nr_records, 3);
}

TEST(interrupts_off)
{
	struct pt_regs regs = { .pc = FN(1), .irqs_off = true };

	sample_take(&regs, os_cycles(), 1);
	regs.irqs_off = false;
	sample_take(&regs, os_cycles(), 0);
	look(view_functions);
	assert_int_equal(row_of(FN(1), 0)->nr, 2);
	assert_int_equal(row_of(FN(1), 0)->nr_irqs_off, 1);
	/*
	 * An NMI in an interrupt handler. A timer interrupt does not count itself, so it needs a
	 * depth of 2.
	 */
	host_irq_depth = 1;
	sample_take(&regs, os_cycles(), 1);
	assert_int_equal(check_stats().nr_class[HEAT_IRQ], 2);
	assert_int_equal(check_stats().nr_class[HEAT_KERNEL], 1);
}

/* Takes nr different samples with the same number of callers. */
static struct sample_stats take_different(u64 nr, u32 nr_callers)
{
	u64 functions[SAMPLE_MAX_DEPTH] = { 0 };
	struct sample_stats stats;

	for (u64 i = 0; i < nr; i++) {
		functions[0] = i % 1000;
		functions[1] = i / 1000;
		take_stack(functions, 1 + nr_callers);
	}
	stats = check_stats();
	assert_int_equal(stats.nr_attempts, nr);
	return stats;
}

/*
 * Takes samples of different stacks until the hash, then the log, is full. Every sample that does
 * not fit is dropped and counted. The CPU may not switch to another log, as if the worker had no
 * time.
 */
TEST(full)
{
	struct stack_store *store = &os_per_cpu(sample_cpus, 0).store;
	u32 may_switch = store->may_switch;
	struct sample_stats stats;

	store->may_switch = 0;
	stats = take_different(40000, 1);
	assert_true(stats.nr_dropped[DROP_HASH_FULL] > 0);
	assert_int_equal(stats.nr_dropped[DROP_LOG_FULL], 0);
	/* A full store still counts samples of its records, and a reset makes room. */
	take(0, 0);
	assert_int_equal(check_stats().nr_stored, stats.nr_stored + 1);
	sample_reset();
	assert_int_equal(host_set_param("profile.depth", "64"), 0);
	stats = take_different(40000, 63);
	assert_true(stats.nr_dropped[DROP_LOG_FULL] > 0);
	assert_int_equal(stats.nr_dropped[DROP_HASH_FULL], 0);
	assert_true(stats.nr_stored * 64 * sizeof(u64) > SAMPLE_MAX_LOG * 3 / 4);
	take_stack((const u64[64]){ 0 }, 64);
	assert_int_equal(check_stats().nr_stored, stats.nr_stored + 1);
	take_stack((const u64[64]){ 0, 0, 1 }, 64);
	assert_int_equal(check_stats().nr_stored, stats.nr_stored + 1);
	assert_int_equal(check_stats().nr_dropped[DROP_LOG_FULL],
			 stats.nr_dropped[DROP_LOG_FULL] + 1);
	store->may_switch = may_switch;
	assert_int_equal(host_set_param("profile.depth", "8"), 0);
}

static void nest(void)
{
	struct pt_regs regs = { .pc = FN(9) };

	host_on_walk = NULL;
	sample_take(&regs, os_cycles(), 1);
	sample_take(&regs, os_cycles(), 1);
}

TEST(nested_is_dropped)
{
	take(1);
	host_on_walk = nest;
	take(2);
	assert_int_equal(check_stats().nr_attempts, 4);
	assert_int_equal(check_stats().nr_dropped[DROP_NESTED], 2);
	assert_int_equal(check_stats().nr_stored, 2);
	/* An interrupt hits the first sample after a reset. */
	sample_reset();
	host_on_walk = nest;
	take(2);
	assert_int_equal(check_stats().nr_dropped[DROP_NESTED], 2);
}

/* All samples of the printing thread are one record. Interrupts of it have their own records. */
TEST(report_is_one_record)
{
	static struct task task;

	host_current = &task;
	take(1, 2);
	report_printer = os_current_task();
	for (int i = 0; i < 100; i++)
		take(i, 2, 3);
	assert_int_equal(check_stats().nr_stored, 101);
	assert_int_equal(check_stats().nr_records, 2);
	look(view_functions);
	assert_int_equal(row_of((u64)report_printf, 0)->nr, 100);
	assert_int_equal(view.nr_truncated[PROFILE_STACK_TRUNCATED_REPORT], 100);
	host_irq_depth = 2;
	take(1, 2, 3);
	take(2, 2, 3);
	assert_int_equal(check_stats().nr_records, 4);
	host_irq_depth = 1;
	report_printer = NULL;
	take(1, 2, 3);
	assert_int_equal(check_stats().nr_records, 5);
	host_current = NULL;
}

/* Samples stay unchanged while a reader has pinned them. */
TEST(pinned_samples_stay)
{
	take(1, 2);
	samples_pin();
	take(1, 2);
	take(3, 4);
	view_functions(&view, &machine);
	assert_int_equal(view.nr_samples, 1);
	assert_int_equal(view.nr_rows, 2);
	sample_reset();
	take(5, 6);
	take(5, 6);
	view_functions(&view, &machine);
	assert_int_equal(row_of(FN(1), 0)->nr, 1);
	assert_int_equal(view.nr_rows, 2);
	samples_unpin();
	assert_int_equal(check_stats().nr_attempts, 2);
	assert_int_equal(check_stats().nr_dropped[DROP_PINNED], 2);
	take(5, 6);
	assert_int_equal(check_stats().nr_stored, 1);
	look(view_functions);
	assert_int_equal(row_of(FN(5), 0)->nr, 1);
	assert_int_equal(view.nr_rows, 2);
}

#define NR_SAMPLES 200000

static void *write_samples(void *arg)
{
	host_cpu = 1;
	for (u64 i = 0; i < NR_SAMPLES; i++) {
		if (i % 3)
			take(i % 97, i % 5, 3);
		else
			take_user(0x1000 + i % 50);
		if (i == NR_SAMPLES / 2)
			sample_reset();
	}
	return arg;
}

/* The counts add up at each look, even across a reset. */
TEST(reading_during_writes)
{
	pthread_t thread;
	u64 nr = 0;

	assert_int_equal(pthread_create(&thread, NULL, write_samples, NULL), 0);
	while (nr < NR_SAMPLES / 2 - 1)
		nr = check_stats().nr_attempts;
	pthread_join(thread, NULL);
	nr = check_stats().nr_attempts;
	assert_true(nr >= NR_SAMPLES / 2 - 1);
	assert_int_equal(check_stats().nr_unread, 0);
}

static bool stop_writing;

/* Half of the samples are new and fill the log; the others soon repeat. */
static void *fill_the_log(void *arg)
{
	host_cpu = 1;
	for (u64 i = 0; !READ_ONCE(stop_writing); i++) {
		take_user(0x100000 + i);
		take(i % 97, i % 5, 3);
	}
	return arg;
}

/* Samples are dropped while the counts are copied. Only the sample in progress may be missing. */
TEST(reading_during_drops)
{
	struct sample_stats sum;
	pthread_t thread;
	u64 nr_before = 0;

	stop_writing = false;
	assert_int_equal(pthread_create(&thread, NULL, fill_the_log, NULL), 0);
	for (int nr_looks = 0; nr_looks < 200;) {
		sum = check_stats();
		assert_true(sum.nr_unread >= 0 && sum.nr_unread <= 1);
		assert_true(sum.nr_attempts >= nr_before);
		nr_before = sum.nr_attempts;
		nr_looks += sum.nr_dropped[DROP_LOG_FULL] || sum.nr_dropped[DROP_HASH_FULL];
	}
	WRITE_ONCE(stop_writing, true);
	pthread_join(thread, NULL);
	assert_int_equal(check_stats().nr_unread, 0);
}
