// SPDX-License-Identifier: BSD-2-Clause
/* Prints waits: the table of a report, and folded call chains for flame graphs. */

#include "report_times.h"

#include "../user_symbols.h"

#define NR_CHAINS  3 /* rows whose call chains are printed below the table */
#define PATH_BYTES 256

enum {
	WHAT = NR_TIME_COLUMNS,
	WHERE,
	WAKER,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	TIME_COLUMNS,
	[WHAT] = { "waits.for", "what", COLUMN_TEXT, 22, .left = true },
	[WHERE] = { "where", "function", COLUMN_TEXT, 20, .left = true },
	[WAKER] = { "woken.by", "waker", COLUMN_TEXT, 20, .left = true },
};

void report_wait_comm(char text[17], const u64 comm[2])
{
	memcpy(text, comm, 16);
	text[16] = 0;
	report_make_printable(text);
}

/* Prints the thread's name in a line of folded stacks. */
static void print_folded_comm(const char *before, const struct wait_record *rec)
{
	char comm[17];

	report_wait_comm(comm, rec->comm);
	report_make_foldable(comm);
	if (rec->kind == WAKER_INTERRUPT)
		report_printf("%sinterrupt", before);
	else
		report_printf("%s%s", before, comm);
}

const char *report_wait_function(u64 addr, char *text, size_t size)
{
	u64 start;

	return addr && os_symbol_lookup(addr, &start, text, size) ? text : "-";
}

/* Returns the call site of a user frame. The innermost address is exact. */
static u64 user_call_site(const struct wait_record *rec, u32 frame)
{
	return rec->pcs[rec->nr_kernel + frame] - (frame != 0);
}

/*
 * Returns the user frame that a reader knows: pthread_mutex_lock, not what it calls in its library.
 * Those functions have no symbol, or a name that C reserves, which begins with two underscores. If
 * none of the library's functions is known, returns the outermost one, so that its caller follows.
 */
static u32 known_frame(const struct wait_record *rec)
{
	struct user_symbol symbol;
	u32 image = 0;

	for (u32 i = 0; i < rec->nr_user; i++) {
		user_symbol_of_code(rec->code_map, user_call_site(rec, i), &symbol);
		if (symbol.name && (symbol.name[0] != '_' || symbol.name[1] != '_'))
			return i && symbol.image != image ? i - 1 : i;
		if (i && symbol.image != image)
			break;
		image = symbol.image;
	}
	return 0;
}

void report_wait_user_functions(const struct wait_record *rec, char *text, size_t size)
{
	u32 first = known_frame(rec);
	size_t len = 0;

	text[0] = '\0';
	for (u32 i = first; i < pf_min((u32)rec->nr_user, first + 2) && len < size / 2; i++) {
		len += os_snprintf(text + len, size - len, i > first ? " < " : "");
		len += user_symbol_print(text + len, size - len, rec->code_map,
					 user_call_site(rec, i));
	}
}

void report_wait_own_function(const struct wait_record *rec, char *text, size_t size)
{
	struct user_symbol symbol;

	text[0] = '\0';
	for (u32 i = 0; i < rec->nr_user && !text[0]; i++) {
		user_symbol_of_code(rec->code_map, user_call_site(rec, i), &symbol);
		if (symbol.name && !symbol.in_library)
			os_strscpy(text, symbol.name, size);
	}
}

bool report_wait_object(u32 code_map, u64 addr, char *text, size_t size)
{
	struct user_symbol symbol;
	const char *file;

	if (!user_symbol_of_data(code_map, addr, &symbol))
		return false;
	file = report_basename(user_symbol_path(symbol.image));
	if (symbol.distance)
		os_snprintf(text, size, "%s+%#lx (%s)", symbol.name, symbol.distance, file);
	else
		os_snprintf(text, size, "%s (%s)", symbol.name, file);
	report_make_printable(text);
	return true;
}

/*
 * For a user address, also copies the object there or, without a symbol, the file and the offset in
 * it. A lock on the heap or on a stack is named by the functions that wait for it.
 */
void report_wait_name(const struct wait_row *row, os_process_t *proc, char *text, size_t size)
{
	char path[PATH_BYTES], waiter[64] = "", object[WAIT_NAME_BYTES];
	u32 code_map = 0;
	u64 offset;

	if (!row->addr) {
		os_snprintf(text, size, "%s", row->name);
		return;
	}
	if (row->most) {
		report_wait_user_functions(row->most, waiter, sizeof(waiter));
		code_map = row->most->code_map;
	} else if (proc) {
		code_map = os_process_code_map(proc);
	}
	if (report_wait_object(code_map, row->addr, object, sizeof(object))) {
		os_snprintf(text, size, "%s %s", row->name, object);
	} else if (proc && os_process_mapping(proc, row->addr, path, sizeof(path), &offset)) {
		os_snprintf(text, size, "%s %#lx (%s+%#lx)", row->name, row->addr,
			    report_basename(path), offset);
	} else if (waiter[0]) {
		os_snprintf(text, size, "%s %#lx (in %s)", row->name, row->addr, waiter);
	} else {
		os_snprintf(text, size, proc ? "%s %#lx (anonymous area)" : "%s %#lx", row->name,
			    row->addr);
	}
	report_make_printable(text);
}

