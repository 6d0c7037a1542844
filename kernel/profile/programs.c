// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the table by program in the report of a run. When a process ends, its sums are added to
 * the row of its name; a report copies these rows and adds the processes that still run. There is
 * room for NR_ROWS names. The processes of further names are in the row [others].
 */

#include "programs.h"

#include "findings.h"
#include "profiler.h"
#include "table.h"

#define NR_ROWS	   256
#define NAME_BYTES 16
#define TRIES	   100
#define MANY	   10 /* processes of a program that are worth a finding */

struct row {
	char name[NAME_BYTES]; /* printable */
	u64 comm[2];	       /* os_process_comm() of the first process */
	struct report_summary sums;
};

struct rows {
	u32 nr;
	struct row rows[NR_ROWS];
	struct row others;
};

static os_lock_t lock = OS_LOCK_INIT;
static struct rows ended; /* guarded by lock */
static struct rows all;	  /* of the one reader */

void programs_add_threads(struct profile_thread_sums *to, const struct profile_thread_sums *from)
{
	PF_BUILD_BUG_ON(sizeof(*to) % sizeof(u64));
#pragma GCC unroll 16
	for (u32 i = 0; i < sizeof(*to) / sizeof(u64); i++)
		((u64 *)to)[i] += ((const u64 *)from)[i];
}

static void add_times(struct profile_cpu_times *to, const struct profile_cpu_times *from)
{
	to->user += from->user;
	to->calls += from->calls;
	to->faults += from->faults;
	to->exceptions += from->exceptions;
	to->irqs += from->irqs;
}

static void add_summary(struct report_summary *to, const struct report_summary *from)
{
	to->nr_processes += from->nr_processes;
	to->nr_calls += from->nr_calls;
	report_add_faults(to, from->nr_faults);
	report_keep_peak(to, from->peak_bytes);
	programs_add_threads(&to->threads, &from->threads);
	add_times(&to->cpu, &from->cpu);
}

/* Returns the row of a name, or a new one, or the row of the others if the table is full. */
static struct row *row_of(struct rows *rows, const char *name)
{
	char key[NAME_BYTES] = "";
	struct row *row;

	report_copy_printable(key, name, sizeof(key));
	for (u32 i = 0; i < rows->nr; i++) {
		if (!memcmp(rows->rows[i].name, key, sizeof(key)))
			return &rows->rows[i];
	}
	if (rows->nr == NR_ROWS)
		return &rows->others;
	row = &rows->rows[rows->nr++];
	*row = (struct row){ 0 };
	memcpy(row->name, key, sizeof(key));
	return row;
}

/* Returns the same row. Most processes have the very name of the first one in their row. */
static struct row *row_of_process(os_process_t *proc)
{
	struct row *row;
	u64 comm[2];

	os_process_comm(proc, comm);
	for (row = ended.rows; row < ended.rows + ended.nr; row++) {
		if (row->comm[0] == comm[0] && row->comm[1] == comm[1])
			return row;
	}
	row = row_of(&ended, os_process_name(proc));
	if (!row->sums.nr_processes)
		memcpy(row->comm, comm, sizeof(row->comm));
	return row;
}

static void process_ended(struct profile_process *pp)
{
	os_process_t *proc = os_process_of(pp);
	unsigned long flags = os_lock(&lock);

	report_summarize(proc, &row_of_process(proc)->sums);
	os_unlock(&lock, flags);
}

static void reset_programs(void)
{
	unsigned long flags = os_lock(&lock);

	ended.nr = 0;
	ended.others = (struct row){ 0 };
	os_unlock(&lock, flags);
}

static void add_running(const char *program, const struct report_summary *part)
{
	add_summary(&row_of(&all, program)->sums, part);
}

