// SPDX-License-Identifier: BSD-2-Clause
/*
 * Offers findings about samples: the kernel function and the user function that take most of the
 * CPU time. Nothing is offered if the samples are few, or if those that were lost could have made
 * the difference.
 */

#include "samples.h"

#include "../findings.h"
#include "../user_symbols.h"

#define MIN_SAMPLES 50

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

/* The rows are sorted: most samples first. */
static void offer_function(const struct finding_scope *scope, const struct view *view, u64 nr_all)
{
	char name[OS_SYMBOL_BYTES];

	for (u32 i = 0; i < view->nr_rows; i++) {
		const struct view_row *row = &view->rows[i];

		if (!strcmp(row->name, "[user]"))
			continue;
		finding_of_cpu_time(scope, time_of(scope, row->nr, nr_all),
				    "in the kernel's function %s [Kernel Heatmap: row %u]",
				    view_row_name(row, row->keys[0], name), i + 1);
		return;
	}
}

/* The rows are sorted: most samples first. One of them may be of code that is not known. */
static void offer_user_function(const struct finding_scope *scope, const struct view *view,
				u64 nr_all)
{
	const struct view_row *row = view->rows;
	const char *file;
	u32 nr;

	while (row < view->rows + view->nr_rows && !row->name[0] && !row->keys[0] && !row->keys[1])
		row++;
	if (row == view->rows + view->nr_rows)
		return;
	nr = row - view->rows + 1;
	file = report_basename(user_symbol_path(row->keys[1]));
	if (row->name[0])
		finding_of_cpu_time(scope, time_of(scope, row->nr, nr_all),
				    "in user function %s of %s [" USER_FUNCTIONS ": row %u]",
				    row->name, file, nr);
	else
		finding_of_cpu_time(scope, time_of(scope, row->nr, nr_all),
				    "in user code at %s%s%#lx [" USER_FUNCTIONS ": row %u]", file,
				    file[0] ? "+" : "", row->keys[file[0] ? 2 : 0], nr);
}

void samples_find(const struct finding_scope *scope, struct heat_snapshot *snap,
		  const struct sample_scope *samples)
{
	u64 nr_all = 0;

	heatmap_snapshot(snap, &report_view, samples);
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		nr_all += snap->nr_scope_class[i];
	if (!are_good(snap, nr_all))
		return;
	offer_function(scope, &report_view, nr_all);
	if (!snap->nr_scope_class[HEAT_USER])
		return;
	offer_user_function(scope, view_user_functions(samples), nr_all);
}
