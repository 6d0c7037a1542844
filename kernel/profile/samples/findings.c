// SPDX-License-Identifier: BSD-2-Clause
/*
 * Offers findings about samples: the kernel function and the place of user code that take most of
 * the CPU time. Without symbols of user code, a place is the WINDOW_BYTES of a program's code that
 * have most samples: a loop, or a small function. Nothing is offered if the samples are few, or if
 * those that were lost could have made the difference.
 */

#include "samples.h"

#include "../findings.h"

#define WINDOW_BYTES 256
#define MIN_SAMPLES  50

static bool are_good(const struct heat_snapshot *snap, u64 nr)
{
	const struct source_sums *all = &snap->source.all;
	u64 nr_lost = all->lost + all->self, nr_dropped = snap->nr_unread;

	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		nr_dropped += snap->nr_dropped_by[i];
	return nr >= MIN_SAMPLES && nr_lost <= all->expected && nr_dropped <= snap->nr_attempts &&
	       report_percent(nr_lost, all->expected) <= source_many_lost(&snap->source) &&
	       report_percent(nr_dropped, snap->nr_attempts) <= source_many_lost(&snap->source);
}

/* Returns the CPU time that nr of nr_all samples stand for. */
static u64 time_of(const struct finding_scope *scope, u64 nr, u64 nr_all)
{
	return os_mul_div_u64(nr, scope->cpu_ns, nr_all);
}

/* The rows are sorted: most samples first. Returns the number of the row of user code. */
static u32 offer_function(const struct finding_scope *scope, const struct view *view, u64 nr_all)
{
	char name[OS_SYMBOL_BYTES];
	u32 user_row = 0;
	bool found = false;

	for (u32 i = 0; i < view->nr_rows; i++) {
		const struct view_row *row = &view->rows[i];

		if (!strcmp(row->name, "[user]")) {
			user_row = i + 1;
		} else if (!found) {
			found = true;
			finding_of_cpu_time(scope, time_of(scope, row->nr, nr_all),
					    "in the kernel's function %s [Kernel Heatmap: row %u]",
					    view_row_name(row, row->keys[0], name), i + 1);
		}
	}
	return user_row;
}

/* Sorts the rows by program and address. */
static int compare_places(const void *a_, const void *b_)
{
	const struct view_row *a = a_, *b = b_;

	return compare_u64(a->keys[1], b->keys[1])	   ?:
		       compare_u64(a->keys[2], b->keys[2]) ?:
							     compare_u64(a->keys[0], b->keys[0]);
}

static bool fits(const struct view_row *first, const struct view_row *last)
{
	return first->keys[1] == last->keys[1] && first->keys[2] == last->keys[2] &&
	       last->keys[0] - first->keys[0] < WINDOW_BYTES;
}

/* Copies where the code is: offsets in a file or, if the process is unknown, addresses. */
static void print_place(char *text, size_t size, os_process_t *proc, const struct view_row *first,
			u64 last)
{
	char path[128], comm[17] = "";
	const char *name = path;
	u64 from = first->keys[0], bytes = last - from, offset;

	memcpy(comm, &first->keys[1], 16);
	if (proc && os_process_mapping(proc, from, path, sizeof(path), &offset)) {
		for (const char *c = path; *c; c++) {
			if (*c == '/')
				name = c + 1;
		}
		os_snprintf(text, size, "%s+%#lx to +%#lx", name, offset, offset + bytes);
	} else {
		os_snprintf(text, size, "%s%s%#lx to %#lx", comm, comm[0] ? " " : "", from, last);
	}
}

static void offer_place(const struct finding_scope *scope, struct view *view, u64 nr_all,
			u32 user_row)
{
	u64 nr = 0, most = 0;
	u32 from = 0, to = 0;
	char place[160];

	os_sort(view->rows, view->nr_rows, sizeof(view->rows[0]), compare_places);
	for (u32 first = 0, last = 0; last < view->nr_rows; last++) {
		nr += view->rows[last].nr;
		while (!fits(&view->rows[first], &view->rows[last]))
			nr -= view->rows[first++].nr;
		if (nr > most) {
			most = nr;
			from = first;
			to = last;
		}
	}
	if (!most)
		return;
	print_place(place, sizeof(place), scope->report->proc, &view->rows[from],
		    view->rows[to].keys[0]);
	finding_of_cpu_time(scope, time_of(scope, most, nr_all),
			    "in user code at %s [Kernel Heatmap: row %u]", place, user_row);
}

void samples_find(const struct finding_scope *scope, struct heat_snapshot *snap,
		  const struct sample_scope *samples)
{
	u64 nr_all = 0;
	u32 user_row;

	heatmap_snapshot(snap, &report_view, samples);
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		nr_all += snap->nr_scope_class[i];
	if (!are_good(snap, nr_all))
		return;
	user_row = offer_function(scope, &report_view, nr_all);
	view_places(&report_view, samples);
	offer_place(scope, &report_view, nr_all, user_row);
}
