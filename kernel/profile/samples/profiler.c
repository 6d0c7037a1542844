// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profiler of samples: its place in the report, and its files. A report has the heatmap, and
 * the views that profile.heatmap= names, all from one snapshot of the samples. Files in
 * /proc/profile: heatmap has the views, and takes the same words as source; function has the
 * instructions of the function whose name was written to it; stacks has all call chains, folded;
 * session is for the program `profile`; each file in .json has one table.
 */

#include "samples.h"

#include "../findings.h"
#include "../profiler.h"
#include "../table.h"
#include "../words.h"

#define MAX_NAME 256

static struct heat_snapshot heat; /* of the one reader */
static char views[64] = "none";

static os_lock_t function_lock = OS_LOCK_INIT;
static char function[MAX_NAME] = "cpu_idle"; /* guarded by function_lock */

/* Refuses a list with a word that matches no view. */
static int set_views(const char *value)
{
	const char *words = value;
	char word[sizeof(views)];
	int ret;

	while ((ret = words_next(&words, word, sizeof(word))) > 0) {
		if (!words_are(word, "none") && !words_are(word, "all") && !report_is_view(word))
			return -OS_EINVAL;
	}
	if (ret || !value[0] || strlen(value) >= sizeof(views))
		return -OS_EINVAL;
	memcpy(views, value, strlen(value) + 1);
	return 0;
}
/* More tables of samples in each report: none by default. */
OS_BOOT_PARAM(profile_heatmap, "profile.heatmap",
	      "none|all|<glob>[,<glob>...] of machine, functions, calls, tasks, cpus, user",
	      set_views);

static void start_samples(void)
{
	source_init();
	heatmap_init();
}

static void print_heatmap(const struct report *report, const struct sample_scope *scope)
{
	heatmap_snapshot(&heat, &report_view, scope);
	report_print_heatmap(&heat, report->top, report->wide);
}

static struct sample_scope scope_of(const struct report *report)
{
	struct sample_scope scope = sample_scope(report->proc);

	scope.is_run = report->is_run;
	return scope;
}

static void offer_findings(const struct finding_scope *scope)
{
	struct sample_scope samples = scope_of(scope->report);

	samples_pin();
	samples_find(scope, &heat, &samples);
	samples_unpin();
}

static void print_samples(const struct report *report)
{
	const char *names = strcmp(views, "none") ? views : report->wide ? "all" : "";
	struct sample_scope scope = scope_of(report), machine = sample_scope(NULL);

	samples_pin();
	print_heatmap(report, &scope);
	if (report->proc) {
		heat.nr_process_drops = sample_process_drops(report->proc);
		heat.without_machine_notes = !report->wide && !run_is_last_process();
	}
	report_print_heatmap_notes(&heat, report->wide);
	report_print_user_functions(report->top, &scope, heat.nr_scope_class[HEAT_USER]);
	if (!strcmp(names, "all"))
		names = "*";
	if (report->proc && os_glob_match_list(names, "machine"))
		print_heatmap(report, &machine);
	report_print_views(names, report->top, &scope);
	if (report->proc && os_glob_match_list(names, "user"))
		report_print_user(report->proc, report->top);
	samples_unpin();
}

static void print_views(const void *unused)
{
	report_printf("\n"); /* as between the tables of a report */
	samples_pin();
	report_print_views("*", REPORT_TOP_ALL, &(struct sample_scope){ 0 });
	report_print_last_merge();
	samples_unpin();
}

static void print_all_functions(const void *unused)
{
	static const struct report all = { .top = REPORT_TOP_ALL };

	samples_pin();
	print_heatmap(&all, &(struct sample_scope){ 0 });
	report_print_heatmap_notes(&heat, false);
	samples_unpin();
}

static void print_user_functions(const void *unused)
{
	samples_pin();
	heatmap_snapshot(&heat, &report_view, &(struct sample_scope){ 0 });
	report_print_user_functions(REPORT_TOP_ALL, &heat.scope, heat.nr_scope_class[HEAT_USER]);
	samples_unpin();
}

