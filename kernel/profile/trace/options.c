// SPDX-License-Identifier: BSD-2-Clause
/*
 * The files options/<name>, of one option each, and trace_options, which has all of them: a line
 * for each, with `no` before its name if it is off.
 */

#include "trace.h"

#include "../words.h"

#define WORD_BYTES 64

static struct trace_option *options; /* grows at start only */

static int show_option(os_text_t *text, const void *arg)
{
	const struct trace_option *option = arg;

	os_text_printf(text, "%d\n", *option->flag);
	return 0;
}

static void set_option(const struct trace_option *option, bool on)
{
	if (option->set)
		option->set(on);
	else
		pf_write_once(*option->flag, on);
}

static int write_option(const char *text, const void *option)
{
	bool on = words_are(text, "1");

	if (!on && !words_are(text, "0"))
		return -OS_EINVAL;
	set_option(option, on);
	return 0;
}

int trace_show_options(os_text_t *text, const void *unused)
{
	for (const struct trace_option *option = options; option; option = option->next)
		os_text_printf(text, "%s%s\n", *option->flag ? "" : "no", option->name);
	return 0;
}

static int set_by_word(const char *word)
{
	for (struct trace_option *option = options; option; option = option->next) {
		bool on = !strcmp(word, option->name);

		if (on || (!strncmp(word, "no", 2) && !strcmp(word + 2, option->name))) {
			set_option(option, on);
			return 0;
		}
	}
	return -OS_EINVAL;
}

int trace_write_options(const char *text, const void *unused)
{
	char word[WORD_BYTES];
	int error;

	while ((error = words_next(&text, word, sizeof(word))) > 0) {
		error = set_by_word(word);
		if (error)
			return error;
	}
	return error;
}

void trace_add_option(struct trace_option *option)
{
	os_snprintf(option->path, sizeof(option->path), "options/%s", option->name);
	trace_add_file((os_trace_file_t){ option->path, "0|1", .show = show_option,
					  .write = write_option, .arg = option });
	option->next = options;
	options = option;
}

void trace_options_init(void)
{
	static struct trace_option overwrite = { .name = "overwrite",
						 .flag = &trace_overwrites,
						 .set = ring_set_overwrite };
	static struct trace_option stacktrace = { .name = "stacktrace",
						  .flag = &trace_has_stacks,
						  .set = trace_set_stacks };

	trace_add_option(&overwrite);
	if (PF_IS_ENABLED(CONFIG_PROFILE_CALLCHAIN))
		trace_add_option(&stacktrace);
}