/* Copies a row's waker: the function, and the name of the thread, or `interrupt`. */
void report_wait_waker(const struct wait_row *row, char *text, size_t size)
{
	char function[OS_SYMBOL_BYTES], comm[17];

	report_wait_comm(comm, row->waker_comm);
	report_wait_function(row->waker, function, sizeof(function));
	if (row->waker)
		os_snprintf(text, size, "%s (%s)", function, comm[0] ? comm : "interrupt");
	else
		os_snprintf(text, size, "%s", row->nr_in_flight ? "(not yet)" : "-");
}

void report_set_wait_times(struct cell cells[NR_TIME_COLUMNS], const struct wait_row *row)
{
	cells[SECONDS] = cell_nr(os_cycles_to_ns(row->asleep_cycles + row->ready_cycles));
	cells[FOR_CPU] = cell_nr(os_cycles_to_ns(row->ready_cycles));
	cells[TIMES] = cell_nr(row->nr);
	cells[LONGEST] = cell_nr(os_cycles_to_ns(row->max_cycles));
	cells[IN_FLIGHT] = cell_nr(row->nr_in_flight);
}

/* Prints a row. proc is the process of the row's address; NULL: unknown. */
static void print_row(const struct wait_row *row, os_process_t *proc)
{
	char what[WAIT_NAME_BYTES], where[OS_SYMBOL_BYTES], by[OS_SYMBOL_BYTES + 48];
	struct cell cells[NR_COLUMNS] = {
		[WHERE] = cell_text(report_wait_function(row->where, where, sizeof(where))),
	};

	report_set_wait_times(cells, row);
	report_wait_name(row, proc, what, sizeof(what));
	cells[WHAT] = cell_text(what);
	report_wait_waker(row, by, sizeof(by));
	cells[WAKER] = cell_text(by);
	table_row(cells);
}

size_t report_add_wait_chain(char *line, size_t size, size_t len, const struct wait_record *rec,
			     bool with_kernel)
{
	char name[OS_SYMBOL_BYTES];
	const char *separator = "";
	u64 start;

	for (u32 i = with_kernel ? 0 : rec->nr_kernel; i < rec->nr_kernel + rec->nr_user; i++) {
		u64 pc = rec->pcs[i] - (i != rec->nr_kernel);

		if (len > size * 3 / 4 || (i < rec->nr_kernel && os_in_scheduler(pc)))
			continue;
		if (i >= rec->nr_kernel)
			user_symbol_print(name, sizeof(name), rec->code_map, pc);
		else if (!os_symbol_lookup(pc, &start, name, sizeof(name)))
			os_snprintf(name, sizeof(name), "%#lx", pc);
		len += os_snprintf(line + len, size - len, "%s%s", separator, name);
		separator = " < ";
		if (i >= rec->nr_kernel && !strcmp(name, "main"))
			break; /* what calls it is the same in all programs */
	}
	return len;
}

/* Prints the call chain of a row, unless nothing is known of it. */
static void print_chain(u32 row, const char *what, const struct wait_record *rec, bool with_kernel)
{
	char line[480];
	size_t start = os_snprintf(line, sizeof(line), "row %u %s ", row, what);

	if (report_add_wait_chain(line, sizeof(line), start, rec, with_kernel) > start)
		table_note("%s", line);
}

/*
 * Prints the call chains of the longest waits: of the code that waits, and of the code that ends
 * the wait. The row names the kernel's functions, so a chain without a caller says no more, except
 * for a user's lock.
 */
static void print_chains(const struct wait_view *view, u32 nr, bool wide)
{
	for (u32 i = 0; i < pf_min(view->nr_rows, nr); i++) {
		const struct wait_record *rec = view->rows[i].most;
		u32 min_user;

		if (!rec || rec->kind == WAIT_PREEMPTED)
			continue;
		min_user = wide || rec->addr ? 0 : 2;
		if (rec->nr_user >= min_user)
			print_chain(i + 1, "waits in", rec, wide);
		if (rec->waker && rec->waker->kind == WAKER_THREAD &&
		    rec->waker->nr_user >= min_user)
			print_chain(i + 1, "is woken from", rec->waker, wide);
	}
}

static void print_scope(const struct wait_view *view, const struct report *report)
{
	const char *whose = report->proc   ? "this process's threads" :
			    report->is_run ? "the run's threads" :
					     "all threads";

	u64 asleep = os_cycles_to_ns(view->asleep_cycles) / NS_PER_MSEC;
	u64 ready = os_cycles_to_ns(view->ready_cycles) / NS_PER_MSEC;
	char in_flight[48] = "";

	if (view->nr_in_flight)
		os_snprintf(in_flight, sizeof(in_flight), "; %lu of them %s not ended",
			    view->nr_in_flight, view->nr_in_flight == 1 ? "has" : "have");
	table_note("waits: %lu of %s = asleep %lu.%03lu s + ready without a CPU %lu.%03lu s%s",
		   view->nr, whose, asleep / 1000, asleep % 1000, ready / 1000, ready % 1000,
		   in_flight);
}

