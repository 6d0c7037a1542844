// SPDX-License-Identifier: BSD-2-Clause
/* Tests the views of samples with call chains, and merged stacks. */

#include <time.h>

#include "samples_unit.h"

#include "../../kernel/profile/samples/store.h"

/* Chains of eight functions, and room for 50,000 different ones. */
int unit_tests_begin(void **state)
{
	assert_int_equal(host_set_param("profile.samples", "2097152"), 0);
	assert_int_equal(host_set_param("profile.depth", "8"), 0);
	sample_init();
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(depth_is_bounded)
{
	take(1, 2, 3, 4, 5, 6, 7, 8);
	take(1, 2, 3, 4, 5, 6, 7, 8, 9);
	take(1, 2, 3, 4, 5, 6, 7, 8, 10, 11);
	assert_int_equal(check_stats().nr_records, 2);
	look(view_functions);
	assert_int_equal(view.nr_truncated[PROFILE_STACK_TRUNCATED_DEPTH], 2);
	assert_int_equal(row_of(FN(8), 0)->nr_inclusive, 3);
}

TEST(inclusive_counts_recursion_once)
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
	assert_int_equal(view.nr_samples, 3);
}

/*
 * A call at the very end of a function returns to the start of the next function; the sample counts
 * for the caller.
 */
TEST(return_address_at_the_end)
{
	u64 caller = FN(3);
	struct pt_regs regs = { .pc = FN(1), .callers = &caller, .nr_callers = 1 };

	sample_take(&regs, os_cycles(), 0);
	look(view_functions);
	assert_int_equal(row_of(FN(2), 0)->nr_inclusive, 1);
	assert_int_equal(row_of(FN(1), 0)->nr, 1);
}

/* Samples addresses of small functions in a scattered order, and one address behind them. */
TEST(each_address_is_in_its_function)
{
	u64 first = 0xffffffff82000000, nr_bytes = 8192 * 20, step = 4099, pc;
	u32 nr_samples = 2000;

	for (u64 i = 0; i < nr_samples; i++)
		take_at(first + i * step % nr_bytes);
	for (int again = 0; again < 2; again++) {
		u64 nr[8192] = { 0 };

		look(view_functions);
		for (u64 i = 0; i < nr_samples; i++)
			nr[i * step % nr_bytes / 20]++;
		for (u32 i = 0; i < view.nr_rows; i++)
			assert_int_equal(view.rows[i].nr, nr[(view.rows[i].keys[0] - first) / 20]);
		assert_int_equal(view.nr_samples, nr_samples);
	}
	/* Functions in one block of the symbol cache alternate, in both directions. */
	sample_reset();
	for (pc = first; pc < first + 60; pc++)
		take_at(pc);
	while (pc-- > first)
		take_at(pc);
	look(view_functions);
	assert_int_equal(view.nr_rows, 3);
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(row_of(first + 20 * i, 0)->nr, 40);
	take_at(first + nr_bytes - 1);
	take_at(first + nr_bytes);
	take_at(first + nr_bytes + 1);
	look(view_functions);
	assert_int_equal(row_of(first + nr_bytes - 20, 0)->nr, 1);
	assert_int_equal(row_of(first + nr_bytes, 0)->nr, 1);
	assert_int_equal(row_of(first + nr_bytes + 1, 0)->nr, 1);
}

static u32 nr_lookups;

static void count_lookup(void)
{
	nr_lookups++;
}

