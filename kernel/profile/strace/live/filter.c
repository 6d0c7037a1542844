// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parses the words that select the calls to print, from left to right. `all`, a class, a name or a
 * glob adds calls; with a minus in front it removes them. `failed`, `><time>` and `pid:<n>` are
 * conditions: a call must meet all of them, but with several pids only one of those. `+time` and
 * `+cpu` add columns to each line. With `wait`, threads wait for room instead of losing lines.
 */

#include "live.h"

#include "../../words.h"

#define MAX_WORD 64

static const struct {
	const char *name;
	u16 bit;
} classes[] = {
#define CLASS(name_) { #name_, LIVE_CLASS_##name_ },
	LIVE_CLASSES(CLASS)
#undef CLASS
};

static void choose(struct live_filter *filter, u64 nr, bool on)
{
	if (on)
		filter->calls[nr / 64] |= 1ull << nr % 64;
	else
		filter->calls[nr / 64] &= ~(1ull << nr % 64);
}

static void choose_all(struct live_filter *filter, bool on)
{
	memset(filter->calls, on ? 0xff : 0, sizeof(filter->calls));
	filter->unnamed = on;
}

/* Adds or removes the calls of a word. Returns -OS_EINVAL if the word matches no call. */
static int choose_word(struct live_filter *filter, const char *word, bool on)
{
	bool any = false;
	u16 class = 0;

	if (!strcmp(word, "all") || !strcmp(word, "*")) {
		choose_all(filter, on);
		return 0;
	}
	for (u32 i = 0; i < PF_ARRAY_SIZE(classes); i++)
		if (!strcmp(word, classes[i].name))
			class = classes[i].bit;
	for (u64 nr = 0; nr < LIVE_NR_SYSCALLS; nr++) {
		const struct live_syscall *sc = live_syscall(nr);

		if (!sc->name)
			continue;
		if (class ? sc->classes & class : os_glob_match_list(word, sc->name)) {
			choose(filter, nr, on);
			any = true;
		}
	}
	return any ? 0 : -OS_EINVAL;
}

static int add_pid(struct live_filter *filter, const char *text)
{
	u64 pid;

	if (os_parse_u64(text, &pid) || pid == 0 || pid > 0x7fffffff ||
	    filter->nr_pids == LIVE_MAX_PIDS)
		return -OS_EINVAL;
	filter->pids[filter->nr_pids++] = pid;
	return 0;
}

/* Parses a time such as 300ns, 100us, 5ms or 1s. Changes the text. Returns 0 or -OS_EINVAL. */
static int set_slower(struct live_filter *filter, char *text)
{
	static const struct {
		const char *name;
		u64 ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", NS_PER_SEC } };
	size_t len = strlen(text);
	u64 n;

	for (u32 i = 0; i < PF_ARRAY_SIZE(units); i++) {
		size_t unit_len = strlen(units[i].name);

		if (len <= unit_len || strcmp(text + len - unit_len, units[i].name))
			continue;
		text[len - unit_len] = '\0';
		if (os_parse_u64(text, &n) || n == 0 || n > ~0ull / units[i].ns)
			return -OS_EINVAL;
		filter->slower_ns = n * units[i].ns;
		return 0;
	}
	return -OS_EINVAL;
}

/* Returns the flag that a word sets, or NULL if the word is no flag. */
static bool *find_flag(struct live_filter *filter, const char *word)
{
	if (!strcmp(word, "failed"))
		return &filter->failed;
	if (!strcmp(word, "wait"))
		return &filter->wait;
	if (!strcmp(word, "+time"))
		return &filter->time;
	if (!strcmp(word, "+cpu"))
		return &filter->cpu;
	return NULL;
}

struct words {
	struct live_filter *filter;
	bool first; /* no word has selected calls yet */
};

static int parse_word(struct words *w, char *word)
{
	struct live_filter *filter = w->filter;
	bool on = word[0] != '-';

	bool *flag = find_flag(filter, word);

	if (flag) {
		*flag = true;
		return 0;
	}
	if (!strncmp(word, "pid:", 4))
		return add_pid(filter, word + 4);
	if (word[0] == '>')
		return set_slower(filter, word + 1);
	/* A list that begins by removing calls starts from all of them. */
	if (w->first && !on)
		choose_all(filter, true);
	w->first = false;
	return choose_word(filter, word + !on, on);
}

int live_filter_parse(const char *text, struct live_filter *filter)
{
	struct words w = { .filter = filter, .first = true };
	bool any = false;
	char word[MAX_WORD];
	int more, error;

	memset(filter, 0, sizeof(*filter));
	while ((more = words_next(&text, word, sizeof(word))) > 0) {
		if (!any && !strcmp(word, "off"))
			return words_next(&text, word, sizeof(word)) ? -OS_EINVAL : 0;
		any = true;
		error = parse_word(&w, word);
		if (error)
			return error;
	}
	/* Conditions without a selection apply to all calls. */
	if (any && w.first)
		choose_all(filter, true);
	return any && !more ? 0 : -OS_EINVAL;
}
