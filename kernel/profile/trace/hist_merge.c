// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds up the histogram tables of all CPUs in memory of the reader, while the CPUs go on counting,
 * and names the keys of the rows.
 */

#include "hist.h"

#define MAX_ROWS 32768 /* of all CPUs together, as struct rows allows */

static void add_row(struct hist_rows *all, const struct trace_hist *hist, const u64 *row)
{
	u32 end = hist->comm_at ?: hist->row_words;
	u64 hits = pf_read_once(row[hist->key_words]), *sum;

	pf_rmb(); /* pairs with add_to_row() */
	if (!hits)
		return; /* the CPU is adding it now */
	sum = rows_find(&all->rows, row);
	if (!sum) {
		all->nr_lost += hits;
		return;
	}
	if (hist->comm_at && !sum[hist->key_words])
		memcpy(&sum[hist->comm_at], &row[hist->comm_at], HIST_COMM_WORDS * sizeof(u64));
	sum[hist->key_words] += hits;
	all->nr_hits += hits;
	for (u32 i = hist->key_words + 1; i < end; i++)
		sum[i] += pf_read_once(row[i]);
}

static void add_table(struct hist_rows *all, const struct trace_hist *hist,
		      const struct hist_table *table)
{
	u32 nr = pf_load_acquire(&table->nr_rows);

	all->nr_lost += pf_read_once(table->nr_lost);
	for (u32 i = 0; i < nr; i++)
		add_row(all, hist, rows_at(&table->rows, i));
}

/* Allocates room for the rows of all CPUs, even if each of them has other keys. */
static struct hist_rows *alloc_rows(const struct trace_hist *hist)
{
	u64 row_bytes = hist->row_words * sizeof(u64), bytes;
	struct hist_rows *all;
	u32 cpu, nr = 0, max = 1;

	os_for_each_cpu(cpu)
		nr += hist->tables->of_cpu[cpu]->nr_rows;
	/* The CPUs may add rows meanwhile. */
	while (max < 2 * nr + HIST_MIN_ROWS && max < MAX_ROWS)
		max *= 2;
	bytes = max * row_bytes;
	all = os_zalloc(sizeof(*all) + bytes + ROWS_SLOTS(max) * sizeof(u16));
	if (!all)
		return NULL;
	all->rows = (struct rows){
		.rows = all + 1,
		.slots = (u16 *)((char *)(all + 1) + bytes),
		.nr = &all->nr,
		.row_bytes = row_bytes,
		.key_words = hist->key_words,
		.max = max,
	};
	return all;
}

/* The order that hist_merge() wants, for compare_rows(). */
static const struct trace_hist *sorted;
static bool sorted_by_hits;

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

/* Rows that are equal in what they are sorted by are in the order of their keys. */
static int compare_rows(const void *a, const void *b)
{
	int order = sorted_by_hits ? compare_by(NULL, b, a) : 0;

	for (u32 i = 0; i < sorted->nr_sorts && !order; i++) {
		order = compare_by(sorted->sorts[i].by, a, b);
		order = sorted->sorts[i].descending ? -order : order;
	}
	for (u32 i = 0; i < sorted->nr_keys && !order; i++)
		order = compare_by(&sorted->keys[i], a, b);
	return order;
}

struct hist_rows *hist_merge(const struct trace_hist *hist, bool by_hits)
{
	struct hist_rows *all = alloc_rows(hist);
	u32 cpu;

	if (!all)
		return NULL;
	os_for_each_cpu(cpu)
		add_table(all, hist, hist->tables->of_cpu[cpu]);
	sorted = hist;
	sorted_by_hits = by_hits;
	rows_sort(&all->rows, compare_rows);
	return all;
}

void hist_copy_symbol(char to[HIST_SYMBOL_BYTES], enum hist_form form, u64 addr)
{
	char name[OS_SYMBOL_BYTES];
	u64 start;

	if (!os_symbol_lookup(addr, &start, name, sizeof(name)))
		os_snprintf(to, HIST_SYMBOL_BYTES, "0x%lx", addr);
	else if (form == HIST_SYM_OFFSET)
		os_snprintf(to, HIST_SYMBOL_BYTES, "%s+0x%lx", name, addr - start);
	else
		os_snprintf(to, HIST_SYMBOL_BYTES, "%s", name);
}

u32 hist_find_frames(const u64 *pcs, u32 *first)
{
	static const char writer[] = "profile_trace_"; /* and the name of the event */
	char name[OS_SYMBOL_BYTES];
	u64 start;
	u32 nr;

	*first = 0;
	/* The chain may end in user code, which has no symbol of the kernel. */
	for (nr = 0; nr < HIST_STACK_WORDS && pcs[nr]; nr++) {
		if (!os_symbol_lookup(pcs[nr] - 1, &start, name, sizeof(name)))
			break;
		if (!strncmp(name, writer, sizeof(writer) - 1))
			*first = nr + 1;
	}
	return nr;
}

/* Copies a call chain as reports print it, the callee first. */
static void copy_stack(char *to, size_t size, const u64 *pcs)
{
	u32 first, nr = hist_find_frames(pcs, &first);
	char symbol[HIST_SYMBOL_BYTES];
	size_t len = 0;

	to[0] = '\0';
	for (u32 i = first; i < nr && len < size; i++) {
		hist_copy_symbol(symbol, HIST_SYM, pcs[i] - 1);
		len += os_snprintf(to + len, size - len, "%s%s", i > first ? " < " : "", symbol);
	}
}

static void copy_thread(char *to, size_t size, u64 tid, const u64 *comm)
{
	char name[HIST_COMM_WORDS * sizeof(u64) + 1];

	memcpy(name, comm, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	report_make_printable(name);
	os_snprintf(to, size, "%s [%lu]", name, tid);
}

static void copy_call(char *to, size_t size, u64 nr)
{
	const char *name = os_syscall_name(nr);

	if (name)
		os_strscpy(to, name, size);
	else
		os_snprintf(to, size, "unknown [%lu]", nr);
}

void hist_copy_key(char *to, size_t size, const struct trace_hist *hist,
		   const struct hist_field *key, const u64 *row)
{
	char symbol[HIST_SYMBOL_BYTES];
	u64 value = row[key->at];

	switch (key->form) {
	case HIST_HEX:
		os_snprintf(to, size, "0x%lx", value);
		break;
	case HIST_SYM:
	case HIST_SYM_OFFSET:
		hist_copy_symbol(symbol, key->form, value);
		os_strscpy(to, symbol, size);
		break;
	case HIST_LOG2:
		os_snprintf(to, size, "<= 2^%lu", value);
		break;
	case HIST_EXECNAME:
		copy_thread(to, size, value, &row[hist->comm_at]);
		break;
	case HIST_SYSCALL:
		copy_call(to, size, value);
		break;
	case HIST_TEXT:
		report_copy_printable(to, (const char *)&row[key->at], size);
		break;
	case HIST_STACK:
		copy_stack(to, size, &row[key->at]);
		break;
	default:
		os_snprintf(to, size, key->is_signed ? "%ld" : "%lu", value);
	}
}