void report_begin_waits(const struct table *table, const struct report *report, const char *title)
{
	table_begin_top(table, title, report->top);
	print_scope(&wait_view, report);
	table_head();
}

void report_end_waits(u32 times_column)
{
	struct wait_lost lost = waits_read_lost();

	table_end();
	if (lost.nr)
		table_note("not in the store: %lu waits of all threads, no room", lost.nr);
	if (lost.nr_wakers)
		table_note("no room for the wakers of %lu waits of all threads", lost.nr_wakers);
	if (wait_view.nr_dropped)
		table_note("no room for %lu waits' rows", wait_view.nr_dropped);
	table_note_others(table_nr_others(), table_others_sum(times_column), "waits");
}

/* The first report on the console says what it cannot show. */
static void note_one_cpu(void)
{
	static bool told;
	unsigned int cpu, nr = 0;

	if (told || !report_is_on_console())
		return;
	told = true;
	os_for_each_cpu(cpu)
		nr += os_cpu_online(cpu);
	if (nr == 1)
		table_note("one CPU: contention between CPUs needs more of them (SMP=<n>)");
}

static void print_table(const struct report *report)
{
	const struct table table = TABLE(columns, .top = report->top, .usecs = !report->wide);
	struct off_snapshot off = off_time_since_reset(&waits_off_time);

	report_begin_waits(&table, report, "Kernel Waits");
	for (u32 i = 0; i < wait_view.nr_rows; i++)
		print_row(&wait_view.rows[i], report->proc);
	report_end_waits(TIMES);
	report_print_off("recording of waits", "off", &off);
	note_one_cpu();
	print_chains(&wait_view, pf_min(report->top, report->wide ? REPORT_TOP_ALL : NR_CHAINS),
		     report->wide);
}

/* Makes the views of all tables but that of spinlocks, whose total is CPU time. */
static void make_views(const struct report *report)
{
	wait_key_fn *const keys[] = {
		report->is_run ? wait_by_reason_of_processes : wait_by_reason,
		wait_by_call,
		wait_by_task,
		wait_by_lock,
	};

	waits_make_views(report->proc, keys, report->wide ? PF_ARRAY_SIZE(keys) : 1);
}

static void print_tables(const struct report *report)
{
	print_table(report);
	if (report->wide) {
		waits_next_view();
		report_print_wait_calls(report);
		waits_next_view();
		report_print_wait_tasks(report);
		waits_next_view();
		report_print_wait_locks(report);
		waits_make_view(report->proc, wait_by_spinlock);
		report_print_spinlocks(report);
	}
}

void report_print_waits(const struct report *report)
{
	bool has_view = report->proc || report->is_run;

	/* In the report of a process or a run, summary.c has made a view of the pinned waits. */
	waits_pin();
	if (!has_view || report->wide)
		make_views(report);
	print_tables(report);
	waits_unpin();
}

void report_print_process_waits(os_process_t *proc, bool wide)
{
	struct report report = { .proc = proc, .top = REPORT_TOP_ALL, .wide = wide };

	waits_pin();
	make_views(&report);
	print_tables(&report);
	waits_unpin();
}

static void print_frames(const struct wait_record *rec)
{
	char name[OS_SYMBOL_BYTES], user[USER_FRAME_BYTES];

	for (u32 i = rec->nr_user; i--;)
		report_printf(";%s",
			      user_symbol_frame(user, rec->code_map, user_call_site(rec, i)));
	for (u32 i = rec->nr_kernel; i--;)
		report_printf(";%s", report_frame(name, rec->pcs[i], true));
}

static bool with_waker; /* whether the stacks are printed with wakers */

static void print_stack(const struct wait_record *rec, u64 cycles)
{
	print_folded_comm("", rec);
	print_frames(rec);
	report_printf(";[%s]", rec->kind == WAIT_PREEMPTED ? "a CPU" : rec->name ? rec->name : "?");
	if (with_waker && rec->waker) {
		print_folded_comm(";--;", rec->waker);
		print_frames(rec->waker);
	}
	report_printf(" %lu\n", os_cycles_to_ns(cycles));
}

static void print_in_flight(unsigned int cpu, const struct wait_record *rec)
{
	print_stack(rec, rec->max_cycles);
}

void report_print_wait_stacks(bool with_wakers)
{
	unsigned int cpu;

	with_waker = with_wakers;
	waits_pin();
	os_for_each_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			struct wait_counts counts = waits_read(cpu, rec);

			if (rec->kind == WAIT_SLEPT || rec->kind == WAIT_PREEMPTED)
				print_stack(rec, counts.asleep_cycles + counts.ready_cycles);
		}
	}
	waits_visit_in_flight(NULL, print_in_flight);
	waits_unpin();
}
