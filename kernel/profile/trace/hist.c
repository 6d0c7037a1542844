// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts events in histograms, and changes the list of an event's histograms: the file `trigger`.
 *
 * Each CPU has a table of rows for each histogram. An event costs the search for its row, and an
 * addition for each value. A table that is full counts its events as lost.
 *
 * Events are added with interrupts off. So, when a function has run on all CPUs by an interrupt, no
 * CPU uses any more what was unlinked before (wait_for_writers()).
 */

#include "hist.h"

#include "../table.h"

#define MAX_SHARE 8 /* a histogram takes at most an eighth of the machine's memory */

static u64 number_of(const struct hist_field *key, const char *content)
{
	u64 value;

	memcpy(&value, content + key->offset, sizeof(value));
	value <<= key->left;
	return key->is_signed ? (u64)((s64)value >> key->right) : value >> key->right;
}

static u64 log2_up(u64 value)
{
	return value <= 1 ? 0 : pf_floor_log2(value - 1) + 1;
}

/* Stores the call chain of the running code, the innermost first, and 0 behind it. */
static pf_noinline void put_stack(u64 pcs[HIST_STACK_WORDS])
{
#ifdef CONFIG_PROFILE_CALLCHAIN
	os_regs_t regs;

	memset(pcs, 0, HIST_STACK_WORDS * sizeof(u64));
	os_regs_here(&regs);
	(void)os_stack_walk(&regs, pcs, HIST_STACK_WORDS);
#endif
}

static void put_key(const struct hist_field *key, const void *content, u64 *to)
{
	switch (key->form) {
	case HIST_CPU:
		*to = os_cpu();
		break;
	case HIST_STACK:
		put_stack(to);
		break;
	case HIST_TEXT:
		memset(to, 0, HIST_TEXT_WORDS * sizeof(u64));
		trace_text_of(key->field, content, (char *)to, HIST_TEXT_WORDS * sizeof(u64));
		break;
	case HIST_LOG2:
		*to = log2_up(number_of(key, content));
		break;
	default:
		*to = number_of(key, content);
	}
}

static void add_to_row(const struct trace_hist *hist, const void *content, u64 *row)
{
	u64 *hits = &row[hist->key_words];

	if (hist->comm_at && !*hits)
		os_task_comm(os_current_task(), &row[hist->comm_at]);
	for (u32 i = 0; i < hist->nr_values; i++)
		os_add(row[hist->values[i].at], number_of(&hist->values[i], content));
	/* Pairs with add_row(), which skips a row without events: the first one is whole. */
	pf_wmb();
	os_add(*hits, 1);
}

static void count_event(const struct trace_hist *hist, const void *content)
{
	const struct hist_tables *tables = pf_load_acquire(&hist->tables);
	struct hist_table *table = tables->of_cpu[os_cpu()];
	u64 key[HIST_KEY_WORDS], *row = NULL;

	if (pf_read_once(table->is_busy)) {
		os_add(table->nr_lost, 1);
		return;
	}
	pf_write_once(table->is_busy, true);
	pf_barrier();
	for (u32 i = 0; i < hist->nr_keys; i++)
		put_key(&hist->keys[i], content, &key[hist->keys[i].at]);
	row = rows_find(&table->rows, key);
	if (row)
		add_to_row(hist, content, row);
	else
		os_add(table->nr_lost, 1);
	pf_barrier();
	pf_write_once(table->is_busy, false);
}

void trace_hist_add(const struct trace_event *event, struct profile_trace_event *content)
{
	unsigned long flags = os_irq_save();
	const struct trace_hist *hist;

	trace_fill_common(content, event->id);
	for (hist = pf_load_acquire(&event->hists); hist; hist = pf_load_acquire(&hist->next)) {
		if (!pf_read_once(hist->is_paused) &&
		    (!hist->has_filter || trace_filter_matches(&hist->filter, content)))
			count_event(hist, content);
	}
	os_irq_restore(flags);
}

static void do_nothing(void *unused)
{
}

/* Waits until no CPU adds an event to what was unlinked before. */
static void wait_for_writers(void)
{
	os_run_on_all_cpus(do_nothing);
}

