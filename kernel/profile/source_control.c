// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which source, how often, and whether at all: at boot by profile.source=, profile.hz= and
 * profile.seed=, later by words written to
 * /proc/profile/source or /proc/profile/heatmap.
 */

#include "internal.h"

#define MAX_WORD 32

static struct source_settings boot_settings = {
	.source = SOURCE_TIMER,
	.hz = 997,
	.seed = 1,
	.jitter = true,
	.on = true,
};

static bool changing; /* by the thread that set it */

static int parse_source(const char *value, struct source_settings *settings)
{
	if (!strcmp(value, "timer"))
		settings->source = SOURCE_TIMER;
	else if (!strcmp(value, "nmi"))
		settings->source = SOURCE_NMI;
	else
		return -EINVAL;
	return 0;
}

static int parse_hz(const char *value, struct source_settings *settings)
{
	u64 hz;

	if (parse_u64(value, &hz) || hz < 1 || hz > SOURCE_MAX_HZ)
		return -EINVAL;
	settings->hz = hz;
	return 0;
}

static int parse_seed(const char *value, struct source_settings *settings)
{
	u64 seed = 0;

	if (strcmp(value, "none") && parse_u64(value, &seed))
		return -EINVAL;
	settings->seed = seed;
	settings->jitter = strcmp(value, "none") != 0;
	return 0;
}

static int set_source(const char *value)
{
	return parse_source(value, &boot_settings);
}
BOOT_PARAM(profile_source, "profile.source", "timer|nmi", set_source);

static int set_hz(const char *value)
{
	return parse_hz(value, &boot_settings);
}
BOOT_PARAM(profile_hz, "profile.hz", "1 to 100000", set_hz);

static int set_seed(const char *value)
{
	return parse_seed(value, &boot_settings);
}
BOOT_PARAM(profile_seed, "profile.seed", "<number>|none", set_seed);

/* The next word, "" at the end; what is too long for any word we know is cut. */
static void next_word(const char **text, char *word)
{
	size_t len = 0;

	while (**text == ' ' || **text == '\n')
		(*text)++;
	for (; **text && **text != ' ' && **text != '\n'; (*text)++) {
		if (len < MAX_WORD - 1)
			word[len++] = **text;
	}
	word[len] = '\0';
}

static int parse_words(const char *text, struct source_settings *settings, bool *reset)
{
	char word[MAX_WORD], value[MAX_WORD];
	int error = 0;

	*reset = false;
	for (next_word(&text, word); word[0] && !error; next_word(&text, word)) {
		if (!strcmp(word, "on") || !strcmp(word, "off")) {
			settings->on = word[1] == 'n';
			continue;
		}
		if (!strcmp(word, "reset")) {
			*reset = true;
			continue;
		}
		next_word(&text, value);
		if (!strcmp(word, "source"))
			error = parse_source(value, settings);
		else if (!strcmp(word, "hz"))
			error = parse_hz(value, settings);
		else if (!strcmp(word, "seed"))
			error = parse_seed(value, settings);
		else
			error = -EINVAL;
	}
	return error;
}

int source_control(const char *text)
{
	struct source_settings settings;
	bool reset;
	int error;

	while (xchg(&changing, true))
		os_wait_turn();
	source_settings(&settings);
	error = parse_words(text, &settings, &reset);
	if (!error)
		source_apply(&settings);
	if (!error && reset) {
		sample_reset();
		source_reset();
	}
	/* Pairs with the xchg() of the next one. */
	smp_store_release(&changing, false);
	return error;
}

/* In words that can be written back. */
static int show_source(os_text_t *text)
{
	struct source_settings settings;

	source_settings(&settings);
	os_text_printf(text, "%s\n", settings.on ? "on" : "off");
	os_text_printf(text, "source %s\n", settings.source == SOURCE_NMI ? "nmi" : "timer");
	os_text_printf(text, "hz %u\n", settings.hz);
	if (settings.jitter)
		os_text_printf(text, "seed %lu\n", settings.seed);
	else
		os_text_printf(text, "seed none\n");
	return 0;
}

void source_init(void)
{
	source_apply(&boot_settings);
	if (os_add_file("profile/source", show_source, source_control))
		printk("profile: no memory to change the source of samples at run time\n");
}
