// SPDX-License-Identifier: BSD-2-Clause
/*
 * Implements the files of /sys/kernel/tracing, with the names and contents of Linux's ftrace. Each
 * file has a function that prints it and one that parses a write; control.c does the work.
 */

#include "trace.h"

#include "../words.h"
#include "pids.h"
#include "tasks.h"

#define LINE_BYTES 512
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

/* Called with trace_lock held, so that the text stays. */
static const char *filter_of(const struct trace_event *event)
{
	return event->wanted_slow & TRACE_SLOW_FILTER ? event->filter->text : "none";
}

static int show_filter(os_text_t *text, const void *event)
{
	poll_lock(&trace_lock);
	os_text_printf(text, "%s\n", filter_of(event));
	poll_unlock(&trace_lock);
	return 0;
}

static int write_filter(const char *text, const void *arg)
{
	const struct trace_event *event = arg;
	char line[LINE_BYTES];

	if (words_copy_line(text, line, sizeof(line)))
		return -OS_EINVAL;
	return trace_set_filters(event->system, event->name, line);
}

/* Prints the filters of a system (NULL: of all events): the one of all, or one a line. */
static int show_filters(os_text_t *text, const void *system)
{
	const struct trace_event *event, *first = NULL;
	bool differ = false;

	poll_lock(&trace_lock);
	trace_for_each_event_of(event, system) {
		first = first ?: event;
		differ |= strcmp(filter_of(event), filter_of(first)) != 0;
	}
	if (!differ)
		os_text_printf(text, "%s\n", filter_of(first));
	trace_for_each_event_of(event, differ ? system : "")
		os_text_printf(text, "%s:%s %s\n", event->system, event->name, filter_of(event));
	poll_unlock(&trace_lock);
	return 0;
}

