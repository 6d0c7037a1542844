// SPDX-License-Identifier: BSD-2-Clause
/* The heatmap's other tables: see view.c for what they count and README.md for their formats. */

#include "internal.h"

static struct view view; /* of the one reader */

static const char *const cut_reasons[NR_STACK_CUTS] = {
	[STACK_CUT_DEPTH] = "deeper than profile.depth",
	[STACK_CUT_ENTRY] = "in entry code",
	[STACK_CUT_STACK] = "off the stack",
	[STACK_CUT_TEXT] = "a return address that is none",
	[STACK_CUT_USER_FRAME] = "user code without frame pointers",
	[STACK_CUT_USER_MEMORY] = "a user's stack that is not in memory",
};

static void print_title(const char *title, u32 top)
{
	if (top == REPORT_TOP_ALL)
		report_printf("Kernel Heatmap %s (all)\n", title);
	else
		report_printf("Kernel Heatmap %s (top #%u)\n", title, top);
}

static void print_rule(const char *rule)
{
	report_printf("%s\n", rule);
}

static const char *percent_text(char text[16], u64 part, u64 total)
{
	u32 percent = report_percent(part, total);

	snprintf(text, 16, "%u.%02u", percent / 100, percent % 100);
	return text;
}

static void print_more(u32 nr_more, u64 nr)
{
	if (nr_more)
		report_printf("and %u more, with %lu samples\n", nr_more, nr);
	if (view.nr_dropped)
		report_printf("no room for %lu samples' rows\n", view.nr_dropped);
}

/* What the rows behind the first nr_shown stand for. */
static void print_rest(u32 nr_shown)
{
	u64 nr = 0;

	for (u32 i = nr_shown; i < view.nr_rows; i++)
		nr += view.rows[i].nr;
	print_more(view.nr_rows - nr_shown, nr);
}

/* Most samples first, then by key. */
static int compare_rows(const void *a_, const void *b_)
{
	const struct view_row *a = a_, *b = b_;

	if (a->nr != b->nr)
		return compare_u64(b->nr, a->nr);
	if (a->nr_inclusive != b->nr_inclusive)
		return compare_u64(b->nr_inclusive, a->nr_inclusive);
	for (u32 i = 0; i < VIEW_NR_KEYS; i++) {
		if (a->keys[i] != b->keys[i])
			return compare_u64(a->keys[i], b->keys[i]);
	}
	return 0;
}

static void sort_rows(int (*compare)(const void *a, const void *b))
{
	sort(view.rows, view.nr_rows, sizeof(view.rows[0]), compare);
}

static void print_cuts(void)
{
	u64 nr = 0;

	for (u32 i = STACK_WHOLE + 1; i < NR_STACK_CUTS; i++)
		nr += view.nr_cut[i];
	if (!nr)
		return;
	report_printf("cut chains: %lu of %lu\n", nr, view.nr_ticks);
	for (u32 i = STACK_WHOLE + 1; i < NR_STACK_CUTS; i++) {
		if (view.nr_cut[i])
			report_printf("%16lu  %s\n", view.nr_cut[i], cut_reasons[i]);
	}
}

static void print_functions(u32 top)
{
	static const char *const rule = "----------------  --------------------  ----------  "
					"---------  ----------  ---------  ----------";
	char percent[16], inclusive[16];
	u32 nr_shown;

	view_functions(&view);
	sort_rows(compare_rows);
	nr_shown = min(top, view.nr_rows);
	print_title("by function", top);
	report_printf("         Address              Function          NR          %%   inclusive"
		      "          %%    irqs.off\n");
	print_rule(rule);
	for (u32 i = 0; i < nr_shown; i++) {
		const struct view_row *row = &view.rows[i];

		report_printf("%016lx  %20s  %10lu  %9s  %10lu  %9s  %10lu\n", row->keys[0],
			      row->name, row->nr, percent_text(percent, row->nr, view.nr_ticks),
			      row->nr_inclusive,
			      percent_text(inclusive, row->nr_inclusive, view.nr_ticks),
			      row->nr_irqs_off);
	}
	print_rule(rule);
	print_rest(nr_shown);
	print_cuts();
}

static u64 call_total(u64 call)
{
	for (u32 i = 0; i < view.nr_rows; i++) {
		if (view.rows[i].keys[0] == call && !view.rows[i].keys[1])
			return view.rows[i].nr;
	}
	return 0;
}

