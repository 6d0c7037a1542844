// SPDX-License-Identifier: BSD-2-Clause
/* Samples as whole stacks: the store, its books, merging, and the views of them. */

#include <time.h>

#include "unit.h"

#define FN(i) (0xffffffff81000000ull + (i)*256)

static struct view view;

static int setup(void **state)
{
	host_cpu = 0;
	host_idle = false;
	host_irq_depth = 1;
	host_tid = host_pid = 1;
	host_syscall = OS_NO_SYSCALL;
	strcpy(host_comm, "test");
	sample_switch(true);
	sample_reset();
	host_log_clear();
	return 0;
}

/* What a sample is of: functions by number, innermost first. */
static void take_stack(const u64 *functions, u32 nr)
{
	u64 callers[SAMPLE_MAX_DEPTH + 1];
	struct pt_regs regs = { .pc = FN(functions[0]) + 4, .callers = callers };

	for (u32 i = 1; i < nr; i++)
		callers[i - 1] = FN(functions[i]) + 8;
	regs.nr_callers = nr - 1;
	sample_take(&regs, os_cycles(), 0, 0);
}

#define take(...) \
	take_stack((const u64[]){ __VA_ARGS__ }, sizeof((u64[]){ __VA_ARGS__ }) / sizeof(u64))

static void take_user(u64 pc)
{
	struct pt_regs regs = { .pc = pc, .user = true };

	sample_take(&regs, os_cycles(), 0, 0);
}

/* All books of all CPUs close; returns their sum. */
static struct sample_books expect_books(void)
{
	struct sample_books sum = { 0 };

	samples_hold();
	for (unsigned int cpu = 0; cpu < HOST_NR_CPUS; cpu++) {
		const struct sample_books *books = samples_books(cpu);
		const struct sample_record *rec = NULL;
		u64 nr = books->nr_unread, nr_stored = 0;
		u32 nr_records = 0;

		for (u32 i = 0; i < NR_SAMPLE_DROPS; i++) {
			sum.nr_dropped[i] += books->nr_dropped[i];
			nr += books->nr_dropped[i];
		}
		for (; (rec = samples_next(cpu, rec)); nr_records++)
			nr_stored += rec->nr_held;
		assert_int_equal(nr_records, books->nr_records);
		assert_int_equal(nr_stored, books->nr_stored);
		assert_int_equal(nr + nr_stored, books->nr_attempts);
		nr = books->nr_dropped[DROP_OFF] + books->nr_dropped[DROP_NESTED];
		for (u32 i = 0; i < NR_HEAT_CLASSES; i++) {
			sum.nr_class[i] += books->nr_class[i];
			nr += books->nr_class[i];
		}
		if (!books->nr_unread)
			assert_int_equal(nr, books->nr_attempts);
		sum.nr_attempts += books->nr_attempts;
		sum.nr_stored += books->nr_stored;
		sum.nr_records += nr_records;
		sum.nr_unread += books->nr_unread;
	}
	samples_release();
	return sum;
}

static const struct view_row *row_of(u64 a, u64 b)
{
	for (u32 i = 0; i < view.nr_rows; i++) {
		if (view.rows[i].keys[0] == a && view.rows[i].keys[1] == b)
			return &view.rows[i];
	}
	fail_msg("no row %#lx %#lx", (unsigned long)a, (unsigned long)b);
	return NULL;
}

static void look(void (*make)(struct view *view))
{
	samples_hold();
	make(&view);
	samples_release();
}

/* What the CPUs' logs would need of 64 MiB: 16 for 8 of them. Then there is none at all. */
static void test_little_memory(void **state)
{
	host_memory_bytes = 64 << 20;
	host_fail_alloc = 1;
	sample_init();
	host_fail_alloc = 0;
	host_memory_bytes = 1 << 30;
	assert_non_null(strstr(host_log, "no memory for samples of CPU 7\n"));
	assert_non_null(strstr(host_log, "memory is short: 16384 bytes, not 1048576, for"));
	take(1);
	assert_int_equal(expect_books().nr_dropped[DROP_NO_MEMORY], 1);
	host_log_clear();
}

/* Runs before the rest: the parameters are read before the memory is taken. */
static void test_parameters(void **state)
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