static int write_filters(const char *text, const void *system)
{
	char line[LINE_BYTES];

	if (words_copy_line(text, line, sizeof(line)))
		return -OS_EINVAL;
	return trace_set_filters(system, NULL, line);
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

	trace_for_each_event_of(event, system) {
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

/* Does nothing: opening with truncation clears the file, and Linux ignores the text, too. */
static int write_nothing(const char *text, const void *unused)
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

static int show_size(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%lu\n", trace_ring_bytes() / 1024);
	return 0;
}

static int show_total_size(os_text_t *text, const void *unused)
{
	u64 bytes = 0;
	u32 cpu;

	os_for_each_cpu(cpu)
		bytes += trace_ring_bytes();
	os_text_printf(text, "%lu\n", bytes / 1024);
	return 0;
}

static void print_cmdline(os_text_t *text, u32 tid, u32 pid, const char *name)
{
	os_text_printf(text, "%u %s\n", tid, name);
}

static int show_cmdlines(os_text_t *text, const void *unused)
{
	trace_visit_tasks(print_cmdline, text);
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

/* Prints a bit for each CPU, in hexadecimal groups of 32 bits. */
static int show_cpus(os_text_t *text, const void *unused)
{
	u32 cpu, nr = 0, bits = 0;

	os_for_each_cpu(cpu)
		nr = cpu + 1;
	for (cpu = nr; cpu--;) {
		bits = bits << 1 | ring_records_cpu(cpu);
		if (cpu % 32)
			continue;
		os_text_printf(text, nr - cpu <= 32 ? "%x%s" : "%08x%s", bits, cpu ? "," : "\n");
		bits = 0;
	}
	return 0;
}

/* Returns whether a hexadecimal number, whose digits end at `end`, has a bit. */
static bool has_bit(const char *text, const char *end, u32 bit)
{
	while (end-- > text) {
		if (*end == ',')
			continue;
		if (bit < 4)
			return words_digit(*end) >> bit & 1;
		bit -= 4;
	}
	return false;
}

static int write_cpus(const char *text, const void *unused)
{
	char line[LINE_BYTES];
	u32 cpu;

	if (words_copy_line(text, line, sizeof(line)) || !*line)
		return -OS_EINVAL;
	for (const char *c = line; *c; c++) {
		if (*c != ',' && words_digit(*c) == ~0u)
			return -OS_EINVAL;
	}
	poll_lock(&trace_lock);
	os_for_each_cpu(cpu)
		ring_record_cpu(cpu, has_bit(line, line + strlen(line), cpu));
	ring_record_cpus_changed();
	poll_unlock(&trace_lock);
	return 0;
}

static int show_clock(os_text_t *text, const void *unused)
{
	os_text_printf(text, "[local]\n");
	return 0;
}

#define SWITCH "0|1"
#define COUNT  "1, which counts from 0 on; or 0, which stops counting"
#define HIST   "[!]hist:keys=<field>,...[:vals=...][ if <filter>] (error_log says more)"
#define EVENTS "[!][<system>:]<event>, with shell patterns"
#define FILTER "<field> ==|!=|<|<=|>|>=|&|~ <value>, with &&, ||, !, (); or 0 (error_log says more)"

/* Prints nothing: the texts of `print` events are in their records. */
static int show_no_formats(os_text_t *text, const void *unused)
{
	return 0;
}

static int show_readme(os_text_t *text, const void *unused);

static const os_trace_file_t files[] = {
	{ "README", .show = show_readme },
	{ "available_events", .show = show_available },
	{ "available_tracers", .show = show_tracers },
	{ "buffer_size_kb", "<KiB of each CPU, 8 to 4096; 0 frees all>", .show = show_size,
	  .write = write_size },
	{ "buffer_total_size_kb", .show = show_total_size },
	{ "current_tracer", TRACERS, .show = show_tracer, .write = write_tracer },
	{ "error_log", "nothing, which clears it", .show = trace_show_errors,
	  .write = write_nothing, .truncate = trace_clear_errors },
	{ "events/count", COUNT, .show = trace_show_counts, .write = trace_write_counts },
	{ "events/enable", SWITCH, .show = show_enable_all, .write = write_enable_all },
	{ "events/filter", FILTER, .show = show_filters, .write = write_filters },
	{ "events/header_event", .show = trace_show_header_event },
	{ "events/header_page", .show = trace_show_header_page },
	{ "printk_formats", .show = show_no_formats },
	{ "saved_cmdlines", .show = show_cmdlines },
	{ "set_event", EVENTS, .show = show_set, .write = write_set, .truncate = truncate_set },
	{ "trace", "nothing, which clears it", .show = trace_show, .write = write_nothing,
	  .truncate = truncate_trace },
	{ "trace_clock", .show = show_clock },
	{ "trace_marker", "any text", .write = trace_write_marker },
	{ "trace_options", "[no]<name of a file in options>", .show = trace_show_options,
	  .write = trace_write_options },
	{ "trace_pipe", .next = trace_show_next, .ready = trace_has_next },
	{ "tracing_cpumask", "<hexadecimal number: bit n of CPU n>", .show = show_cpus,
	  .write = write_cpus },
	{ "tracing_on", SWITCH, .show = show_recording, .write = write_recording },
};

/* The files of an event that can be written to. */
static const struct {
	const char *name, *accepts;
} event_files[] = {
	{ "count", COUNT },
	{ "enable", SWITCH },
	{ "filter", FILTER },
	{ "trigger", HIST },
};

static int show_readme(os_text_t *text, const void *unused)
{
	os_text_printf(text, "Files that can be written to, and what they accept:\n\n");
	for (u32 i = 0; i < PF_ARRAY_SIZE(files); i++) {
		if (files[i].accepts)
			os_text_printf(text, "  %s\n\t%s\n", files[i].path, files[i].accepts);
	}
	for (u32 i = 0; i < PF_ARRAY_SIZE(event_files); i++)
		os_text_printf(text, "  events/<system>/<event>/%s\n\t%s\n", event_files[i].name,
			       event_files[i].accepts);
	os_text_printf(text, "  options/<name>\n\t" SWITCH ". Now (trace_options):\n\n");
	trace_show_options(text, NULL);
	return 0;
}

static bool failed;
static bool is_filling; /* the files of a directory are being added because it is used */

/* The functions of all files: each calls that of its own. What a user changes ends a session. */

static int show_file(os_text_t *text, const void *file)
{
	return ((const os_trace_file_t *)file)->show(text, ((const os_trace_file_t *)file)->arg);
}

static bool show_next(os_text_t *text, const void *file, bool waits)
{
	trace_end_session();
	return ((const os_trace_file_t *)file)
		->next(text, ((const os_trace_file_t *)file)->arg, waits);
}

static bool is_ready(const void *file)
{
	return ((const os_trace_file_t *)file)->ready(((const os_trace_file_t *)file)->arg);
}

static int write_file(const char *text, const void *file)
{
	trace_end_session();
	return ((const os_trace_file_t *)file)->write(text, ((const os_trace_file_t *)file)->arg);
}

static int truncate_file(const void *file)
{
	trace_end_session();
	return ((const os_trace_file_t *)file)->truncate(((const os_trace_file_t *)file)->arg);
}

/* Adds a file, which stays. */
static void add_file(const os_trace_file_t *file)
{
	const os_trace_file_t outer = {
		.path = file->path,
		.accepts = file->accepts,
		.show = file->show ? show_file : NULL,
		.write = file->write ? write_file : NULL,
		.truncate = file->truncate ? truncate_file : NULL,
		.next = file->next ? show_next : NULL,
		.ready = file->ready ? is_ready : NULL,
		.arg = file,
	};

	failed |= (is_filling ? os_fill_trace_file(&outer) : os_add_trace_file(&outer)) != 0;
}

/* Adds the file directory/middle/name. It is never freed, because it stays. */
static void add_at(const char *directory, const char *middle, const char *name,
		   os_trace_file_t file)
{
	struct {
		os_trace_file_t file;
		char path[PATH_BYTES];
	} *copy = os_alloc(sizeof(*copy));

	if (!copy) {
		failed = true;
		return;
	}
	os_snprintf(copy->path, PATH_BYTES, "%s/%s/%s", directory, middle, name);
	copy->file = file;
	copy->file.path = copy->path;
	add_file(&copy->file);
}

void trace_add_file(os_trace_file_t file)
{
	os_trace_file_t *copy = os_alloc(sizeof(*copy));

	failed |= !copy;
	if (!copy)
		return;
	*copy = file;
	add_file(copy);
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
	add_at(directory, event->name, "count",
	       (os_trace_file_t){ NULL, COUNT, .show = trace_show_count, .write = trace_write_count,
				  .arg = event });
	add_at(directory, event->name, "hist",
	       (os_trace_file_t){ .show = trace_show_hists, .arg = event });
	add_at(directory, event->name, "trigger",
	       (os_trace_file_t){ NULL, HIST, .show = trace_show_triggers,
				  .write = trace_write_trigger, .truncate = trace_truncate_triggers,
				  .arg = event });
	add_at(directory, event->name, "enable",
	       (os_trace_file_t){ NULL, SWITCH, .show = show_enable, .write = write_enable,
				  .arg = event });
	add_at(directory, event->name, "filter",
	       (os_trace_file_t){ NULL, FILTER, .show = show_filter, .write = write_filter,
				  .arg = event });
}

/*
 * Adds the files of a system call's event when someone looks for them, because there are thousands
 * of such files. NULL: of all events. One caller at a time.
 */
static void fill_calls(const char *name)
{
	is_filling = true;
	for (struct trace_event *event = trace_calls; event < trace_calls_end; event++) {
		if (event->has_files || (name && strcmp(name, event->name)))
			continue;
		add_event(event);
		event->has_files = true;
	}
	is_filling = false;
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

static void add_cpu(u32 cpu)
{
	static const os_trace_file_t files_of_cpu[] = {
		{ "buffer_size_kb", .show = show_size },
		{ "stats", .show = trace_show_stats },
		{ "trace", .show = trace_show },
		{ "trace_pipe", .next = trace_show_next, .ready = trace_has_next },
		{ "trace_pipe_raw", .next = trace_show_next_raw, .ready = trace_has_next },
	};
	char name[16];

	os_snprintf(name, sizeof(name), "cpu%u", cpu);
	for (u32 i = 0; i < PF_ARRAY_SIZE(files_of_cpu); i++) {
		os_trace_file_t file = files_of_cpu[i];

		file.arg = TRACE_CPU(cpu);
		add_at("per_cpu", name, file.path, file);
	}
}

void trace_add_files(void)
{
	struct trace_event *event;
	u32 cpu;

	for (u32 i = 0; i < PF_ARRAY_SIZE(files); i++)
		add_file(&files[i]);
	trace_for_each_event(event) {
		if (!event->call)
			add_event(event);
		if (!is_first(event))
			continue;
		add_at("events", event->system, "count",
		       (os_trace_file_t){ NULL, COUNT, .show = trace_show_counts,
					  .write = trace_write_counts, .arg = event->system });
		add_at("events", event->system, "enable",
		       (os_trace_file_t){ NULL, SWITCH, .show = show_enable_all,
					  .write = write_enable_all, .arg = event->system });
		add_at("events", event->system, "filter",
		       (os_trace_file_t){ NULL, FILTER, .show = show_filters,
					  .write = write_filters, .arg = event->system });
	}
	os_for_each_cpu(cpu)
		add_cpu(cpu);
	if (trace_calls)
		failed |= os_add_trace_directory("events/syscalls", fill_calls) != 0;
	failed |= !trace_counts_init();
	trace_options_init();
	trace_pids_init(&trace_event_pids);
	if (failed)
		os_printk("profile: no memory for the files of trace\n");
}
