// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests how the worker makes room in the store of samples: programs that have ended are folded, the
 * heaviest call chains stay, no sample is lost, and readers see each sample once.
 */

#include "samples_unit.h"

#include <pthread.h>

#define NR_PROCESSES	3000
#define NR_CHAINS	40 /* of each process, all of its own */
#define NR_HOT		20 /* samples of each process in the one chain that all have */
#define SAMPLES_OF_EACH (NR_CHAINS + NR_HOT)
#define LOG_BYTES	"65536"

static void begin(void)
{
	host_first_live_pid = 0;
	sample_reset();
}

/* Runs a process: a chain that all processes have, and chains that differ from all others. */
static void run_process(u32 pid)
{
	host_pid = host_tid = pid;
	for (u32 i = 0; i < NR_CHAINS; i++)
		take(1 + i % 7, 100 + (pid * NR_CHAINS + i) % 60000, 5);
	for (u32 i = 0; i < NR_HOT; i++)
		take(1, 2, 3);
	if (stack_collect_wanted) {
		stack_collect_wanted = false;
		stack_collect();
	}
}

#define ANY_PID ~0u

static u64 nr_of(u32 pid, const char *comm)
{
	const struct sample_record *rec = NULL;
	u64 nr = 0;

	samples_pin();
	while ((rec = samples_next(0, rec))) {
		if ((pid == ANY_PID || rec->pid == pid) && !strcmp((const char *)rec->comm, comm))
			nr += rec->nr_pinned;
	}
	samples_unpin();
	return nr;
}

static u64 nr_of_hot_chain(void)
{
	const struct sample_record *rec = NULL;
	u64 nr = 0;

	samples_pin();
	while ((rec = samples_next(0, rec))) {
		if (rec->nr_kernel == 3 && rec->pcs[1] == FN(2) + 8)
			nr += rec->nr_pinned;
	}
	samples_unpin();
	return nr;
}

