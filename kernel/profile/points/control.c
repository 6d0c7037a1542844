// SPDX-License-Identifier: BSD-2-Clause
/*
 * Switches points on and off: at boot by profile.points=, later by writes to /proc/profile/points
 * and by sysrq o. A list of globs is applied from left to right; a minus before a glob switches its
 * points off. At boot, a list that begins with a minus starts with all points on, any other list
 * with all points off. The file refuses a glob that matches no point.
 */

#include "points.h"

#include "../words.h"

#define MAX_LIST 256

static char boot_points[MAX_LIST] = "*";
static bool ordered = true;

static int check_list(const char *list)
{
	char word[MAX_LIST];
	int more;

	while ((more = words_next(&list, word, sizeof(word))) > 0)
		if (!strcmp(word, "-"))
			return -OS_EINVAL;
	return more;
}

/* Returns the first word of a checked list that matches no point, or NULL. */
static const char *find_unknown(const char *list, char word[MAX_LIST])
{
	while (words_next(&list, word, MAX_LIST) > 0) {
		if (strcmp(word, "reset") && !points_match(word + (word[0] == '-')))
			return word;
	}
	return NULL;
}

static void apply_list(const char *list)
{
	char word[MAX_LIST];

	points_begin();
	while (words_next(&list, word, sizeof(word)) > 0) {
		if (!strcmp(word, "reset"))
			points_reset();
		else
			points_want(word + (word[0] == '-'), word[0] != '-');
	}
	points_apply();
}

/*
 * Parses the value. "ordered" and "unordered" are removed; the other words are the list of globs.
 */
static int set_points(const char *value)
{
	char word[MAX_LIST], list[MAX_LIST] = "";
	size_t len = 0;
	u32 nr = 0;

	if (strlen(value) >= sizeof(list) || check_list(value))
		return -OS_EINVAL;
	for (; words_next(&value, word, sizeof(word)) > 0; nr++) {
		if (!strcmp(word, "ordered") || !strcmp(word, "unordered"))
			ordered = word[0] == 'o';
		else
			len += os_snprintf(list + len, sizeof(list) - len, "%s,", word);
	}
	if (len)
		memcpy(boot_points, list, sizeof(list));
	return nr ? 0 : -OS_EINVAL;
}
/*
 * Which points are on: all by default; a minus switches points off. unordered: cheaper pairs,
 * without fences.
 */
OS_BOOT_PARAM(profile_points, "profile.points", "[unordered,][-]<glob>[,[-]<glob>...]", set_points);

int points_control(const char *text)
{
	char word[MAX_LIST];

	if (strlen(text) >= MAX_LIST || check_list(text) || find_unknown(text, word))
		return -OS_EINVAL;
	apply_list(text);
	return 0;
}

static void toggle_points(void)
{
	if (report_is_off())
		return;
	os_printk("profile: all points %s\n", points_toggle() ? "on" : "off");
}

OS_SYSRQ_KEY(profile_points, 'o', "switch all profile points off, or on", toggle_points);

void points_control_init(void)
{
	char word[MAX_LIST];

	points_init(ordered);
	if (find_unknown(boot_points, word))
		os_printk("profile.points: there is no point %s\n", word);
	if (boot_points[0] == '-')
		points_switch("*", true);
	apply_list(boot_points);
	points_started();
}
