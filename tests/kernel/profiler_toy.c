// SPDX-License-Identifier: BSD-2-Clause
/*
 * A toy profiler, which counts processes that have ended. Besides an entry in Kconfig and a line in
 * Kbuild, a profiler needs nothing else. tests/boot/test_house.py looks for it in a report, in
 * /proc/profile and in a reset.
 */

#include "../../kernel/profile/profiler.h"
#include "../../kernel/profile/table.h"

static u64 nr_exits;

static const struct column columns[] = {
	{ "exits", "exits", COLUMN_COUNT, 8 },
};

static const struct table toy_table = { .columns = columns, .nr_columns = 1 };

static void process_exit(struct profile_process *pp)
{
	__atomic_fetch_add(&nr_exits, 1, __ATOMIC_RELAXED);
}

static void reset(void)
{
	pf_write_once(nr_exits, 0);
}

static void print(const struct report *report)
{
	table_begin(&toy_table, "Toy Profiler");
	table_head();
	table_row(&(struct cell){ .state = CELL_VALUE, .nr = pf_read_once(nr_exits) });
	table_end_without_total();
}

static void show(os_text_t *text)
{
	os_text_printf(text, "%lu\n", pf_read_once(nr_exits));
}

static const struct profiler_file files[] = {
	{ "profile/toy", .show = show },
	{ 0 },
};

PROFILER(toy) = {
	.name = "toy",
	.place = 25, /* between samples and points */
	.reset = reset,
	.print = print,
	.process_exit = process_exit,
	.files = files,
};
