// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints histograms in Linux's format (Documentation/trace/histogram.rst of 6.1). The tables of all
 * CPUs are added up in memory of the reader, while the CPUs go on counting.
 */

#include "hist.h"
#include "text.h"

#define MAX_MERGED 32768 /* rows of all CPUs together, as struct rows allows */

static void print_field(os_text_t *text, const struct hist_field *field)
{
	const char *form = hist_form_names[field->form];

	os_text_printf(text, "%s%s%s", field->name, form ? "." : "", form ?: "");
}

static void print_definition(os_text_t *text, const struct trace_hist *hist)
{
	os_text_printf(text, "hist:keys=");
	for (u32 i = 0; i < hist->nr_keys; i++) {
		os_text_printf(text, "%s", i ? "," : "");
		print_field(text, &hist->keys[i]);
	}
	os_text_printf(text, ":vals=hitcount");
	for (u32 i = 0; i < hist->nr_values; i++)
		os_text_printf(text, ",%s", hist->values[i].name);
	os_text_printf(text, ":sort=");
	for (u32 i = 0; i < hist->nr_sorts; i++) {
		const struct hist_sort *sort = &hist->sorts[i];

		os_text_printf(text, "%s%s%s", i ? "," : "", sort->by ? sort->by->name : "hitcount",
			       sort->descending ? ".descending" : "");
	}
	os_text_printf(text, ":size=%u", hist->max_rows);
	if (hist->has_filter)
		os_text_printf(text, " if %s", hist->filter.text);
}

void hist_print_command(os_text_t *text, const struct trace_hist *hist)
{
	print_definition(text, hist);
	os_text_printf(text, " [%s]\n", hist->is_paused ? "paused" : "active");
}

/* The rows of all CPUs. */
struct merged {
	u32 nr;
	u64 nr_lost;
	struct rows rows;
};

static void add_row(struct merged *merged, const struct trace_hist *hist, const u64 *row)
{
	u32 end = hist->comm_at ?: hist->row_words;
	u64 hits = pf_read_once(row[hist->key_words]), *sum;

	if (!hits)
		return; /* the CPU is adding it now */
	sum = rows_find(&merged->rows, row);
	if (!sum) {
		merged->nr_lost += hits;
		return;
	}
	if (hist->comm_at && !sum[hist->key_words])
		memcpy(&sum[hist->comm_at], &row[hist->comm_at], HIST_COMM_WORDS * sizeof(u64));
	sum[hist->key_words] += hits;
	for (u32 i = hist->key_words + 1; i < end; i++)
		sum[i] += pf_read_once(row[i]);
}

static void merge_table(struct merged *merged, const struct trace_hist *hist,
			const struct hist_table *table)
{
	u32 nr = pf_load_acquire(&table->nr_rows);

	merged->nr_lost += pf_read_once(table->nr_lost);
	for (u32 i = 0; i < nr; i++)
		add_row(merged, hist, rows_at(&table->rows, i));
}

/* Allocates room for the rows of all CPUs, even if each of them has other keys. */
static struct merged *alloc_merged(const struct trace_hist *hist)
{
	u64 row_bytes = hist->row_words * sizeof(u64), bytes;
	struct merged *merged;
	u32 cpu, nr = 0, max = 1;

	os_for_each_cpu(cpu)
		nr += hist->tables->of_cpu[cpu]->nr_rows;
	/* The CPUs may add rows meanwhile. */
	while (max < 2 * nr + HIST_MIN_ROWS && max < MAX_MERGED)
		max *= 2;
	bytes = max * row_bytes;
	merged = os_zalloc(sizeof(*merged) + bytes + ROWS_SLOTS(max) * sizeof(u16));
	if (!merged)
		return NULL;
	merged->rows = (struct rows){
		.rows = merged + 1,
		.slots = (u16 *)((char *)(merged + 1) + bytes),
		.nr = &merged->nr,
		.row_bytes = row_bytes,
		.key_words = hist->key_words,
		.max = max,
	};
	return merged;
}

static const struct trace_hist *sorted; /* the one that is being printed */

static int compare_by(const struct hist_field *by, const u64 *a, const u64 *b)
{
	u64 flip = by && by->is_signed ? PF_BIT(63) : 0;
	u32 at = by ? by->at : sorted->key_words;
	int order = 0;

	if (by && by->form == HIST_TEXT)
		return strcmp((const char *)(a + at), (const char *)(b + at));
	for (u32 i = 0; i < (by ? by->words : 1u) && !order; i++)
		order = compare_u64(a[at + i] ^ flip, b[at + i] ^ flip);
	return order;
}

/* Rows that are equal in what the command sorts by are in the order of their keys. */
static int compare_rows(const void *a, const void *b)
{
	int order = 0;

	for (u32 i = 0; i < sorted->nr_sorts && !order; i++) {
		order = compare_by(sorted->sorts[i].by, a, b);
		order = sorted->sorts[i].descending ? -order : order;
	}
	for (u32 i = 0; i < sorted->nr_keys && !order; i++)
		order = compare_by(&sorted->keys[i], a, b);
	return order;
}