static void no_drops(const struct sample_stats *stats)
{
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		assert_int_equal(stats->nr_dropped[i], 0);
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/* The last process is as well known as the first, and the memory does not grow. */
TEST(long_run)
{
	struct sample_stats stats;
	int nr_allocated = 0;

	begin();
	for (u32 pid = 1; pid <= NR_PROCESSES; pid++) {
		host_first_live_pid = pid;
		strcpy(host_comm, pid % 2 ? "odd" : "even");
		run_process(pid);
		assert_int_equal(nr_of(pid, host_comm), SAMPLES_OF_EACH);
		if (pid == 100)
			nr_allocated = host_nr_allocated;
	}
	assert_int_equal(host_nr_allocated, nr_allocated);
	stats = check_stats();
	no_drops(&stats);
	assert_int_equal(stats.nr_stored, NR_PROCESSES * SAMPLES_OF_EACH);
	assert_int_equal(nr_of(ANY_PID, "odd"), NR_PROCESSES / 2 * SAMPLES_OF_EACH);
	assert_int_equal(nr_of(ANY_PID, "even"), NR_PROCESSES / 2 * SAMPLES_OF_EACH);
	/* The chain that all of them have is heavy, so it is whole to the end. */
	assert_int_equal(nr_of_hot_chain(), NR_PROCESSES * NR_HOT);
}

/* Samples of user code without a chain still say where they were taken. */
TEST(user_code_keeps_its_place)
{
	const struct sample_record *rec = NULL;
	u64 nr = 0;

	begin();
	strcpy(host_comm, "python");
	for (u32 pid = 1; pid <= NR_PROCESSES; pid++) {
		host_first_live_pid = pid;
		run_process(pid);
		take_user(0x400000 + pid % 50);
	}
	samples_pin();
	while ((rec = samples_next(0, rec))) {
		if (rec->nr_user == 1 && rec->pcs[0] - 0x400000 < 50)
			nr += rec->nr_pinned;
	}
	samples_unpin();
	assert_int_equal(nr, NR_PROCESSES);
}

/* Processes that still run keep their numbers, and their chains as long as there is room. */
TEST(live_processes_stay)
{
	begin();
	strcpy(host_comm, "server");
	run_process(5000);
	strcpy(host_comm, "job");
	for (u32 pid = 1; pid <= 200; pid++) {
		host_first_live_pid = pid;
		run_process(pid);
	}
	assert_int_equal(nr_of(5000, "server"), SAMPLES_OF_EACH);
	assert_true(nr_of(0, "job") > 100 * SAMPLES_OF_EACH);
	assert_int_equal(check_stats().nr_stored, 201 * SAMPLES_OF_EACH);
}

/* Thousands of programs with names of their own are summed up in the end. None of them is lost. */
TEST(many_programs)
{
	struct sample_stats stats;

	begin();
	for (u32 pid = 1; pid <= NR_PROCESSES; pid++) {
		host_first_live_pid = pid;
		snprintf(host_comm, sizeof(host_comm), "program%u", pid);
		run_process(pid);
	}
	stats = check_stats();
	no_drops(&stats);
	assert_int_equal(stats.nr_stored, NR_PROCESSES * SAMPLES_OF_EACH);
	assert_true(nr_of(0, "[others]") > 0);
}

/* More live processes than there is room for: their numbers go, their samples stay. */
TEST(too_many_live)
{
	struct sample_stats stats;

	begin();
	strcpy(host_comm, "crowd");
	for (u32 pid = 1; pid <= NR_PROCESSES; pid++)
		run_process(pid);
	stats = check_stats();
	no_drops(&stats);
	assert_int_equal(stats.nr_stored, NR_PROCESSES * SAMPLES_OF_EACH);
}

/* Samples whose call and function had no room are neither "[no call]" nor only in a sum. */
TEST(calls_add_up)
{
	static struct view view;
	u64 nr_unknown = 0, nr_functions = 0;

	begin();
	host_syscall = 5;
	for (u32 pid = 1; pid <= NR_PROCESSES; pid++) {
		snprintf(host_comm, sizeof(host_comm), "program%u", pid);
		run_process(pid);
	}
	host_syscall = OS_NO_SYSCALL;
	samples_pin();
	view_calls(&view, &(struct sample_scope){ 0 });
	samples_unpin();
	for (u32 i = 0; i < view.nr_rows; i++) {
		const struct view_row *row = &view.rows[i];

		assert_true(row->keys[0] == 5 || row->keys[0] == CALL_UNKNOWN);
		if (row->keys[1])
			nr_functions += row->nr;
		else if (row->keys[0] == CALL_UNKNOWN)
			nr_unknown = row->nr;
	}
	assert_true(nr_unknown > 0);
	assert_int_equal(nr_functions, NR_PROCESSES * SAMPLES_OF_EACH);
}

/* A reader sees the same records while the worker runs, and the next reader sees each once. */
TEST(pinned)
{
	const struct sample_record *rec = NULL, *first;
	u64 nr = 0;

	begin();
	strcpy(host_comm, "pinned");
	for (u32 pid = 1; pid <= 20; pid++)
		run_process(pid);
	samples_pin();
	first = samples_next(0, NULL);
	host_first_live_pid = 1000;
	for (u32 pid = 21; pid <= 25; pid++)
		run_process(pid);
	stack_collect();
	assert_ptr_equal(samples_next(0, NULL), first);
	while ((rec = samples_next(0, rec)))
		nr += rec->nr_pinned;
	assert_int_equal(nr, 20 * SAMPLES_OF_EACH);
	samples_unpin();
	assert_int_equal(check_stats().nr_stored, 25 * SAMPLES_OF_EACH);
}

/* After a reset, nothing of the old records comes back from the archive. */
TEST(reset)
{
	begin();
	for (u32 pid = 1; pid <= 100; pid++)
		run_process(pid);
	sample_reset();
	assert_int_equal(check_stats().nr_stored, 0);
	stack_collect();
	assert_int_equal(check_stats().nr_stored, 0);
	for (u32 pid = 1; pid <= 100; pid++)
		run_process(pid);
	assert_int_equal(check_stats().nr_stored, 100 * SAMPLES_OF_EACH);
}

static bool stop_sampling;

static void *sample_for_ever(void *unused)
{
	u64 functions[3] = { 0 };

	host_irq_depth = 1;
	for (u32 i = 0; !READ_ONCE(stop_sampling); i++) {
		functions[0] = i % 50;
		functions[1] = i / 50 % 40000;
		take_stack(functions, 3);
	}
	return NULL;
}

/* A CPU takes samples while the worker collects and readers read. Nothing is lost or seen twice. */
TEST(at_once)
{
	pthread_t thread;
	u64 nr_before = 0;

	begin();
	host_first_live_pid = 1000;
	stop_sampling = false;
	assert_int_equal(pthread_create(&thread, NULL, sample_for_ever, NULL), 0);
	for (int i = 0; i < 300; i++) {
		struct sample_stats stats = check_stats();

		assert_true(stats.nr_unread >= 0 && stats.nr_unread <= 1);
		assert_true(stats.nr_attempts >= nr_before);
		nr_before = stats.nr_attempts;
		stack_collect();
	}
	WRITE_ONCE(stop_sampling, true);
	pthread_join(thread, NULL);
	assert_int_equal(check_stats().nr_unread, 0);
}

int unit_tests_begin(void **state)
{
	assert_int_equal(host_set_param("profile.samples", LOG_BYTES), 0);
	sample_init();
	return 0;
}