static void test_alike_is_one_record(void **state)
{
	for (int i = 0; i < 5; i++)
		take(1, 2, 3);
	take(1, 2);
	take(1, 2, 4);
	take(1, 3, 2);
	assert_int_equal(expect_books().nr_records, 4);
	host_syscall = 1;
	take(1, 2, 3);
	host_tid = 2;
	take(1, 2, 3);
	strcpy(host_comm, "other");
	take(1, 2, 3);
	host_idle = true;
	take(1, 2, 3);
	assert_int_equal(expect_books().nr_records, 8);
	assert_int_equal(expect_books().nr_stored, 12);
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
	sample_take(regs, os_cycles(), 0, 0);
	host_on_walk = NULL;
	return nr_walks;
}

/* What a record tells is compared with it; all else takes a walk, and finds its own record. */
static void test_the_like_of_the_last_is_not_walked(void **state)
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
	/* Shorter, longer, cut. */
	regs.nr_user_callers = 1;
	assert_int_equal(walks_of(&regs), 1);
	regs.nr_user_callers = 0;
	assert_int_equal(walks_of(&regs), 1);
	regs.nr_callers = 1;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	regs.cut = STACK_CUT_ENTRY;
	regs.nr_callers = 2;
	regs.nr_user_callers = 2;
	assert_int_equal(walks_of(&regs), 1);
	regs.cut = STACK_WHOLE;
	assert_int_equal(walks_of(&regs), 1);
	/* Elsewhere on the stack it is the same record. */
	regs.sp = 0x100;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	assert_int_equal(expect_books().nr_records, 9);
	assert_int_equal(expect_books().nr_stored, 22);
	/* Someone else's is not. */
	host_tid = 2;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(expect_books().nr_records, 10);
	/* After a reset there is no record. */
	sample_reset();
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	assert_int_equal(expect_books().nr_records, 1);
	assert_int_equal(expect_books().nr_stored, 2);
	/* A user's, entered in no call. */
	regs.user = true;
	regs.nr_callers = 0;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(walks_of(&regs), 0);
	callers[1]++;
	assert_int_equal(walks_of(&regs), 1);
	assert_int_equal(expect_books().nr_records, 3);
}

static void test_interrupts_off_and_late(void **state)
{
	struct pt_regs regs = { .pc = FN(1), .irqs_off = true };

	sample_take(&regs, os_cycles(), 70, 1);
	regs.irqs_off = false;
	sample_take(&regs, os_cycles(), 30, 0);
	look(view_functions);
	assert_int_equal(row_of(FN(1), 0)->nr, 2);
	assert_int_equal(row_of(FN(1), 0)->nr_irqs_off, 1);
	assert_int_equal(row_of(FN(1), 0)->late_cycles, 100);
	/* An NMI in an interrupt handler; the timer does not count its own. */
	host_irq_depth = 1;
	sample_take(&regs, os_cycles(), 0, 1);
	assert_int_equal(expect_books().nr_class[HEAT_IRQ], 2);
	assert_int_equal(expect_books().nr_class[HEAT_KERNEL], 1);
}

/* Each is different, with the same number of callers. */
static struct sample_books take_different(u64 nr, u32 nr_callers)
{
	u64 functions[SAMPLE_MAX_DEPTH] = { 0 };
	struct sample_books books;

	for (u64 i = 0; i < nr; i++) {
		functions[0] = i % 1000;
		functions[1] = i / 1000;
		take_stack(functions, 1 + nr_callers);
	}
	books = expect_books();
	assert_int_equal(books.nr_attempts, nr);
	return books;
}

/* Every stack differs: when the hash is full, or the log, the rest is dropped, all of it. */
static void test_full(void **state)
{
	struct sample_books books = take_different(40000, 1);

	assert_true(books.nr_dropped[DROP_HASH_FULL] > 0);
	assert_int_equal(books.nr_dropped[DROP_LOG_FULL], 0);
	/* What is in stays countable, and a reset makes room. */
	take(0, 0);
	assert_int_equal(expect_books().nr_stored, books.nr_stored + 1);
	sample_reset();
	assert_int_equal(host_set_param("profile.depth", "64"), 0);
	books = take_different(40000, 63);
	assert_true(books.nr_dropped[DROP_LOG_FULL] > 0);
	assert_int_equal(books.nr_dropped[DROP_HASH_FULL], 0);
	assert_true(books.nr_stored * 64 * sizeof(u64) > SAMPLE_MAX_LOG * 3 / 4);
	take_stack((const u64[64]){ 0 }, 64);
	assert_int_equal(expect_books().nr_stored, books.nr_stored + 1);
	take_stack((const u64[64]){ 0, 0, 1 }, 64);
	assert_int_equal(expect_books().nr_stored, books.nr_stored + 1);
	assert_int_equal(expect_books().nr_dropped[DROP_LOG_FULL],
			 books.nr_dropped[DROP_LOG_FULL] + 1);
	assert_int_equal(host_set_param("profile.depth", "8"), 0);
}

