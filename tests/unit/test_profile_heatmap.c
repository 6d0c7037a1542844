// SPDX-License-Identifier: BSD-2-Clause
/* Tests the heatmap: classes of samples, sums by function, and that no sample is lost. */

#include "unit.h"

#include "../../kernel/profile/stack_store.h"

#define TEXT 0xffffffff81000000ull

#define SAMPLE_SLOTS (SAMPLE_DEFAULT_LOG / STACK_STORE_BYTES_A_SLOT)

static struct heat_snapshot snap;
static struct view view;
static const struct sample_scope machine;

static int setup(void **state)
{
	host_cpu = 0;
	host_idle = false;
	host_irq_depth = 1;
	sample_reset();
	host_log_clear();
	return 0;
}

static void tick(u64 pc)
{
	struct pt_regs regs = { .pc = pc };

	sample_take(&regs, os_cycles(), 0);
}

static void tick_user(void)
{
	struct pt_regs regs = { .pc = 0x401000, .user = true };

	sample_take(&regs, os_cycles(), 0);
}

static u64 nr_at(u64 addr)
{
	for (u32 i = 0; i < view.nr_rows; i++) {
		if (view.rows[i].keys[0] == addr)
			return view.rows[i].nr;
	}
	return 0;
}

static u64 nr_ticks(void)
{
	u64 sum = 0;

	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		sum += snap.nr_class[i];
	return sum;
}