static void print_view(const void *name)
{
	samples_pin();
	report_print_views(name, REPORT_TOP_ALL, &(struct sample_scope){ 0 });
	samples_unpin();
}

/*
 * Copies the name, so that the whole table is of one function even if another one is written now.
 */
static void print_function(const void *unused)
{
	char name[MAX_NAME];
	bool locked;
	unsigned long flags = snapshot_lock(&function_lock, &locked);

	memcpy(name, function, sizeof(name));
	snapshot_unlock(&function_lock, locked, flags);
	samples_pin();
	report_print_function(name);
	samples_unpin();
}

static int write_function(const char *text)
{
	char line[MAX_NAME];
	unsigned long flags;
	u64 start, bytes;

	if (words_copy_line(text, line, sizeof(line)) || !os_symbol_range(line, &start, &bytes))
		return -OS_EINVAL;
	flags = os_lock(&function_lock);
	memcpy(function, line, strlen(line) + 1); /* what follows in line is uninitialized */
	os_unlock(&function_lock, flags);
	return 0;
}

static void print_records(const void *unused)
{
	samples_pin();
	report_print_records();
	samples_unpin();
}

static bool show_next_stacks(os_text_t *text, void *copy)
{
	struct stacks_step step = { .copy = copy };

	report_to_text(text, &table_text, report_print_next_stacks, &step);
	return step.nr;
}

static void show_stacks(os_text_t *text)
{
	struct stacks_copy *copy = NULL;

	report_to_text(text, &table_text, report_copy_stacks, &copy);
	if (copy)
		os_text_stream(text, show_next_stacks, stacks_copy_free, copy);
}

static const struct source_snapshot *take_source(void)
{
	samples_pin();
	source_snapshot(&heat.source);
	samples_unpin();
	return &heat.source;
}

static void warn_of_losses(void)
{
	report_warn_of_losses(take_source());
}

static void print_stretches(const void *unused)
{
	report_print_stretches(take_source());
}

static void print_source(const void *unused)
{
	report_print_sources(take_source());
}

static const struct profiler_file files[] = {
	{ "profile/source", SOURCE_WORDS, source_control, .show = source_show },
	{ "profile/heatmap", SOURCE_WORDS, source_control, .print = print_views },
	{ "profile/session", SESSION_WORDS, session_write, .print = session_print,
	  .close = session_close },
	{ "profile/function", "<name of a kernel function>", write_function,
	  .print = print_function },
	{ "profile/stacks", .show = show_stacks },
	{ "profile/source.json", .print = print_source, .is_json = true },
	{ "profile/samples.json", .print = print_records, .is_json = true },
	{ "profile/function.json", .print = print_function, .is_json = true },
	{ "profile/irqs_off.json", .print = print_stretches, .is_json = true },
	{ "profile/heatmap.json", .print = print_all_functions, .is_json = true },
	{ "profile/functions.json", .print = print_view, .arg = "functions", .is_json = true },
	{ "profile/user_functions.json", .print = print_user_functions, .is_json = true },
	{ "profile/calls.json", .print = print_view, .arg = "calls", .is_json = true },
	{ "profile/tasks.json", .print = print_view, .arg = "tasks", .is_json = true },
	{ "profile/cpus.json", .print = print_view, .arg = "cpus", .is_json = true },
	{ 0 },
};

PROFILER(samples) = {
	.name = "samples",
	.place = 20,
	.init = sample_init,
	.start = start_samples,
	.reset = source_reset,
	.warn = warn_of_losses,
	.print = print_samples,
	.find = offer_findings,
	.visit_chains = samples_visit_chains,
	.pin = samples_pin,
	.unpin = samples_unpin,
	.process_init = sample_process_init,
	.task_init = profile_task_changed,
	.files = PROFILER_FILES(files),
};
