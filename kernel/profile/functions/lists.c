// SPDX-License-Identifier: BSD-2-Clause
/*
 * The files of /sys/kernel/tracing that list functions. Each list is one bit in members[] of each
 * function. The files accept names with shell patterns: `>` starts with an empty list, `>>` adds,
 * and `!` before a name removes it. Each change patches the functions anew (switch.c).
 */

#include "functions.h"

#include "../words.h"
#include "tracers.h"

#define NAME_BYTES	 96
#define MAX_THRESHOLD_US 1000000000
#define CHANGED		 0x80 /* in members[]: the new content of the list that is being written */

struct list {
	const char *path;
	const char *when_empty; /* what the file shows then */
	u32 nr;
	u8 bit;
	bool selects;	  /* an empty list stands for all functions */
	bool is_replaced; /* the next write starts with an empty list */
};

static struct list lists[] = {
	{ "set_ftrace_filter", "#### all functions enabled ####", .bit = FUNCTION_IN_FILTER,
	  .selects = true },
	{ "set_ftrace_notrace", "#### no functions disabled ####", .bit = FUNCTION_IN_NOTRACE },
	{ "set_graph_function", "#### all functions enabled ####", .bit = FUNCTION_IN_GRAPH,
	  .selects = true },
	{ "set_graph_notrace", "#### no functions disabled ####",
	  .bit = FUNCTION_IN_GRAPH_NOTRACE },
};

static u8 *members; /* for each function, the bits of the lists that it is in */

u8 function_lists_of(u32 i)
{
	u8 in = members ? members[i] : 0;

	for (u32 l = 0; l < PF_ARRAY_SIZE(lists); l++) {
		if (lists[l].selects && !lists[l].nr)
			in |= lists[l].bit;
	}
	return in;
}

static void set_bit(u32 i, u8 bit, bool on)
{
	members[i] = on ? members[i] | bit : members[i] & ~bit;
}

static bool name_of(u32 i, char name[OS_SYMBOL_BYTES])
{
	u64 start;

	return os_symbol_lookup(os_function(i), &start, name, OS_SYMBOL_BYTES);
}

/* Adds or removes the function in a line of available_filter_functions; the first one is 1. */
static int change_by_line(u64 line, bool on)
{
	char name[OS_SYMBOL_BYTES];

	for (u32 i = 0; i < os_nr_functions(); i++) {
		if (name_of(i, name) && !--line) {
			set_bit(i, CHANGED, on);
			return 0;
		}
	}
	return -OS_EINVAL;
}

/* Adds or removes all functions that match. Returns 0, or -OS_EINVAL if none matches. */
static int change_by_word(const char *word)
{
	char name[OS_SYMBOL_BYTES];
	bool on = *word != '!', any = false;
	u64 line;

	if (!os_parse_u64(word + !on, &line))
		return change_by_line(line, on);

	for (u32 i = 0; i < os_nr_functions(); i++) {
		if (!name_of(i, name) || !os_glob_match_list(word + !on, name))
			continue;
		set_bit(i, CHANGED, on);
		any = true;
	}
	return any ? 0 : -OS_EINVAL;
}

/* Puts the new content of a list into effect. */
static int commit(struct list *list)
{
	list->is_replaced = false;
	list->nr = 0;
	for (u32 i = 0; i < os_nr_functions(); i++) {
		set_bit(i, list->bit, members[i] & CHANGED);
		list->nr += !!(members[i] & CHANGED);
	}
	return functions_apply();
}

static int change(struct list *list, const char *words)
{
	char word[NAME_BYTES];
	int error;

	for (u32 i = 0; i < os_nr_functions(); i++)
		set_bit(i, CHANGED, !list->is_replaced && (members[i] & list->bit));
	while ((error = words_next(&words, word, sizeof(word))) > 0) {
		error = change_by_word(word);
		if (error)
			break;
	}
	/* If the new content is not valid, the old list stays. */
	list->is_replaced = false;
	return error ? error : commit(list);
}

static int write_list(const char *text, const void *list)
{
	int error;

	poll_lock(&functions_lock);
	error = change((struct list *)list, text);
	poll_unlock(&functions_lock);
	return error;
}

static int truncate_list(const void *list)
{
	poll_lock(&functions_lock);
	((struct list *)list)->is_replaced = true;
	poll_unlock(&functions_lock);
	return 0;
}

/* Called at close. A file that was opened with `>` and not written to empties its list. */
static void release_list(const void *list)
{
	poll_lock(&functions_lock);
	if (((struct list *)list)->is_replaced)
		change((struct list *)list, "");
	poll_unlock(&functions_lock);
}

static int show_list(os_text_t *text, const void *arg)
{
	const struct list *list = arg;
	char name[OS_SYMBOL_BYTES];

	if (list && !list->nr)
		os_text_printf(text, "%s\n", list->when_empty);
	for (u32 i = 0; i < os_nr_functions(); i++) {
		if ((!list || (members[i] & list->bit)) && name_of(i, name))
			os_text_printf(text, "%s\n", name);
	}
	return 0;
}

static int show_depth(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%u\n", function_graph_depth);
	return 0;
}

static int write_depth(const char *text, const void *unused)
{
	char line[NAME_BYTES];
	u64 depth;

	if (words_copy_line(text, line, sizeof(line)) || os_parse_u64(line, &depth) ||
	    depth != (u32)depth)
		return -OS_EINVAL;
	pf_write_once(function_graph_depth, depth);
	return 0;
}

static int show_threshold(os_text_t *text, const void *unused)
{
	os_text_printf(text, "%lu\n", os_cycles_to_ns(function_graph_threshold_cycles) / 1000);
	return 0;
}

static int write_threshold(const char *text, const void *unused)
{
	char line[NAME_BYTES];
	u64 us, before;
	int error;

	if (words_copy_line(text, line, sizeof(line)) || os_parse_u64(line, &us) ||
	    us > MAX_THRESHOLD_US)
		return -OS_EINVAL;
	poll_lock(&functions_lock);
	before = function_graph_threshold_cycles;
	pf_write_once(function_graph_threshold_cycles,
		      os_mul_div_u64(us, os_cycles_per_second(), 1000000));
	error = functions_apply();
	if (error)
		pf_write_once(function_graph_threshold_cycles, before);
	poll_unlock(&functions_lock);
	return error;
}

#define NAMES "[!]<function>, with shell patterns, or [!]<line of available_filter_functions>"

static int add_file(struct list *list)
{
	os_trace_file_t file = { list->path, NAMES, .show = show_list, .arg = list };

	file.write = write_list;
	file.truncate = truncate_list;
	file.release = release_list;
	return os_add_trace_file(&file);
}

void function_lists_init(void)
{
	static const os_trace_file_t all = { "available_filter_functions", .show = show_list };
	static const os_trace_file_t depth = { "max_graph_depth", "<calls>, or 0 for all of them",
					       .show = show_depth, .write = write_depth };
	static const os_trace_file_t threshold = { "tracing_thresh",
						   "<microseconds of a call>, or 0 for all calls",
						   .show = show_threshold,
						   .write = write_threshold };
	int error = -OS_ENOMEM;

	members = os_zalloc(os_nr_functions());
	if (members)
		error = os_add_trace_file(&all);
	if (!error)
		error = os_add_trace_file(&depth);
	if (!error)
		error = os_add_trace_file(&threshold);
	for (u32 l = 0; l < PF_ARRAY_SIZE(lists) && !error; l++)
		error = add_file(&lists[l]);
	if (error)
		os_printk("profile: no memory for the lists of functions\n");
	trace_pids_init(&function_pids);
	function_stat_init();
}