static void print_symbol(os_text_t *text, const struct hist_field *key, u64 addr)
{
	char name[OS_SYMBOL_BYTES], symbol[OS_SYMBOL_BYTES + 24];
	bool offset = key->form == HIST_SYM_OFFSET;
	u64 start;

	if (!os_symbol_lookup(addr, &start, name, sizeof(name)))
		os_snprintf(symbol, sizeof(symbol), "0x%lx", addr);
	else if (offset)
		os_snprintf(symbol, sizeof(symbol), "%s+0x%lx", name, addr - start);
	else
		os_snprintf(symbol, sizeof(symbol), "%s", name);
	os_text_printf(text, "%s: [%lx] %-*s", key->name, addr, offset ? 55 : 45, symbol);
}

/*
 * Prints a call chain from the code that has the event on. Before it are the functions that write
 * the event, up to the writer, which is named after the event.
 */
static void print_stack(os_text_t *text, const struct hist_field *key, const u64 *pcs)
{
	static const char writer[] = "profile_trace_";
	char name[OS_SYMBOL_BYTES];
	u32 nr, first = 0;
	u64 start;

	for (nr = 0; nr < HIST_STACK_WORDS && pcs[nr]; nr++) {
		if (os_symbol_lookup(pcs[nr] - 1, &start, name, sizeof(name)) &&
		    !strncmp(name, writer, sizeof(writer) - 1))
			first = nr + 1;
	}
	os_text_printf(text, "%s:\n", key->name);
	for (u32 i = first; i < nr; i++) {
		/* The byte before: a call may be the last instruction of its function. */
		trace_printf(text, "         %ps\n", pcs[i] - 1);
	}
}

static void print_execname(os_text_t *text, const struct hist_field *key, u64 tid, const u64 *comm)
{
	char name[HIST_COMM_WORDS * sizeof(u64) + 1];

	memcpy(name, comm, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	report_make_printable(name);
	os_text_printf(text, "%s: %-16s[%10lu]", key->name, name, tid);
}

static void print_number(os_text_t *text, const struct hist_field *field, u64 value)
{
	if (field->is_signed)
		os_text_printf(text, "%s: %10ld", field->name, (s64)value);
	else
		os_text_printf(text, "%s: %10lu", field->name, value);
}

static void print_key(os_text_t *text, const struct trace_hist *hist, const struct hist_field *key,
		      const u64 *row)
{
	u64 value = row[key->at];
	char string[HIST_TEXT_WORDS * sizeof(u64)];
	const char *call;

	switch (key->form) {
	case HIST_HEX:
		os_text_printf(text, "%s: %lx", key->name, value);
		break;
	case HIST_SYM:
	case HIST_SYM_OFFSET:
		print_symbol(text, key, value);
		break;
	case HIST_LOG2:
		os_text_printf(text, "%s: ~ 2^%-2lu", key->name, value);
		break;
	case HIST_EXECNAME:
		print_execname(text, key, value, &row[hist->comm_at]);
		break;
	case HIST_SYSCALL:
		call = os_syscall_name(value);
		os_text_printf(text, "%s: %-30s[%3lu]", key->name, call ?: "unknown_syscall",
			       value);
		break;
	case HIST_TEXT:
		report_copy_printable(string, (const char *)&row[key->at], sizeof(string));
		os_text_printf(text, "%s: %-50s", key->name, string);
		break;
	case HIST_STACK:
		print_stack(text, key, &row[key->at]);
		break;
	default:
		print_number(text, key, value);
	}
}

static void print_row(os_text_t *text, const struct trace_hist *hist, const u64 *row)
{
	bool has_lines = false;

	os_text_printf(text, "{ ");
	for (u32 i = 0; i < hist->nr_keys; i++) {
		os_text_printf(text, "%s", i ? ", " : "");
		print_key(text, hist, &hist->keys[i], row);
		has_lines |= hist->keys[i].form == HIST_STACK;
	}
	os_text_printf(text, "%s} hitcount: %10lu", has_lines ? "" : " ", row[hist->key_words]);
	for (u32 i = 0; i < hist->nr_values; i++) {
		os_text_printf(text, "  ");
		print_number(text, &hist->values[i], row[hist->values[i].at]);
	}
	os_text_printf(text, "\n");
}

int hist_print(os_text_t *text, const struct trace_hist *hist)
{
	struct merged *merged = alloc_merged(hist);
	u64 hits = 0;
	u32 cpu;

	if (!merged)
		return -OS_ENOMEM;
	os_for_each_cpu(cpu)
		merge_table(merged, hist, hist->tables->of_cpu[cpu]);
	sorted = hist;
	rows_sort(&merged->rows, compare_rows);
	os_text_printf(text, "# event histogram\n#\n# trigger info: ");
	hist_print_command(text, hist);
	os_text_printf(text, "#\n\n");
	for (u32 i = 0; i < merged->nr; i++) {
		const u64 *row = rows_at(&merged->rows, i);

		print_row(text, hist, row);
		hits += row[hist->key_words];
	}
	os_text_printf(text, "\nTotals:\n    Hits: %lu\n    Entries: %u\n    Dropped: %lu\n", hits,
		       merged->nr, merged->nr_lost);
	os_free(merged);
	return 0;
}