void programs_read(struct report_summary *total)
{
	unsigned long flags;
	u32 tries = TRIES, nr_exits;

	/*
	 * A process or thread that ends meanwhile could be counted twice, or not at all: read
	 * again.
	 */
	do {
		nr_exits = report_nr_exits();
		flags = os_lock(&lock);
		all = ended;
		os_unlock(&lock, flags);
		report_visit_running(add_running);
	} while (report_nr_exits() != nr_exits && --tries);

	*total = all.others.sums;
	for (u32 i = 0; i < all.nr; i++)
		add_summary(total, &all.rows[i].sums);
	report_summarize(NULL, total);
}

static u64 cpu_cycles(const struct row *row)
{
	return report_cpu_cycles(&row->sums);
}

static int compare_rows(const void *a, const void *b)
{
	return compare_u64(cpu_cycles(b), cpu_cycles(a)) ?:
		       strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

/*
 * Offers a program that was started many times, unless all processes are of it. Its row's number is
 * that in the table.
 */
static void offer_findings(const struct finding_scope *scope)
{
	char count[FINDING_COUNT_BYTES], each[FINDING_COUNT_BYTES];

	if (!scope->report->is_run)
		return;
	os_sort(all.rows, all.nr, sizeof(all.rows[0]), compare_rows);
	for (u32 i = 0; i < pf_min(all.nr, scope->report->top); i++) {
		const struct row *row = &all.rows[i];
		u64 ns = os_cycles_to_ns(cpu_cycles(row));

		if (row->sums.nr_processes >= MANY &&
		    row->sums.nr_processes < scope->sums->nr_processes)
			finding_of_cpu_time(scope, ns,
					    "in %s processes of %s, %s each [Programs: row %u]",
					    finding_count(count, row->sums.nr_processes), row->name,
					    finding_each(each, ns, row->sums.nr_processes), i + 1);
	}
}

enum {
	PROCESSES,
	CPU_SECONDS,
	WAITED,
	CALLS,
	PROGRAM,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[PROCESSES] = { "processes", "processes", COLUMN_COUNT, 9, TOTAL_SUM },
	[CPU_SECONDS] = { "cpu seconds", "cpu_ns", COLUMN_SECONDS, 14, TOTAL_SUM },
	[WAITED] = { "waited", "waited_ns", COLUMN_SECONDS, 14, TOTAL_SUM },
	[CALLS] = { "calls", "calls", COLUMN_COUNT, 9, TOTAL_SUM },
	[PROGRAM] = { "program", "program", COLUMN_TEXT, 16, TOTAL_LABEL, .left = true },
};

static void set_cells(struct cell cells[NR_COLUMNS], const struct row *row, const char *name)
{
	cells[PROCESSES] = cell_nr(row->sums.nr_processes);
	cells[CPU_SECONDS] = cell_nr(os_cycles_to_ns(cpu_cycles(row)));
	cells[WAITED] = cell_nr(os_cycles_to_ns(row->sums.threads.off_cycles));
	cells[CALLS] = cell_nr(row->sums.nr_calls);
	cells[PROGRAM] = cell_text(name);
}

void programs_print(u32 top)
{
	const struct table table = TABLE(columns, .dense = true, .top = top);
	struct cell cells[NR_COLUMNS];

	os_sort(all.rows, all.nr, sizeof(all.rows[0]), compare_rows);
	table_begin(&table, "Programs");
	table_head();
	for (u32 i = 0; i < all.nr; i++) {
		set_cells(cells, &all.rows[i], all.rows[i].name);
		table_row(cells);
	}
	/* The rows beyond the top, and the processes that have no row. */
	for (u32 i = table.top; i < all.nr; i++)
		add_summary(&all.others.sums, &all.rows[i].sums);
	if (all.others.sums.nr_processes) {
		set_cells(cells, &all.others, "[others]");
		table_summary_row(cells);
	}
	table_end();
}

PROFILER(programs) = {
	.name = "programs",
	.place = 6,
	.reset = reset_programs,
	.find = offer_findings,
	.process_ended = process_ended,
};