static void nest(void)
{
	struct pt_regs regs = { .pc = FN(9) };

	host_on_walk = NULL;
	sample_take(&regs, os_cycles(), 0, 1);
	sample_take(&regs, os_cycles(), 0, 1);
}

static void test_nested_is_dropped(void **state)
{
	take(1);
	host_on_walk = nest;
	take(2);
	assert_int_equal(expect_books().nr_attempts, 4);
	assert_int_equal(expect_books().nr_dropped[DROP_NESTED], 2);
	assert_int_equal(expect_books().nr_stored, 2);
	/* The first sample behind a reset is interrupted, too. */
	sample_reset();
	host_on_walk = nest;
	take(2);
	assert_int_equal(expect_books().nr_dropped[DROP_NESTED], 2);
}

static void test_switched_off(void **state)
{
	take(1);
	sample_switch(false);
	take(1);
	take_user(0x1000);
	sample_switch(true);
	take(1);
	assert_int_equal(expect_books().nr_attempts, 4);
	assert_int_equal(expect_books().nr_dropped[DROP_OFF], 2);
	assert_int_equal(expect_books().nr_stored, 2);
}

/* A reader's samples stay as they are, whatever comes. */
static void test_held(void **state)
{
	take(1, 2);
	samples_hold();
	take(1, 2);
	take(3, 4);
	view_functions(&view);
	assert_int_equal(view.nr_ticks, 1);
	assert_int_equal(view.nr_rows, 2);
	sample_reset();
	take(5, 6);
	take(5, 6);
	view_functions(&view);
	assert_int_equal(row_of(FN(1), 0)->nr, 1);
	assert_int_equal(view.nr_rows, 2);
	samples_release();
	assert_int_equal(expect_books().nr_attempts, 2);
	assert_int_equal(expect_books().nr_dropped[DROP_HELD], 2);
	take(5, 6);
	assert_int_equal(expect_books().nr_stored, 1);
	look(view_functions);
	assert_int_equal(row_of(FN(5), 0)->nr, 1);
	assert_int_equal(view.nr_rows, 2);
}

static void test_depth_is_bounded(void **state)
{
	take(1, 2, 3, 4, 5, 6, 7, 8);
	take(1, 2, 3, 4, 5, 6, 7, 8, 9);
	take(1, 2, 3, 4, 5, 6, 7, 8, 10, 11);
	assert_int_equal(expect_books().nr_records, 2);
	look(view_functions);
	assert_int_equal(view.nr_cut[STACK_CUT_DEPTH], 2);
	assert_int_equal(row_of(FN(8), 0)->nr_inclusive, 3);
}

static void test_inclusive_counts_recursion_once(void **state)
{
	take(1, 2, 1, 2, 3);
	take(2, 1, 2, 3);
	take_user(0x401000);
	look(view_functions);
	assert_int_equal(row_of(FN(1), 0)->nr, 1);
	assert_int_equal(row_of(FN(1), 0)->nr_inclusive, 2);
	assert_int_equal(row_of(FN(2), 0)->nr, 1);
	assert_int_equal(row_of(FN(2), 0)->nr_inclusive, 2);
	assert_int_equal(row_of(FN(3), 0)->nr, 0);
	assert_int_equal(row_of(FN(3), 0)->nr_inclusive, 2);
	assert_int_equal(row_of(0, 1)->nr, 1);
	assert_int_equal(view.nr_ticks, 3);
}

/* A call at a function's end returns to the next one's start. */
static void test_return_address_at_the_end(void **state)
{
	u64 caller = FN(3);
	struct pt_regs regs = { .pc = FN(1), .callers = &caller, .nr_callers = 1 };

	sample_take(&regs, os_cycles(), 0, 0);
	look(view_functions);
	assert_int_equal(row_of(FN(2), 0)->nr_inclusive, 1);
	assert_int_equal(row_of(FN(1), 0)->nr, 1);
}

static void make_some(void)
{
	host_syscall = 1;
	take(1, 5);
	take(1, 5);
	take(2, 5);
	host_syscall = 600;
	take(2, 5);
	take(3, 2, 5);
	host_syscall = OS_NO_SYSCALL;
	take(4);
	host_tid = 7;
	strcpy(host_comm, "a;b c");
	take_user(0x401000);
	take_user(0x401000);
	host_cpu = 1;
	host_tid = host_pid = 0;
	strcpy(host_comm, "idle/1");
	host_idle = true;
	take(6);
	host_irq_depth = 2;
	take(1, 6);
}