static void free_tables(struct hist_tables *tables)
{
	for (u32 i = 0; tables && i < tables->nr; i++)
		os_free(tables->of_cpu[i]);
	os_free(tables);
}

static void free_hist(struct trace_hist *hist)
{
	if (hist)
		free_tables(hist->tables);
	os_free(hist);
}

static struct hist_table *alloc_table(const struct trace_hist *hist)
{
	u64 row_bytes = hist->row_words * sizeof(u64), bytes = hist->max_rows * row_bytes;
	struct hist_table *table =
		os_zalloc(sizeof(*table) + bytes + ROWS_SLOTS(hist->max_rows) * sizeof(u16));

	if (!table)
		return NULL;
	table->rows = (struct rows){
		.rows = table + 1,
		.slots = (u16 *)((char *)(table + 1) + bytes),
		.nr = &table->nr_rows,
		.row_bytes = row_bytes,
		.key_words = hist->key_words,
		.max = hist->max_rows,
	};
	return table;
}

static struct hist_tables *alloc_tables(const struct trace_hist *hist)
{
	u64 row_bytes = hist->row_words * sizeof(u64);
	struct hist_tables *tables;
	u32 cpu, nr = 0;

	os_for_each_cpu(cpu)
		nr = cpu + 1;
	if (nr * hist->max_rows * row_bytes > os_memory_bytes() / MAX_SHARE)
		return NULL;
	tables = os_zalloc(sizeof(*tables) + nr * sizeof(tables->of_cpu[0]));
	if (!tables)
		return NULL;
	tables->nr = nr;
	os_for_each_cpu(cpu) {
		tables->of_cpu[cpu] = alloc_table(hist);
		if (!tables->of_cpu[cpu]) {
			free_tables(tables);
			return NULL;
		}
	}
	return tables;
}

static bool same_fields(const struct hist_field *a, const struct hist_field *b, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		if (strcmp(a[i].name, b[i].name) || a[i].form != b[i].form)
			return false;
	}
	return true;
}

static const char *sort_name(const struct hist_sort *sort)
{
	return sort->by ? sort->by->name : "hitcount";
}

static bool same_sorts(const struct trace_hist *a, const struct trace_hist *b)
{
	for (u32 i = 0; i < a->nr_sorts; i++) {
		if (strcmp(sort_name(&a->sorts[i]), sort_name(&b->sorts[i])) ||
		    a->sorts[i].descending != b->sorts[i].descending)
			return false;
	}
	return true;
}

/*
 * Returns where in the event's list the histogram is that a command is about. A command without a
 * filter that removes is about one with any filter.
 */
static struct trace_hist **find_hist(struct trace_event *event, const struct hist_command *command)
{
	const struct trace_hist *like = command->hist;
	struct trace_hist **at;

	for (at = &event->hists; *at; at = &(*at)->next) {
		const struct trace_hist *hist = *at;

		if (hist->nr_keys == like->nr_keys && hist->nr_values == like->nr_values &&
		    hist->nr_sorts == like->nr_sorts &&
		    same_fields(hist->keys, like->keys, like->nr_keys) &&
		    same_fields(hist->values, like->values, like->nr_values) &&
		    same_sorts(hist, like) &&
		    ((command->removes && !like->has_filter) ||
		     !strcmp(hist->filter.text, like->filter.text)))
			break;
	}
	return at;
}

/* Adds the histogram of a command, which is in use then. */
static int add_hist(struct trace_event *event, struct hist_command *command)
{
	struct trace_hist *hist = command->hist;

	hist->tables = alloc_tables(hist);
	if (!hist->tables)
		return -OS_ENOMEM;
	hist->is_paused = command->pauses;
	hist->next = event->hists;
	/* Pairs with trace_hist_add(), which finds it complete. */
	pf_store_release(&event->hists, hist);
	command->hist = NULL;
	return 0;
}

/* Does what a command says of a histogram that there is, and stores what is to be freed. */
static int change_hist(struct trace_hist **at, const struct hist_command *command,
		       struct trace_hist **old, struct hist_tables **old_tables)
{
	struct hist_tables *tables;
	struct trace_hist *hist = *at;

