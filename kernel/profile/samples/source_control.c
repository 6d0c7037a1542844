// SPDX-License-Identifier: BSD-2-Clause
/*
 * Selects the source of samples, its rate, and whether it is on: at boot by profile.source=,
 * profile.hz= and profile.seed=, later by words written to /proc/profile/source or heatmap.
 */

#include "samples.h"

#include "../words.h"

#define MAX_WORD 32

static struct source_settings boot_settings = {
	.source = SOURCE_TIMER,
	.hz = OS_TICK_HZ ? OS_TICK_HZ : 997,
	.seed = 1,
	.jitter = !OS_TICK_HZ,
	.on = true,
};

static struct poll_lock changing; /* held while a thread changes the settings */
struct profile_off_time source_off_time, source_borrowed_time;

/* The settings that source_give_back() restores. */
static bool is_borrowed;
static struct source_settings lent_settings;

static int parse_source(const char *value, struct source_settings *settings)
{
	if (!strcmp(value, "nmi") && !OS_HAS_NMIS)
		os_printk("profile: this kernel has no NMIs to take samples with\n");
	if (!strcmp(value, "timer"))
		settings->source = SOURCE_TIMER;
	else if (!strcmp(value, "nmi") && OS_HAS_NMIS)
		settings->source = SOURCE_NMI;
	else
		return -OS_EINVAL;
	return 0;
}

static int parse_hz(const char *value, struct source_settings *settings)
{
	u64 hz;

	if (os_parse_u64(value, &hz) || hz < 1 || hz > SOURCE_MAX_HZ)
		return -OS_EINVAL;
	if (OS_TICK_HZ && hz != OS_TICK_HZ) {
		os_printk("profile: samples come with the timer's tick, %u per second\n",
			  (u32)OS_TICK_HZ);
		return -OS_EINVAL;
	}
	settings->hz = hz;
	return 0;
}

static int parse_seed(const char *value, struct source_settings *settings)
{
	u64 seed = 0;

	if (strcmp(value, "none") && os_parse_u64(value, &seed))
		return -OS_EINVAL;
	settings->seed = seed;
	settings->jitter = !OS_TICK_HZ && strcmp(value, "none") != 0;
	return 0;
}

static int set_source(const char *value)
{
	return parse_source(value, &boot_settings);
}
/* What triggers samples: timer by default. NMIs also sample code with interrupts off. */
OS_BOOT_PARAM(profile_source, "profile.source", "timer|nmi", set_source);

static int set_hz(const char *value)
{
	return parse_hz(value, &boot_settings);
}
/*
 * Samples of each CPU in a second: 997 by default; `make run` sets 10007 where instructions are
 * time.
 */
OS_BOOT_PARAM(profile_hz, "profile.hz", "1 to 100000", set_hz);

static int set_seed(const char *value)
{
	return parse_seed(value, &boot_settings);
}
/* Seed of the random moments of samples: 1 by default. none: equal intervals. */
OS_BOOT_PARAM(profile_seed, "profile.seed", "<number>|none", set_seed);

static int parse_value(const char *word, const char *value, struct source_settings *settings)
{
	if (!strcmp(word, "source"))
		return parse_source(value, settings);
	if (!strcmp(word, "hz"))
		return parse_hz(value, settings);
	if (!strcmp(word, "seed"))
		return parse_seed(value, settings);
	return -OS_EINVAL;
}

static int parse_words(const char *text, struct source_settings *settings, bool *reset)
{
	char word[MAX_WORD], value[MAX_WORD];
	int more, error = 0;

	*reset = false;
	while (!error && (more = words_next(&text, word, sizeof(word)))) {
		if (more < 0)
			return more;
		if (!strcmp(word, "on") || !strcmp(word, "off"))
			settings->on = word[1] == 'n';
		else if (!strcmp(word, "reset"))
			*reset = true;
		else if (words_next(&text, value, sizeof(value)) > 0)
			error = parse_value(word, value, settings);
		else
			error = -OS_EINVAL;
	}
	return error;
}

int source_control(const char *text)
{
	struct source_settings settings;
	bool reset;
	int error;

	poll_lock(&changing);
	source_settings(&settings);
	error = parse_words(text, &settings, &reset);
	if (!error && is_borrowed)
		error = -OS_EBUSY;
	if (!error) {
		source_apply(&settings);
		off_time_switch(&source_off_time, !settings.on, false);
	}
	if (!error && reset)
		source_reset();
	poll_unlock(&changing);
	return error;
}

static void apply_borrowed(const struct source_settings *settings)
{
	source_apply_without_reset(settings);
	off_time_switch(&source_off_time, !settings->on, false);
}

int source_borrow(u32 hz)
{
	struct source_settings settings;

	if (hz < 1 || hz > SOURCE_MAX_HZ || (OS_TICK_HZ && hz != OS_TICK_HZ))
		return -OS_EINVAL;
	poll_lock(&changing);
	if (is_borrowed) {
		poll_unlock(&changing);
		return -OS_EBUSY;
	}
	source_settings(&lent_settings);
	settings = lent_settings;
	settings.on = true;
	settings.hz = hz;
	is_borrowed = true;
	apply_borrowed(&settings);
	if (hz != lent_settings.hz)
		off_time_switch(&source_borrowed_time, true, false);
	poll_unlock(&changing);
	return 0;
}

void source_give_back(void)
{
	poll_lock(&changing);
	if (is_borrowed) {
		apply_borrowed(&lent_settings);
		off_time_switch(&source_borrowed_time, false, false);
		is_borrowed = false;
	}
	poll_unlock(&changing);
}

PROFILE_CONTROL(profile_source, "profile.source", "timer|nmi", "source ", source_control);
PROFILE_CONTROL(profile_hz, "profile.hz", "1 to 100000", "hz ", source_control);
PROFILE_CONTROL(profile_seed, "profile.seed", "<number>|none", "seed ", source_control);

/* Prints the settings in words that can be written back. */
void source_show(os_text_t *text)
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
}

void source_init(void)
{
	source_apply(&boot_settings);
}