static void test_views_as_printed(void **state)
{
	make_some();
	samples_hold();
	report_print_views("functions,calls,tasks", 3);
	samples_release();
	assert_log("\n"
		   "Kernel Heatmap by function (top #3)\n"
		   "         Address              Function          NR          %   inclusive"
		   "          %    irqs.off\n"
		   "----------------  --------------------  ----------  ---------  ----------"
		   "  ---------  ----------\n"
		   "ffffffff81000100                  fn_1           3      30.00           3"
		   "      30.00           0\n"
		   "ffffffff81000200                  fn_2           2      20.00           3"
		   "      30.00           0\n"
		   "0000000000000000                [user]           2      20.00           2"
		   "      20.00           0\n"
		   "----------------  --------------------  ----------  ---------  ----------"
		   "  ---------  ----------\n"
		   "and 4 more, with 3 samples\n"
		   "\n"
		   "Kernel Heatmap by system call (top #3)\n"
		   "         System call              Function          NR          %"
		   "  % of call\n"
		   "--------------------  --------------------  ----------  ---------"
		   "  ---------\n"
		   "           sys_write                                 3      30.00"
		   "     100.00\n"
		   "                                      fn_1           2      20.00"
		   "      66.67\n"
		   "                                      fn_2           1      10.00"
		   "      33.33\n"
		   "             sys_600                                 2      20.00"
		   "     100.00\n"
		   "                                      fn_2           1      10.00"
		   "      50.00\n"
		   "                                      fn_3           1      10.00"
		   "      50.00\n"
		   "              [user]                                 2      20.00"
		   "     100.00\n"
		   "--------------------  --------------------  ----------  ---------"
		   "  ---------\n"
		   "and 3 more, with 3 samples\n"
		   "\n"
		   "Kernel Heatmap by task (top #3)\n"
		   "       pid         tid             name          NR          %"
		   "        user      kernel         irq        idle\n"
		   "----------  ----------  ---------------  ----------  ---------"
		   "  ----------  ----------  ----------  ----------\n"
		   "         1           1             test           6      60.00"
		   "           0           6           0           0\n"
		   "         0           0           idle/1           2      20.00"
		   "           0           0           1           1\n"
		   "         1           7            a?b?c           2      20.00"
		   "           2           0           0           0\n"
		   "----------  ----------  ---------------  ----------  ---------"
		   "  ----------  ----------  ----------  ----------\n");
}

static void test_cpus_as_printed(void **state)
{
	make_some();
	sample_switch(false);
	take(1);
	samples_hold();
	report_print_views("cpus", 3);
	samples_release();
	assert_non_null(strstr(host_log, "\n  0           2           6           0           0"
					 "           8           8           0         6"));
	assert_non_null(strstr(host_log, "\n  1           0           0           1           1"
					 "           3           2           1         2"));
}

static void test_function_as_printed(void **state)
{
	struct pt_regs regs = { .pc = FN(2) + 0x30, .irqs_off = true };

	make_some();
	host_idle = false;
	sample_take(&regs, os_cycles(), 0, 1);
	samples_hold();
	report_print_function("fn_2");
	samples_release();
	assert_log("Kernel Heatmap of fn_2: 3 of 11 samples\n"
		   "         Address                   Place          NR          %    irqs.off\n"
		   "----------------  ----------------------  ----------  ---------  ----------\n"
		   "ffffffff81000204                    +0x4           2      66.67           0\n"
		   "ffffffff81000230                   +0x30           1      33.33           1\n"
		   "----------------  ----------------------  ----------  ---------  ----------\n");
}

/* Another process's, and an earlier program's, are not in it. */
static void test_user_as_printed(void **state)
{
	struct process proc = { .pid = 5 };

	take_user(0x401000);
	host_pid = 5;
	take_user(0x401000);
	host_program = 1;
	take(1, 2);
	take_user(0x401010);
	take_user(0x401010);
	take_user(0x401000);
	take_user(0x7ff000);
	samples_hold();
	report_print_user(&proc, 2);
	samples_release();
	host_program = 0;
	assert_log("\n"
		   "Kernel Heatmap of user code (top #2)\n"
		   "         Address                     File offset          NR          %\n"
		   "----------------  ------------------------------  ----------  ---------\n"
		   "0000000000401010             /bin/program+0x1010           2      50.00\n"
		   "0000000000401000             /bin/program+0x1000           1      25.00\n"
		   "----------------  ------------------------------  ----------  ---------\n"
		   "and 1 more, with 1 samples\n");
}

