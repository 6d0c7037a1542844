// SPDX-License-Identifier: BSD-2-Clause
/*
 * Implements the files of /sys/kernel/tracing, with the names and contents of Linux's ftrace. Each
 * file has a function that prints it and one that parses a write; control.c does the work.
 */

#include "trace.h"

#include "../words.h"

#define LINE_BYTES 256
#define PATH_BYTES 96

static int show_format(os_text_t *text, const void *event)
{
	char *format = os_alloc(TRACE_FORMAT_BYTES);

	if (!format)
		return -OS_ENOMEM;
	trace_format_text(event, format);
	os_text_printf(text, "%s", format);
	os_free(format);
	return 0;
}

static int show_id(os_text_t *text, const void *event)
{
	os_text_printf(text, "%u\n", ((const struct trace_event *)event)->id);
	return 0;
}

static int show_filter(os_text_t *text, const void *arg)
{
	const struct trace_event *event = arg;

	os_text_printf(text, "%s\n", event->slow & TRACE_SLOW_FILTER ? event->filter.text : "none");
	return 0;
}

static int write_filter(const char *text, const void *event)
{
	char line[LINE_BYTES];

	if (words_copy_line(text, line, sizeof(line)))
		return -OS_EINVAL;
	return trace_set_filter((struct trace_event *)event, line);
}

static int parse_switch(const char *text, bool *on)
{
	*on = words_are(text, "1");
	return *on || words_are(text, "0") ? 0 : -OS_EINVAL;
}

static int parse_number(const char *text, u64 *number)
{
	char line[LINE_BYTES];

	return words_copy_line(text, line, sizeof(line)) || os_parse_u64(line, number) ?
		       -OS_EINVAL :
		       0;
}

static int show_enable(os_text_t *text, const void *event)
{
	os_text_printf(text, "%d\n", ((const struct trace_event *)event)->is_on);
	return 0;
}

static int write_enable(const char *text, const void *event)
{
	bool on;

	if (parse_switch(text, &on))
		return -OS_EINVAL;
	return trace_switch_event(event, on);
}

/* Prints 1 or 0 for the events of a system (NULL: of all), or X if only some are on. */
static int show_enable_all(os_text_t *text, const void *system)
{
	u32 nr_on = 0, nr_off = 0;
	struct trace_event *event;

	trace_for_each_event(event) {
		if (!event->key || (system && strcmp(system, event->system)))
			continue;
		nr_on += event->is_on;
		nr_off += !event->is_on;
	}
	os_text_printf(text, "%s\n", !nr_on ? "0" : nr_off ? "X" : "1");
	return 0;
}

static int write_enable_all(const char *text, const void *system)
{
	bool on;

	if (parse_switch(text, &on))
		return -OS_EINVAL;
	return trace_switch_events(system, NULL, on);
}

static void print_names(os_text_t *text, bool only_on)
{
	struct trace_event *event;

	trace_for_each_event(event) {
		if (event->key && (event->is_on || !only_on))
			os_text_printf(text, "%s:%s\n", event->system, event->name);
	}
}

static int show_available(os_text_t *text, const void *unused)
{
	print_names(text, false);
	return 0;
}

static int show_set(os_text_t *text, const void *unused)
{
	print_names(text, true);
	return 0;
}

static int write_set(const char *text, const void *unused)
{
	return trace_switch_words(text);
}

static int truncate_set(const void *unused)
{
	return trace_switch_events(NULL, NULL, false);
}

static int truncate_trace(const void *unused)
{
	ring_clear();
	return 0;
}

/* Does nothing: opening with truncation clears the rings, and Linux ignores the text, too. */
static int write_trace(const char *text, const void *unused)
{
	return 0;
}

static int show_recording(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%d\n", trace_is_recording());
	return 0;
}

static int write_recording(const char *text, const void *unused)
{
	u64 number;

	/* As on Linux, any number but 0 switches on. */
	return parse_number(text, &number) ? -OS_EINVAL : trace_set_recording(number);
}

static int show_overwrite(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%d\n", trace_overwrites);
	return 0;
}

static int write_overwrite(const char *text, const void *unused)
{
	bool on;

	if (parse_switch(text, &on))
		return -OS_EINVAL;
	ring_set_overwrite(on);
	return 0;
}

#ifdef CONFIG_PROFILE_CALLCHAIN
static int show_stacks(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%d\n", trace_has_stacks());
	return 0;
}

static int write_stacks(const char *text, const void *unused)
{
	bool on;

	if (parse_switch(text, &on))
		return -OS_EINVAL;
	trace_set_stacks(on);
	return 0;
}
#endif

static int show_size(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%lu\n", trace_ring_bytes() / 1024);
	return 0;
}