/* Rows of one call together, its sum first; calls by their sums, which are in nr_inclusive. */
static int compare_calls(const void *a_, const void *b_)
{
	const struct view_row *a = a_, *b = b_;

	if (a->nr_inclusive != b->nr_inclusive)
		return compare_u64(b->nr_inclusive, a->nr_inclusive);
	if (a->keys[0] != b->keys[0])
		return compare_u64(a->keys[0], b->keys[0]);
	if (!a->keys[1] != !b->keys[1])
		return compare_u64(!b->keys[1], !a->keys[1]);
	return compare_rows(a, b);
}

static void print_call_row(const struct view_row *row, u64 nr_call)
{
	char percent[16], of_call[16], name[32];

	snprintf(name, sizeof(name), "sys_%lu", row->keys[0]);
	report_printf("%20s  %20s  %10lu  %9s  %9s\n",
		      row->keys[1] ? "" :
		      row->name[0] ? row->name :
				     name,
		      row->keys[1] ? row->name : "", row->nr,
		      percent_text(percent, row->nr, view.nr_ticks),
		      percent_text(of_call, row->nr, nr_call));
}

static void print_calls(u32 top)
{
	static const char *const rule = "--------------------  --------------------  ----------  "
					"---------  ---------";
	u64 nr_call = 0, nr_more = 0;
	u32 nr_calls = 0, nr_functions = 0, nr_all = 0;

	view_calls(&view);
	for (u32 i = 0; i < view.nr_rows; i++)
		view.rows[i].nr_inclusive = call_total(view.rows[i].keys[0]);
	sort_rows(compare_calls);
	print_title("by system call", top);
	report_printf("         System call              Function          NR          %%"
		      "  %% of call\n");
	print_rule(rule);
	for (u32 i = 0; i < view.nr_rows; i++) {
		const struct view_row *row = &view.rows[i];

		if (!row->keys[1]) {
			nr_all++;
			nr_functions = 0;
			nr_call = row->nr;
			if (nr_calls == top) {
				nr_more += row->nr;
				continue;
			}
			nr_calls++;
		} else if (nr_all > nr_calls || ++nr_functions > top) {
			continue;
		}
		print_call_row(row, nr_call);
	}
	print_rule(rule);
	print_more(nr_all - nr_calls, nr_more);
}

static void print_tasks(u32 top)
{
	static const char *const rule = "----------  ----------  ---------------  ----------  "
					"---------  ----------  ----------  ----------  ----------";
	char name[2 * sizeof(u64) + 1] = "", percent[16];
	u32 nr_shown;

	view_tasks(&view);
	sort_rows(compare_rows);
	nr_shown = min(top, view.nr_rows);
	print_title("by task", top);
	report_printf("       pid         tid             name          NR          %%"
		      "        user      kernel         irq        idle\n");
	print_rule(rule);
	for (u32 i = 0; i < nr_shown; i++) {
		const struct view_row *row = &view.rows[i];

		memcpy(name, &row->keys[1], 2 * sizeof(u64));
		report_printf("%10lu  %10lu  %15s  %10lu  %9s  %10lu  %10lu  %10lu  %10lu\n",
			      row->keys[0] >> 32, row->keys[0] & 0xffffffff, name, row->nr,
			      percent_text(percent, row->nr, view.nr_ticks),
			      row->nr_class[HEAT_USER], row->nr_class[HEAT_KERNEL],
			      row->nr_class[HEAT_IRQ], row->nr_class[HEAT_IDLE]);
	}
	print_rule(rule);
	print_rest(nr_shown);
}

static u64 sum_dropped(const struct sample_books *books)
{
	u64 nr = 0;

	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		nr += books->nr_dropped[i];
	return nr;
}

static void print_cpus(u32 top)
{
	static const char *const rule = "---  ----------  ----------  ----------  ----------  "
					"----------  ----------  ----------  --------  --------";
	unsigned int cpu;

	report_printf("Kernel Heatmap by CPU\n");
	report_printf("CPU        user      kernel         irq        idle    attempts      stored"
		      "     dropped   records  log.bytes\n");
	print_rule(rule);
	for_each_possible_cpu(cpu) {
		const struct sample_books *books = samples_books(cpu);

		report_printf("%3u  %10lu  %10lu  %10lu  %10lu  %10lu  %10lu  %10lu  %8u  %9u\n",
			      cpu, books->nr_class[HEAT_USER], books->nr_class[HEAT_KERNEL],
			      books->nr_class[HEAT_IRQ], books->nr_class[HEAT_IDLE],
			      books->nr_attempts, books->nr_stored,
			      sum_dropped(books) + books->nr_unread, books->nr_records,
			      books->log_bytes);
	}
	print_rule(rule);
}