static void test_stacks_as_printed(void **state)
{
	u64 user[] = { FN(5) + 8, 0x401234, 0x401000 };
	struct pt_regs regs = {
		.pc = FN(1) + 4,
		.callers = user,
		.nr_callers = 1,
		.nr_user_callers = 2,
		.cut = STACK_CUT_USER_FRAME,
	};

	host_syscall = 1;
	for (host_cpu = 0; host_cpu < 2; host_cpu++) {
		take(1, 5);
		take(1, 5);
	}
	host_cpu = 0;
	host_tid = 2; /* one task has user code, or it has not */
	sample_take(&regs, os_cycles(), 0, 0);
	samples_hold();
	report_print_stacks();
	samples_release();
	assert_non_null(strstr(host_log, "# 2 stacks of 3 records, merged in "));
	assert_non_null(strstr(host_log, "\ntest;[sys_write];fn_5;fn_1 4\n"
					 "test;[cut: user code without frame pointers];0x401000;"
					 "0x401234;[sys_write];fn_5;fn_1 1\n"));
}

/* 50,000 different stacks, an eighth on each CPU, each there twice: time and memory are shown. */
static void test_merge_many(void **state)
{
	struct merged_stacks merged;
	struct timespec start, end;
	u64 nr = 0;

	for (host_cpu = 0; host_cpu < HOST_NR_CPUS; host_cpu++) {
		for (u64 i = 0; i < 12500; i++) {
			u64 id = host_cpu * 6250 + i / 2;

			take(id % 100, id / 100 % 100, id / 10000, 7, 8);
		}
	}
	host_cpu = 0;
	assert_int_equal(expect_books().nr_attempts, 100000);
	samples_hold();
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(stacks_merge(&merged), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	samples_release();
	assert_int_equal(merged.nr_stacks, 50000);
	for (u32 i = 0; i < merged.nr_stacks; i++)
		nr += merged.stacks[i].nr;
	assert_int_equal(nr, 100000);
	print_message("merged %u stacks of %u records in %ld us, %lu KiB\n", merged.nr_stacks,
		      merged.nr_records,
		      (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000,
		      (unsigned long)merged.nr_slots * sizeof(struct merged_stack) / 1024);
	stacks_free(&merged);
	host_fail_alloc = 1;
	samples_hold();
	assert_int_equal(stacks_merge(&merged), -ENOMEM);
	samples_release();
	host_fail_alloc = 0;
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

/* Each look adds up, even one that a reset falls into. */
static void test_reading_beside_a_writer(void **state)
{
	pthread_t thread;
	u64 nr = 0;

	assert_int_equal(pthread_create(&thread, NULL, write_samples, NULL), 0);
	while (nr < NR_SAMPLES / 2 - 1)
		nr = expect_books().nr_attempts;
	pthread_join(thread, NULL);
	nr = expect_books().nr_attempts;
	assert_true(nr >= NR_SAMPLES / 2 - 1);
	assert_int_equal(expect_books().nr_unread, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_little_memory, setup),
		cmocka_unit_test_setup(test_parameters, setup),
		cmocka_unit_test_setup(test_alike_is_one_record, setup),
		cmocka_unit_test_setup(test_the_like_of_the_last_is_not_walked, setup),
		cmocka_unit_test_setup(test_interrupts_off_and_late, setup),
		cmocka_unit_test_setup(test_full, setup),
		cmocka_unit_test_setup(test_nested_is_dropped, setup),
		cmocka_unit_test_setup(test_switched_off, setup),
		cmocka_unit_test_setup(test_held, setup),
		cmocka_unit_test_setup(test_depth_is_bounded, setup),
		cmocka_unit_test_setup(test_inclusive_counts_recursion_once, setup),
		cmocka_unit_test_setup(test_return_address_at_the_end, setup),
		cmocka_unit_test_setup(test_views_as_printed, setup),
		cmocka_unit_test_setup(test_cpus_as_printed, setup),
		cmocka_unit_test_setup(test_function_as_printed, setup),
		cmocka_unit_test_setup(test_user_as_printed, setup),
		cmocka_unit_test_setup(test_stacks_as_printed, setup),
		cmocka_unit_test_setup(test_merge_many, setup),
		cmocka_unit_test_setup(test_reading_beside_a_writer, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
