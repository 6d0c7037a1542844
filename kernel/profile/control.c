// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which points are on. A list of globs, each with a minus in front to switch off, is applied from
 * left to right: at boot (profile.points=), and at run time by writing it to /proc/profile/points,
 * where each has to be for a point.
 * At boot a list that starts with a minus starts from all on, another one from all off.
 *
 * Switching patches code, which a sysrq's interrupt cannot do: it leaves that to a thread.
 */

#include "internal.h"

#define MAX_LIST 256

static char boot_points[MAX_LIST] = "*";
static bool ordered = true;

/* The next word of a list with commas, spaces or newlines. 1, 0 at its end, -EINVAL if too long. */
static int next_word(const char **list, char *word, size_t size)
{
	size_t len = 0;

	while (**list == ',' || **list == ' ' || **list == '\n')
		(*list)++;
	for (; **list && **list != ',' && **list != ' ' && **list != '\n'; (*list)++) {
		if (len == size - 1)
			return -EINVAL;
		word[len++] = **list;
	}
	word[len] = '\0';
	return len != 0;
}

static int check_list(const char *list)
{
	char word[MAX_LIST];
	int more;

	while ((more = next_word(&list, word, sizeof(word))) > 0)
		if (!strcmp(word, "-"))
			return -EINVAL;
	return more;
}

/* The first word of a checked list that is for no point; NULL: there is none. */
static const char *find_unknown(const char *list, char word[MAX_LIST])
{
	while (next_word(&list, word, MAX_LIST) > 0) {
		if (strcmp(word, "reset") && !points_match(word + (word[0] == '-')))
			return word;
	}
	return NULL;
}

static void apply_list(const char *list)
{
	char word[MAX_LIST];

	while (next_word(&list, word, sizeof(word)) > 0) {
		if (!strcmp(word, "reset"))
			points_reset();
		else if (word[0] == '-')
			points_switch(word + 1, false);
		else
			points_switch(word, true);
	}
}

/* "ordered" and "unordered" are no globs; the list is what is left. */
static int set_points(const char *value)
{
	char word[MAX_LIST], list[MAX_LIST] = "";
	size_t len = 0;
	u32 nr = 0;

	if (strlen(value) >= sizeof(list) || check_list(value))
		return -EINVAL;
	for (; next_word(&value, word, sizeof(word)) > 0; nr++) {
		if (!strcmp(word, "ordered") || !strcmp(word, "unordered"))
			ordered = word[0] == 'o';
		else
			len += snprintf(list + len, sizeof(list) - len, "%s,", word);
	}
	if (len)
		memcpy(boot_points, list, sizeof(list));
	return nr ? 0 : -EINVAL;
}
BOOT_PARAM(profile_points, "profile.points", "[unordered,][-]<glob>[,[-]<glob>...]", set_points);

static int show_points(os_text_t *text)
{
	points_list(text);
	return 0;
}

static int write_points(const char *text)
{
	char word[MAX_LIST];

	if (strlen(text) >= MAX_LIST || check_list(text) || find_unknown(text, word))
		return -EINVAL;
	apply_list(text);
	return 0;
}

static void toggle(void)
{
	points_toggle();
	printk("profile: points toggled\n");
}

static OS_WORKER(toggler, toggle);

static void toggle_soon(void)
{
	os_worker_wake(&toggler);
}

OS_SYSRQ_KEY(profile_points, 'o', "switch all profile points off, or on", toggle_soon);

void control_init(void)
{
	char word[MAX_LIST];

	points_init(ordered);
	if (find_unknown(boot_points, word))
		printk("profile.points: there is no point %s\n", word);
	if (boot_points[0] == '-')
		points_switch("*", true);
	apply_list(boot_points);
	if (os_worker_start(&toggler, "profile") ||
	    os_add_file("profile/points", show_points, write_points))
		printk("profile: no memory to control points at run time\n");
}