static int write_size(const char *text, const void *unused)
{
	u64 kib;

	if (parse_number(text, &kib) || kib > TRACE_MAX_RING_BYTES / 1024)
		return -OS_EINVAL;
	return trace_resize_rings(kib * 1024);
}

#ifdef CONFIG_PROFILE_FUNCTIONS
#define TRACERS "a word of available_tracers"
#else
#define TRACERS "nop (function and function_graph need a kernel by make CONFIG=functions)"
#endif

static int show_tracer(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%s\n", trace_current_tracer()->name);
	return 0;
}

static int write_tracer(const char *text, const void *unused)
{
	char line[LINE_BYTES];

	if (words_copy_line(text, line, sizeof(line)))
		return -OS_EINVAL;
	return trace_select_tracer(line);
}

static int show_tracers(os_text_t *text, const void *unused)
{
	for (const struct tracer *t = __start_tracers; t < __stop_tracers; t++)
		os_text_printf(text, "%s ", t->name);
	os_text_printf(text, "nop\n");
	return 0;
}

static int show_clock(os_text_t *text, const void *unused)
{
	os_text_printf(text, "[local]\n");
	return 0;
}

#define SWITCH "0|1"
#define EVENTS "[!][<system>:]<event>, with shell patterns"
#define FILTER "<field> ==|!=|<|<=|>|>=|&|~ <value>, or 0"

static const os_trace_file_t files[] = {
	{ "available_events", .show = show_available },
	{ "available_tracers", .show = show_tracers },
	{ "buffer_size_kb", "<KiB of each CPU, 8 to 4096; 0 frees all>", .show = show_size,
	  .write = write_size },
	{ "current_tracer", TRACERS, .show = show_tracer, .write = write_tracer },
	{ "events/enable", SWITCH, .show = show_enable_all, .write = write_enable_all },
	{ "options/overwrite", SWITCH, .show = show_overwrite, .write = write_overwrite },
#ifdef CONFIG_PROFILE_CALLCHAIN
	{ "options/stacktrace", SWITCH, .show = show_stacks, .write = write_stacks },
#endif
	{ "set_event", EVENTS, .show = show_set, .write = write_set, .truncate = truncate_set },
	{ "trace", "nothing, which clears it", .show = trace_show, .write = write_trace,
	  .truncate = truncate_trace },
	{ "trace_clock", .show = show_clock },
	{ "trace_pipe", .next = trace_show_next },
	{ "tracing_on", SWITCH, .show = show_recording, .write = write_recording },
};

static bool failed;

static void add(const os_trace_file_t *file)
{
	failed |= os_add_trace_file(file) != 0;
}

/* Adds the file directory/middle/name. The path is never freed, because the file stays. */
static void add_at(const char *directory, const char *middle, const char *name,
		   os_trace_file_t file)
{
	char *path = os_alloc(PATH_BYTES);

	if (!path) {
		failed = true;
		return;
	}
	os_snprintf(path, PATH_BYTES, "%s/%s/%s", directory, middle, name);
	file.path = path;
	add(&file);
}

static void add_event(const struct trace_event *event)
{
	char directory[PATH_BYTES];

	os_snprintf(directory, sizeof(directory), "events/%s", event->system);
	add_at(directory, event->name, "format",
	       (os_trace_file_t){ .show = show_format, .arg = event });
	add_at(directory, event->name, "id", (os_trace_file_t){ .show = show_id, .arg = event });
	if (!event->key)
		return;
	add_at(directory, event->name, "enable",
	       (os_trace_file_t){ NULL, SWITCH, .show = show_enable, .write = write_enable,
				  .arg = event });
	add_at(directory, event->name, "filter",
	       (os_trace_file_t){ NULL, FILTER, .show = show_filter, .write = write_filter,
				  .arg = event });
}

/* Returns whether an event is the first one of its system that users can switch. */
static bool is_first(const struct trace_event *event)
{
	struct trace_event *before;

	if (!event->key)
		return false;
	trace_for_each_event(before) {
		if (before->key && !strcmp(before->system, event->system))
			return before == event;
	}
	return false;
}

void trace_add_files(void)
{
	struct trace_event *event;
	char name[16];
	u32 cpu;

	for (u32 i = 0; i < PF_ARRAY_SIZE(files); i++)
		add(&files[i]);
	trace_for_each_event(event) {
		add_event(event);
		if (is_first(event))
			add_at("events", event->system, "enable",
			       (os_trace_file_t){ NULL, SWITCH, .show = show_enable_all,
						  .write = write_enable_all,
						  .arg = event->system });
	}
	os_for_each_cpu(cpu) {
		os_snprintf(name, sizeof(name), "cpu%u", cpu);
		add_at("per_cpu", name, "stats",
		       (os_trace_file_t){ .show = trace_show_stats, .arg = (void *)(u64)cpu });
	}
	if (failed)
		os_printk("profile: no memory for the files of trace\n");
}