/* Functions half a megabyte apart have the same first entry in the symbol cache. */
TEST(callers_far_apart_are_looked_up_once)
{
	for (u64 i = 0; i < 100; i++)
		take(1 + i % 50, 100, 100 + 2048, 100 + 4096, 100 + 6144);
	nr_lookups = 0;
	host_on_symbol = count_lookup;
	look(view_functions);
	host_on_symbol = NULL;
	assert_in_range(nr_lookups, 1, 2 * (50 + 4));
	for (u64 i = 0; i < 4; i++)
		assert_int_equal(row_of(FN(100 + 2048 * i), 0)->nr_inclusive, 100);
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

TEST(views_as_printed)
{
	make_some();
	samples_pin();
	report_print_views("functions,calls,tasks", 3, &machine);
	samples_unpin();
	assert_log("Kernel Heatmap by function (top #3)\n"
		   "samples: 10, all CPUs since the last reset (0.00 s)\n"
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
		   "4 others, with 3 samples\n"
		   "\n"
		   "Kernel Heatmap by system call (top #3)\n"
		   "samples: 10, all CPUs since the last reset (0.00 s)\n"
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
		   "3 others, with 3 samples\n"
		   "\n"
		   "Kernel Heatmap by task (top #3)\n"
		   "samples: 10, all CPUs since the last reset (0.00 s)\n"
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

TEST(cpus_as_printed)
{
	make_some();
	os_per_cpu(sample_cpus, 1).counts.nr_dropped[DROP_NESTED][HEAT_KERNEL]++;
	samples_pin();
	report_print_views("cpus", 3, &machine);
	samples_unpin();
	assert_non_null(strstr(host_log, "\n  0           2           6           0           0"
					 "           8           8           0         6"));
	assert_non_null(strstr(host_log, "\n  1           0           0           1           1"
					 "           3           2           1         2"));
}

TEST(function_as_printed)
{
	struct pt_regs regs = { .pc = FN(2) + 0x30, .irqs_off = true };

	make_some();
	host_idle = false;
	sample_take(&regs, os_cycles(), 1);
	samples_pin();
	report_print_function("fn_2");
	samples_unpin();
	assert_log("Kernel Heatmap of fn_2: 3 of 11 samples\n"
		   "samples: 11, all CPUs since the last reset (0.00 s)\n"
		   "         Address                   Place          NR          %    irqs.off\n"
		   "----------------  ----------------------  ----------  ---------  ----------\n"
		   "ffffffff81000204                    +0x4           2      66.67           0\n"
		   "ffffffff81000230                   +0x30           1      33.33           1\n"
		   "----------------  ----------------------  ----------  ---------  ----------\n");
}

/* Samples of other processes and of an earlier program are left out. */
TEST(user_as_printed)
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
	samples_pin();
	report_print_user(&proc, 2);
	samples_unpin();
	host_program = 0;
	assert_log("Kernel Heatmap of user code (top #2)\n"
		   "samples: 4 of this process since its last execve\n"
		   "         Address                     File offset          NR          %\n"
		   "----------------  ------------------------------  ----------  ---------\n"
		   "0000000000401010             /bin/program+0x1010           2      50.00\n"
		   "0000000000401000             /bin/program+0x1000           1      25.00\n"
		   "----------------  ------------------------------  ----------  ---------\n"
		   "1 other, with 1 samples\n");
}

static int nr_swaps, nr_frees;

/* The names of two addresses. In code map 2, the second one is not known. */
static void find_name(u32 code_map, u64 addr, struct user_symbol *symbol)
{
	assert_int_equal(nr_swaps % 2, 1);
	symbol->image = 1;
	symbol->offset = addr - 0x400000;
	if (addr == 0x400fff) /* the call of the return address */
		symbol->name = "main";
	else if (addr == 0x401234 && code_map == 1)
		symbol->name = "operator;\"\" a\nb";
}

static const char *path_of_names(u32 image)
{
	return "/bin/a b;c";
}

static void swap_names(struct user_symbols *symbols)
{
	nr_swaps++;
}

static void free_names(struct user_symbols *symbols)
{
	nr_frees++;
}

static const struct user_symbol_source names = {
	.find_code = find_name,
	.path = path_of_names,
	.swap = swap_names,
	.free = free_names,
};

/* Returns whether stacks were printed. */
static bool print_next_stacks(struct stacks_copy *copy)
{
	struct stacks_step step = { .copy = copy };

	report_print_next_stacks(&step);
	return step.nr;
}

TEST(stacks_as_printed)
{
	u64 user[] = { FN(5) + 8, 0x401234, 0x401000 };
	struct pt_regs regs = {
		.pc = FN(1) + 4,
		.callers = user,
		.nr_callers = 1,
		.nr_user_callers = 2,
		.truncated = PROFILE_STACK_TRUNCATED_USER_FRAME,
	};
	struct stacks_copy *copy;

	nr_swaps = nr_frees = 0;
	host_syscall = 1;
	for (host_cpu = 0; host_cpu < 2; host_cpu++) {
		take(1, 5);
		take(1, 5);
	}
	host_cpu = 0;
	/* A task either has user code or has not, and one code map. */
	for (host_tid = 2; host_tid < 4; host_tid++) {
		host_code_map = host_tid - 1;
		sample_take(&regs, os_cycles(), 0);
	}
	host_code_map = 0;
	user_symbol_source = &names;
	report_print_last_merge();
	report_copy_stacks(&copy);
	assert_string_equal(host_log, "");
	sample_reset(); /* the reader has its own copy */
	take(1, 5);
	assert_true(print_next_stacks(copy));
	assert_false(print_next_stacks(copy));
	stacks_copy_free(copy);
	user_symbol_source = NULL;
	assert_int_equal(nr_swaps, 4);
	assert_int_equal(nr_frees, 1);
	/* Only stacks, as a flame graph tool expects. */
	assert_log("test;[sys_write];fn_5;fn_1 4\n"
		   "test;[cut: user code without frame pointers];main;operator?\"\"?a?b;"
		   "[sys_write];fn_5;fn_1 1\n"
		   "test;[cut: user code without frame pointers];main;a?b?c+0x1234;"
		   "[sys_write];fn_5;fn_1 1\n");
	report_print_last_merge();
	assert_non_null(strstr(host_log, "\nstacks, when last read: 3 of 4 records, merged in "));
}

/* A copy has all stacks in order. A copy that is not read to its end is freed, too. */
static void expect_copy(const struct merged_stacks *merged)
{
	struct stacks_copy *copy = stacks_copy(merged);
	const struct sample_record *rec;
	u32 nr = 0;

	assert_non_null(copy);
	for (; (rec = stacks_copy_next(copy)); nr++) {
		assert_int_equal(rec->nr_pinned, merged->stacks[nr].nr);
		assert_memory_equal(rec->comm, merged->stacks[nr].rec->comm,
				    record_bytes(rec) - offsetof(struct sample_record, comm));
	}
	assert_int_equal(nr, merged->nr_stacks);
	assert_null(stacks_copy_next(copy));
	stacks_copy_free(copy);
	copy = stacks_copy(merged);
	assert_non_null(copy);
	assert_non_null(stacks_copy_next(copy));
	stacks_copy_free(copy);
}

/*
 * Merges 50,000 different stacks, each twice and spread over all CPUs, and prints time and memory.
 */
TEST(merge_many)
{
	struct merged_stacks merged;
	struct timespec start, end;
	struct stacks_copy *copy;
	u64 nr = 0;

	for (host_cpu = 0; host_cpu < HOST_NR_CPUS; host_cpu++) {
		for (u64 i = 0; i < 12500; i++) {
			u64 id = host_cpu * 6250 + i / 2;

			take(id % 100, id / 100 % 100, id / 10000, 7, 8);
		}
	}
	host_cpu = 0;
	assert_int_equal(check_stats().nr_attempts, 100000);
	samples_pin();
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(stacks_merge(&merged), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	samples_unpin();
	assert_int_equal(merged.nr_stacks, 50000);
	for (u32 i = 0; i < merged.nr_stacks; i++)
		nr += merged.stacks[i].nr;
	assert_int_equal(nr, 100000);
	print_message("merged %u stacks of %u records in %ld us, %lu KiB\n", merged.nr_stacks,
		      merged.nr_records,
		      (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000,
		      (unsigned long)merged.nr_slots * sizeof(struct merged_stack) / 1024);
	expect_copy(&merged);
	stacks_free(&merged);
	host_fail_alloc = 1;
	samples_pin();
	assert_int_equal(stacks_merge(&merged), -ENOMEM);
	samples_unpin();
	report_copy_stacks(&copy);
	assert_null(copy);
	assert_string_equal(host_log, "# no memory for the stacks of 50000 records\n");
	host_fail_alloc = 0;
}
