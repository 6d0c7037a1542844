// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reports without the console: /proc/profile/report is a whole report each time it is read, and
 * "reset" written to it starts all counters again; /proc/profile/on_exit is profile.on_exit=.
 * heatmap has the heatmap's views and switches sampling; function the instructions of the function
 * whose name was written to it; stacks all call chains, folded, one a line.
 */

#include "internal.h"

#define MAX_WORD 256

static int show_report(os_text_t *text)
{
	profile_report_text(text);
	return 0;
}

/* What a shell writes ends in a newline. */
static int copy_line(char *line, const char *text)
{
	size_t len = strlen(text);

	if (len && text[len - 1] == '\n')
		len--;
	if (len >= MAX_WORD)
		return -EINVAL;
	memcpy(line, text, len);
	line[len] = '\0';
	return 0;
}

static int write_report(const char *text)
{
	char line[MAX_WORD];

	if (copy_line(line, text) || strcmp(line, "reset"))
		return -EINVAL;
	profile_reset();
	return 0;
}

static int show_on_exit(os_text_t *text)
{
	profile_print_on_exit(text);
	return 0;
}

static int write_on_exit(const char *text)
{
	char line[MAX_WORD];

	return copy_line(line, text) ?: profile_set_on_exit(line);
}

#ifdef CONFIG_PROFILE_HEATMAP
static char function[MAX_WORD] = "cpu_idle";

static void print_views(void)
{
	samples_hold();
	report_print_views("*", REPORT_TOP_ALL);
	samples_release();
}

static int show_heatmap(os_text_t *text)
{
	profile_print_text(text, print_views);
	return 0;
}

static void print_function(void)
{
	samples_hold();
	report_print_function(function);
	samples_release();
}

static int show_function(os_text_t *text)
{
	profile_print_text(text, print_function);
	return 0;
}

/* Taken by a reader when it starts; two writers at once are each a name, whole or not. */
static int write_function(const char *text)
{
	char line[MAX_WORD];

	if (copy_line(line, text) || !line[0])
		return -EINVAL;
	memcpy(function, line, sizeof(line));
	return 0;
}

static void print_stacks(void)
{
	samples_hold();
	report_print_stacks();
	samples_release();
}

static int show_stacks(os_text_t *text)
{
	profile_print_text(text, print_stacks);
	return 0;
}

static bool add_heatmap_files(void)
{
	return os_add_file("profile/heatmap", show_heatmap, source_control) ||
	       os_add_file("profile/function", show_function, write_function) ||
	       os_add_file("profile/stacks", show_stacks, NULL);
}
#else
static bool add_heatmap_files(void)
{
	return false;
}
#endif

void files_init(void)
{
	if (add_heatmap_files() || os_add_file("profile/report", show_report, write_report) ||
	    os_add_file("profile/on_exit", show_on_exit, write_on_exit))
		printk("profile: no memory for the files in /proc/profile\n");
}