/* Takes a snapshot, and checks that its rows add up to nr ticks. */
static void expect_ticks(u64 nr)
{
	u64 sum;

	heatmap_snapshot(&snap, &view, &machine);
	sum = snap.nr_dropped;
	for (u32 i = 0; i < view.nr_rows; i++)
		sum += view.rows[i].nr;
	assert_int_equal(sum, nr);
	assert_int_equal(nr_ticks(), nr);
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/* Runs first: ticks before sample_init() are not counted. */
TEST(nothing_before_init)
{
	tick(TEXT);
	expect_ticks(0);
	host_fail_alloc = 5; /* each CPU needs two allocations */
	sample_init();
	host_fail_alloc = 0;
	assert_true(strstr(host_log, "no memory for samples of CPU 2\n"));
}

/* CPUs 2 and 3 got no memory in the test above: their kernel ticks are counted as dropped. */
TEST(no_memory_is_dropped)
{
	host_cpu = 2;
	tick(TEXT);
	tick(TEXT);
	tick_user();
	expect_ticks(3);
	assert_int_equal(snap.nr_dropped, 2);
	assert_int_equal(snap.nr_class[HEAT_KERNEL], 2);
	assert_int_equal(snap.nr_class[HEAT_USER], 1);
}

TEST(functions_add_up)
{
	for (u32 i = 0; i < 256; i++)
		tick(TEXT + 0x500 + i);
	tick(TEXT + 0x4ff);
	tick(TEXT + 0x600);
	expect_ticks(258);
	assert_int_equal(view.nr_rows, 3);
	assert_int_equal(nr_at(TEXT + 0x400), 1);
	assert_int_equal(nr_at(TEXT + 0x500), 256);
	assert_int_equal(nr_at(TEXT + 0x600), 1);
}

TEST(all_cpus_count)
{
	for (host_cpu = 0; host_cpu < 2; host_cpu++) {
		for (u32 i = 0; i <= host_cpu; i++)
			tick(TEXT);
	}
	host_cpu = 0;
	expect_ticks(3);
	assert_int_equal(nr_at(TEXT), 3);
}

TEST(classes)
{
	tick_user();
	tick_user();
	host_idle = true;
	tick(TEXT);
	tick(TEXT);
	tick(TEXT);
	host_irq_depth = 2; /* an interrupt that came in the idle task */
	for (int i = 0; i < 4; i++)
		tick(TEXT + 0x100);
	host_idle = false;
	host_irq_depth = 1;
	for (int i = 0; i < 5; i++)
		tick(TEXT);
	expect_ticks(14);
	assert_int_equal(snap.nr_class[HEAT_USER], 2);
	assert_int_equal(snap.nr_class[HEAT_IDLE], 3);
	assert_int_equal(snap.nr_class[HEAT_IRQ], 4);
	assert_int_equal(snap.nr_class[HEAT_KERNEL], 5);
	assert_int_equal(nr_at(TEXT), 8); /* idle samples count for their function, too */
	report_print_heatmap(&snap, 10, false);
	assert_true(
		strstr(host_log,
		       "samples: 14, all CPUs since the last reset (0.00 s) = user 2 + kernel 5 + "
		       "interrupt 4 + idle 3\n"));
	assert_string_equal(host_line("[user]           2      14.29"),
			    "0000000000000000                [user]           2      14.29");
}

TEST(unknown_addresses_stay_exact)
{
	tick(0xffffc90000001235);
	tick(0xffffc90000001236);
	tick(0);
	tick(~0ull);
	expect_ticks(4);
	assert_int_equal(nr_at(0xffffc90000001235), 1);
	assert_int_equal(nr_at(0xffffc90000001236), 1);
	assert_int_equal(nr_at(0), 1);
	assert_int_equal(nr_at(~0ull), 1);
	report_print_heatmap(&snap, 10, false);
	assert_true(strstr(host_log,
			   "ffffc90000001235             [unknown]           1      25.00\n"));
}

/* Nearly fills the store, so that many samples collide on the way to their slots. */
TEST(neighbours_are_not_merged)
{
	u64 nr_missing = 0, nr;

	for (u64 pc = 0; pc < 4000; pc++) {
		for (u64 i = 0; i <= pc % 3; i++)
			tick(0xffffc90000000000 + pc);
	}
	heatmap_snapshot(&snap, &view, &machine);
	for (u64 pc = 0; pc < 4000; pc++) {
		nr = nr_at(0xffffc90000000000 + pc);
		if (nr)
			assert_int_equal(nr, pc % 3 + 1);
		else
			nr_missing += pc % 3 + 1;
	}
	assert_int_equal(snap.nr_dropped, nr_missing);
	assert_true(nr_missing < 400);
}

TEST(full_store_reports_drops)
{
	u64 nr = 3 * SAMPLE_SLOTS;

	for (u64 i = 0; i < nr; i++)
		tick(TEXT + i * 16);
	expect_ticks(nr);
	assert_true(snap.nr_dropped >= nr - SAMPLE_SLOTS);
	assert_true(snap.nr_dropped < nr - SAMPLE_SLOTS + SAMPLE_SLOTS / 8);
	/* A full store still counts samples that it has a record for. */
	tick(TEXT);
	expect_ticks(nr + 1);
	assert_true(nr_at(TEXT) >= 2);
	report_print_heatmap(&snap, REPORT_TOP_ALL, false);
	host_line("100.00");
	assert_true(strstr(host_log, "[dropped]"));
}

TEST(more_functions_than_a_report_holds)
{
	u64 nr = 0;

	for (host_cpu = 0; host_cpu < 2; host_cpu++) {
		for (u64 i = 0; i < 3000; i++, nr++)
			tick(TEXT + (host_cpu * 3000 + i) * 256);
	}
	host_cpu = 0;
	expect_ticks(nr);
	assert_int_equal(view.nr_rows, VIEW_MAX_ROWS);
	assert_true(snap.nr_dropped >= nr - VIEW_MAX_ROWS);
}

TEST(reset)
{
	tick(TEXT);
	tick_user();
	expect_ticks(2);
	sample_reset();
	expect_ticks(0); /* even before the CPU has emptied its store */
	tick(TEXT + 0x100);
	expect_ticks(1);
	assert_int_equal(nr_at(TEXT), 0);
	assert_int_equal(nr_at(TEXT + 0x100), 1);
}

/* A process has only its own samples, without those of an earlier process with its pid. */
TEST(scope_of_a_process)
{
	struct sample_scope scope = { .pid = 5 };

	tick(TEXT);
	tick_user();
	host_pid = 5;
	tick(TEXT);
	tick(TEXT + 0x100);
	tick_user();
	heatmap_snapshot(&snap, &view, &scope);
	assert_int_equal(nr_ticks(), 5);
	assert_int_equal(snap.nr_scope_class[HEAT_KERNEL], 2);
	assert_int_equal(snap.nr_scope_class[HEAT_USER], 1);
	assert_int_equal(view.nr_rows, 3);
	assert_int_equal(nr_at(TEXT), 1);
	assert_int_equal(snap.nr_dropped, 0);
	report_print_heatmap(&snap, 10, false);
	assert_non_null(strstr(host_log, "\nof this process: 3 = user 1 + kernel 2\n"));
	host_line("ffffffff81000000                  fn_0           1      33.33");

	scope.key_floor = host_task_key();
	heatmap_snapshot(&snap, &view, &scope);
	assert_int_equal(view.nr_rows, 0);
	host_pid = 1;
}

TEST(snapshots_change_nothing)
{
	static struct heat_snapshot again;
	static char first[1 << 16];

	for (u64 i = 0; i < 500; i++)
		tick(TEXT + i * i * 7);
	tick_user();
	heatmap_snapshot(&snap, &view, &machine);
	report_print_heatmap(&snap, REPORT_TOP_ALL, false);
	snprintf(first, sizeof(first), "%.*s", (int)sizeof(first) - 1, host_log);
	for (int i = 0; i < 3; i++) {
		host_log_clear();
		heatmap_snapshot(&again, &view, &machine);
		report_print_heatmap(&again, REPORT_TOP_ALL, false);
		assert_log(first);
	}
}

#define NR_TICKS 300000

static void *write_ticks(void *arg)
{
	host_cpu = 1;
	for (u64 i = 0; i < NR_TICKS; i++) {
		if (i % 3)
			tick(TEXT + i % 1000 * 64);
		else
			tick_user();
	}
	return NULL;
}

/* Every snapshot adds up while another CPU takes samples, and its counts only grow. */
TEST(reading_during_samples)
{
	u64 nr = 0, last = 0;
	pthread_t thread;

	/*
	 * Makes CPU 1 empty its store first. Otherwise a reader may have pinned it just then, and
	 * samples would be dropped.
	 */
	host_cpu = 1;
	tick(TEXT);
	host_cpu = 0;
	assert_int_equal(pthread_create(&thread, NULL, write_ticks, NULL), 0);
	while (nr < NR_TICKS + 1) {
		u64 sum;

		heatmap_snapshot(&snap, &view, &machine);
		nr = nr_ticks();
		sum = snap.nr_dropped;
		for (u32 i = 0; i < view.nr_rows; i++)
			sum += view.rows[i].nr;
		assert_int_equal(sum, nr);
		assert_true(nr >= last);
		last = nr;
	}
	pthread_join(thread, NULL);
	expect_ticks(NR_TICKS + 1);
	assert_int_equal(snap.nr_dropped, 0);
	assert_int_equal(snap.nr_class[HEAT_USER], NR_TICKS / 3);
}