static const struct {
	const char *name;
	void (*print)(u32 top);
} views[] = {
	{ "functions", print_functions },
	{ "calls", print_calls },
	{ "tasks", print_tasks },
	{ "cpus", print_cpus },
};

void report_print_views(const char *names, u32 top)
{
	for (u32 i = 0; i < ARRAY_SIZE(views); i++) {
		if (!glob_match_list(names, views[i].name))
			continue;
		report_printf("\n");
		views[i].print(top);
	}
}

static int compare_address(const void *a_, const void *b_)
{
	const struct view_row *a = a_, *b = b_;

	return compare_u64(a->keys[0], b->keys[0]);
}

void report_print_function(const char *function)
{
	static const char *const rule = "----------------  ----------------------  ----------  "
					"---------  ----------";
	char percent[16], place[16];
	u64 nr = 0;

	view_function(&view, function);
	sort_rows(compare_address);
	for (u32 i = 0; i < view.nr_rows; i++)
		nr += view.rows[i].nr;
	report_printf("Kernel Heatmap of %s: %lu of %lu samples\n", function, nr, view.nr_ticks);
	report_printf("         Address                   Place          NR          %%"
		      "    irqs.off\n");
	print_rule(rule);
	for (u32 i = 0; i < view.nr_rows; i++) {
		const struct view_row *row = &view.rows[i];

		snprintf(place, sizeof(place), "+%#lx", row->keys[0] - row->keys[1]);
		report_printf("%016lx  %22s  %10lu  %9s  %10lu\n", row->keys[0], place, row->nr,
			      percent_text(percent, row->nr, nr), row->nr_irqs_off);
	}
	print_rule(rule);
	print_more(0, 0);
}

void report_print_user(struct process *proc, u32 top)
{
	static const char *const rule = "----------------  ------------------------------  "
					"----------  ---------";
	char percent[16], file[256], path[256], place[288];
	u64 nr = 0, offset;
	u32 nr_shown;

	view_user(&view, os_process_pid(proc), os_process_program(proc));
	sort_rows(compare_rows);
	nr_shown = min(top, view.nr_rows);
	for (u32 i = 0; i < view.nr_rows; i++)
		nr += view.rows[i].nr;
	report_printf("\n");
	print_title("of user code", top);
	report_printf("         Address                     File offset          NR          %%\n");
	print_rule(rule);
	for (u32 i = 0; i < nr_shown; i++) {
		const struct view_row *row = &view.rows[i];

		if (os_process_mapping(proc, row->keys[0], file, sizeof(file), &offset)) {
			report_copy_printable(path, file, sizeof(path));
			snprintf(place, sizeof(place), "%s+%#lx", path, offset);
		} else {
			strscpy(place, "[unknown]", sizeof(place));
		}
		report_printf("%016lx  %30s  %10lu  %9s\n", row->keys[0], place, row->nr,
			      percent_text(percent, row->nr, nr));
	}
	print_rule(rule);
	print_rest(nr_shown);
}

static void print_stack(const struct merged_stack *stack)
{
	const struct sample_record *rec = stack->rec;
	char comm[SAMPLE_COMM_BYTES];
	const char *call, *name;
	u64 start;

	sample_comm(rec, comm);
	report_printf("%s", comm);
	if (rec->cut)
		report_printf(";[cut: %s]", cut_reasons[rec->cut]);
	for (u32 i = rec->nr_user; i--;)
		report_printf(";%#lx", rec->pcs[rec->nr_kernel + i]);
	if (rec->class == HEAT_KERNEL && rec->syscall != OS_NO_SYSCALL) {
		call = os_syscall_name(rec->syscall);
		if (call)
			report_printf(";[%s]", call);
		else
			report_printf(";[sys_%u]", rec->syscall);
	}
	for (u32 i = rec->nr_kernel; i--;) {
		name = os_symbol_lookup(rec->pcs[i] - (i != 0), &start);
		if (name)
			report_printf(";%s", name);
		else
			report_printf(";%#lx", rec->pcs[i]);
	}
	report_printf(" %lu\n", stack->nr);
}

void report_print_stacks(void)
{
	struct merged_stacks merged;

	if (stacks_merge(&merged)) {
		report_printf("# no memory to merge %u records\n", merged.nr_records);
		return;
	}
	report_printf("# %u stacks of %u records, merged in %lu ns with %lu bytes\n",
		      merged.nr_stacks, merged.nr_records, merged.ns,
		      merged.nr_slots * sizeof(struct merged_stack));
	for (u32 i = 0; i < merged.nr_stacks; i++)
		print_stack(&merged.stacks[i]);
	stacks_free(&merged);
}
