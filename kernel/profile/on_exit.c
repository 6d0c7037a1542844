// SPDX-License-Identifier: BSD-2-Clause
/*
 * Decides which processes get a report, or an export, when they exit. profile.on_exit=,
 * profile.export_on_exit= and their files hold a list of globs for the names of processes, or "all"
 * or "none". With profile.on_exit=run, only a process that has been alone since boot gets a report;
 * otherwise report_lock.c prints one report of all processes at the end.
 */

#include "report.h"

#include "words.h"

struct on_exit on_exit_reports = ON_EXIT("profile.on_exit", "all", ON_EXIT_ALL);
struct on_exit on_exit_exports = ON_EXIT("profile.export_on_exit", "none", ON_EXIT_NONE);

static enum on_exit_kind kind_of(const struct on_exit *list, const char *value)
{
	if (!strcmp(value, "all"))
		return ON_EXIT_ALL;
	if (!strcmp(value, "none"))
		return ON_EXIT_NONE;
	if (list == &on_exit_reports && !strcmp(value, ON_EXIT_RUN))
		return ON_EXIT_OF_RUN;
	return ON_EXIT_GLOBS;
}

int on_exit_set(struct on_exit *list, const char *value)
{
	size_t len = strlen(value);
	unsigned long flags;

	if (!len || len >= sizeof(list->globs))
		return -OS_EINVAL;
	for (size_t i = 0; i < len; i++) {
		/* A comma is only valid between two globs. */
		if (value[i] == ',' && (i == 0 || i == len - 1 || value[i + 1] == ','))
			return -OS_EINVAL;
	}
	flags = os_lock(&list->lock);
	memcpy(list->globs, value, len + 1);
	memset(list->matched, 0, sizeof(list->matched));
	pf_write_once(list->kind, kind_of(list, value));
	os_unlock(&list->lock, flags);
	return 0;
}

static int set_reports(const char *value)
{
	return on_exit_set(&on_exit_reports, value);
}
/*
 * Which programs print a report when they exit: all by default. run: one report of all, at power
 * off.
 */
OS_BOOT_PARAM(profile_on_exit, "profile.on_exit", REPORT_ON_EXIT_WORDS, set_reports);

void on_exit_show(os_text_t *text)
{
	unsigned long flags = os_lock(&on_exit_reports.lock);

	os_text_printf(text, "%s\n", on_exit_reports.globs);
	os_unlock(&on_exit_reports.lock, flags);
}

int on_exit_write(const char *text)
{
	return on_exit_write_to(&on_exit_reports, text);
}

PROFILE_CONTROL(profile_on_exit, "profile.on_exit", REPORT_ON_EXIT_WORDS, "", on_exit_write);

int on_exit_write_to(struct on_exit *list, const char *text)
{
	char line[sizeof(list->globs)];

	return words_copy_line(text, line, sizeof(line)) ?: on_exit_set(list, line);
}

/* Copies the glob at `from`. Returns a pointer to the next one, or NULL. */
static const char *next_glob(const char *from, char glob[ON_EXIT_BYTES])
{
	const char *end = from;

	while (*end && *end != ',')
		end++;
	memcpy(glob, from, end - from);
	glob[end - from] = '\0';
	return *end ? end + 1 : NULL;
}

/* Returns true if a glob matches. Tries all of them, to note each one that matches. */
static bool match_globs(struct on_exit *list, const char *name)
{
	const char *from = list->globs;
	char glob[ON_EXIT_BYTES];
	bool any = false;

	os_assert_held(&list->lock);
	for (u32 i = 0; from; i++) {
		from = next_glob(from, glob);
		if (!os_glob_match_list(glob, name))
			continue;
		list->matched[i] = true;
		any = true;
	}
	return any;
}

bool on_exit_wants_some(struct on_exit *list, os_process_t *proc)
{
	unsigned long flags = os_lock(&list->lock);
	u32 nr_running;
	bool wants;

	if (list->kind == ON_EXIT_GLOBS)
		wants = match_globs(list, os_process_name(proc));
	else if (list->kind == ON_EXIT_OF_RUN)
		wants = run_nr_processes(&nr_running) == 1;
	else
		wants = list->kind == ON_EXIT_ALL;
	os_unlock(&list->lock, flags);
	return wants;
}

bool on_exit_wants_any(os_process_t *proc)
{
	return on_exit_wants(&on_exit_reports, proc) || on_exit_wants(&on_exit_exports, proc);
}

bool on_exit_is_run(void)
{
	return pf_read_once(on_exit_reports.kind) == ON_EXIT_OF_RUN;
}

void on_exit_print_unmatched(const struct on_exit *list)
{
	const char *from = list->kind == ON_EXIT_GLOBS ? list->globs : NULL;
	char glob[ON_EXIT_BYTES], printable[ON_EXIT_BYTES];

	for (u32 i = 0; from; i++) {
		from = next_glob(from, glob);
		report_copy_printable(printable, glob, sizeof(printable));
		if (!list->matched[i])
			os_printk("%s: no process ended that matches %s\n", list->param, printable);
	}
}
