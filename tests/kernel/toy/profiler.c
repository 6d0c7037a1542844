// SPDX-License-Identifier: BSD-2-Clause
/*
 * A toy profiler, which counts processes that have ended, and steps: calls of its hook. Besides
 * this folder it has an entry in Kconfig, a line in Kbuild, and the calls of its hook; a profiler
 * needs nothing else. A real one is in a folder of kernel/profile/. tests/boot/test_house.py looks
 * for the toy in a report, in /proc/profile and in a reset.
 */

#include "../../../kernel/profile/profiler.h"
#include "../../../kernel/profile/table.h"

static u64 nr_exits, nr_steps; /* steps of processes that have ended */

static const struct column columns[] = {
	{ "exits", "exits", COLUMN_COUNT, 8 },
	{ "steps", "steps", COLUMN_COUNT, 8 },
};

static const struct table toy_table = { .columns = columns, .nr_columns = 2 };

static void toy_task_exit(struct profile_task *pt)
{
	if (pt->process)
		pt->process->toy.nr_steps += pt->toy.nr_steps;
}

static void process_exit(struct profile_process *pp)
{
	__atomic_fetch_add(&nr_exits, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nr_steps, pp->toy.nr_steps, __ATOMIC_RELAXED);
}

static void reset(void)
{
	pf_write_once(nr_exits, 0);
	pf_write_once(nr_steps, 0);
}

static void print(const struct report *report)
{
	table_begin(&toy_table, "Toy Profiler");
	table_head();
	table_row((struct cell[]){ cell_nr(pf_read_once(nr_exits)),
				   cell_nr(pf_read_once(nr_steps)) });
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
	.task_exit = toy_task_exit,
	.process_exit = process_exit,
	.files = files,
};
