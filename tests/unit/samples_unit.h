/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_SAMPLES_UNIT_H
#define TESTS_SAMPLES_UNIT_H

/* Shared by the tests of samples with call chains: taking samples, and looking at the store. */

#include "unit.h"

#include "../../kernel/profile/table.h"

#define FN(i) (0xffffffff81000000ull + (i)*256)

static struct view view;
static const struct sample_scope machine;

static inline int setup(void **state)
{
	host_cpu = 0;
	host_idle = false;
	host_irq_depth = 1;
	host_tid = host_pid = 1;
	host_syscall = OS_NO_SYSCALL;
	strcpy(host_comm, "test");
	sample_reset();
	host_log_clear();
	table_text_restart();
	return 0;
}

/* Takes a sample of a call chain: functions by number, innermost first. */
static inline void take_stack(const u64 *functions, u32 nr)
{
	u64 callers[SAMPLE_MAX_DEPTH + 1];
	struct pt_regs regs = { .pc = FN(functions[0]) + 4, .callers = callers };

	for (u32 i = 1; i < nr; i++)
		callers[i - 1] = FN(functions[i]) + 8;
	regs.nr_callers = nr - 1;
	sample_take(&regs, os_cycles(), 0);
}

#define take(...) \
	take_stack((const u64[]){ __VA_ARGS__ }, sizeof((u64[]){ __VA_ARGS__ }) / sizeof(u64))

static inline void take_at(u64 pc)
{
	struct pt_regs regs = { .pc = pc };

	sample_take(&regs, os_cycles(), 0);
}

static inline void take_user(u64 pc)
{
	struct pt_regs regs = { .pc = pc, .user = true };

	sample_take(&regs, os_cycles(), 0);
}

/* Checks that the counts of each CPU add up, and returns their sum. */
static inline struct sample_stats check_stats(void)
{
	struct sample_stats sum = { 0 };

	samples_pin();
	for (unsigned int cpu = 0; cpu < HOST_NR_CPUS; cpu++) {
		const struct sample_stats *stats = samples_stats(cpu);
		const struct sample_record *rec = NULL;
		u64 nr = stats->nr_unread, nr_stored = 0;
		u32 nr_records = 0;

		for (u32 i = 0; i < NR_SAMPLE_DROPS; i++) {
			sum.nr_dropped[i] += stats->nr_dropped[i];
			nr += stats->nr_dropped[i];
		}
		for (; (rec = samples_next(cpu, rec)); nr_records++)
			nr_stored += rec->nr_pinned;
		assert_int_equal(nr_records, stats->nr_records);
		assert_int_equal(nr_stored, stats->nr_stored);
		assert_int_equal(nr + nr_stored, stats->nr_attempts);
		nr = stats->nr_dropped[DROP_NESTED];
		for (u32 i = 0; i < NR_HEAT_CLASSES; i++) {
			sum.nr_class[i] += stats->nr_class[i];
			nr += stats->nr_class[i];
		}
		if (!stats->nr_unread)
			assert_int_equal(nr, stats->nr_attempts);
		sum.nr_attempts += stats->nr_attempts;
		sum.nr_stored += stats->nr_stored;
		sum.nr_records += nr_records;
		sum.nr_unread += stats->nr_unread;
	}
	samples_unpin();
	return sum;
}

static inline const struct view_row *row_of(u64 a, u64 b)
{
	for (u32 i = 0; i < view.nr_rows; i++) {
		if (view.rows[i].keys[0] == a && view.rows[i].keys[1] == b)
			return &view.rows[i];
	}
	fail_msg("no row %#lx %#lx", (unsigned long)a, (unsigned long)b);
	return NULL;
}

static inline void look(void (*make)(struct view *view, const struct sample_scope *scope))
{
	samples_pin();
	make(&view, &machine);
	samples_unpin();
}

#endif
