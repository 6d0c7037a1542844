// SPDX-License-Identifier: BSD-2-Clause
/* Prints histograms in Linux's format (Documentation/trace/histogram.rst of 6.1). */

#include "hist.h"
#include "text.h"

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

static void print_symbol(os_text_t *text, const struct hist_field *key, u64 addr)
{
	char symbol[HIST_SYMBOL_BYTES];

	hist_copy_symbol(symbol, key->form, addr);
	os_text_printf(text, "%s: [%lx] %-*s", key->name, addr,
		       key->form == HIST_SYM_OFFSET ? 55 : 45, symbol);
}

static void print_stack(os_text_t *text, const struct hist_field *key, const u64 *pcs)
{
	u32 first, nr = hist_find_frames(pcs, &first);

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
	struct hist_rows *sum = hist_merge(hist, false);

	if (!sum)
		return -OS_ENOMEM;
	os_text_printf(text, "# event histogram\n#\n# trigger info: ");
	hist_print_command(text, hist);
	os_text_printf(text, "#\n\n");
	for (u32 i = 0; i < sum->nr; i++)
		print_row(text, hist, rows_at(&sum->rows, i));
	os_text_printf(text, "\nTotals:\n    Hits: %lu\n    Entries: %u\n    Dropped: %lu\n",
		       sum->nr_hits, sum->nr, sum->nr_lost);
	os_free(sum);
	return 0;
}