	if (command->removes) {
		*old = hist;
		pf_store_release(at, hist->next);
		return 0;
	}
	if (command->clears) {
		tables = alloc_tables(hist);
		if (!tables)
			return -OS_ENOMEM;
		*old_tables = hist->tables;
		pf_store_release(&hist->tables, tables);
	}
	if (command->pauses || command->continues)
		pf_write_once(hist->is_paused, command->pauses);
	return 0;
}

static struct trace_filter_error refuse(const char *what)
{
	return (struct trace_filter_error){ what, 0 };
}

static int obey(struct trace_event *event, struct hist_command *command,
		struct trace_filter_error *error)
{
	bool changes = command->pauses || command->continues || command->clears;
	struct hist_tables *old_tables = NULL;
	struct trace_hist *old = NULL, **at;
	int result = -OS_EINVAL;

	poll_lock(&trace_lock);
	at = find_hist(event, command);
	if (*at && !command->removes && !changes)
		*error = refuse("there is such a trigger already");
	else if (*at)
		result = change_hist(at, command, &old, &old_tables);
	else if (command->removes)
		result = 0; /* as on Linux: `echo '!hist:...' >trigger` has removed it by its `>` */
	else if (command->continues || command->clears)
		*error = refuse("there is no such trigger");
	else
		result = add_hist(event, command);
	poll_unlock(&trace_lock);
	trace_set_slow(event, TRACE_SLOW_HIST, event->hists);
	if (old || old_tables)
		wait_for_writers();
	free_hist(old);
	free_tables(old_tables);
	return result;
}

int trace_write_trigger(const char *text, const void *arg)
{
	struct trace_event *event = (struct trace_event *)arg;
	struct trace_filter_error error = refuse("the command is too long");
	struct hist_command command = { .hist = os_zalloc(sizeof(*command.hist)) };
	char line[TRACE_FILTER_BYTES], where[TRACE_FILTER_BYTES];
	bool fits = trace_copy_trimmed(text, line);
	int result = -OS_EINVAL;

	if (!command.hist)
		return -OS_ENOMEM;
	if (fits) {
		error = hist_parse(event, line, &command);
		if (!error.what)
			result = obey(event, &command, &error);
	}
	if (error.what) {
		os_snprintf(where, sizeof(where), "hist:%s:%s", event->system, event->name);
		trace_log_error(where, fits ? line : text, &error);
	}
	free_hist(command.hist);
	return result;
}

int trace_truncate_triggers(const void *arg)
{
	struct trace_event *event = (struct trace_event *)arg;
	struct trace_hist *hist, *next;

	poll_lock(&trace_lock);
	hist = event->hists;
	pf_store_release(&event->hists, NULL);
	poll_unlock(&trace_lock);
	if (!hist)
		return 0;
	trace_set_slow(event, TRACE_SLOW_HIST, false);
	wait_for_writers();
	for (; hist; hist = next) {
		next = hist->next;
		free_hist(hist);
	}
	return 0;
}

int trace_show_triggers(os_text_t *text, const void *event)
{
	const struct trace_hist *hist;

	poll_lock(&trace_lock);
	hist = ((const struct trace_event *)event)->hists;
	if (!hist)
		os_text_printf(text, "# Available triggers:\n# hist\n");
	for (; hist; hist = hist->next)
		hist_print_command(text, hist);
	poll_unlock(&trace_lock);
	return 0;
}

struct shown {
	os_text_t *text;
	const struct trace_event *event;
	int error;
};

static void print_hists(const void *arg)
{
	struct shown *shown = (struct shown *)arg;
	const struct trace_hist *hist;

	poll_lock(&trace_lock);
	for (hist = shown->event->hists; hist && !shown->error; hist = hist->next) {
		shown->error = hist_print(shown->text, hist);
		os_text_printf(shown->text, hist->next ? "\n\n" : "");
	}
	poll_unlock(&trace_lock);
}

int trace_show_hists(os_text_t *text, const void *event)
{
	struct shown shown = { .text = text, .event = event };

	/* One at a time, because rows_sort() is for one caller at a time. */
	report_to_text(text, &table_text, print_hists, &shown);
	return shown.error;
}
