// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which calls are shown, as words: all, a class or a name or a pattern of names, each taken out
 * again with a minus before it; and what narrows that down: pid:<n>, failed, ><n>us, wait. All
 * have to be fulfilled, but of several pids one is enough.
 */

#include "live.h"

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

/* A class, a name or a pattern; -EINVAL when it means no call at all. */
static int choose_word(struct live_filter *filter, const char *word, bool on)
{
	bool any = false;
	u16 class = 0;

	if (!strcmp(word, "all") || !strcmp(word, "*")) {
		choose_all(filter, on);
		return 0;
	}
	for (u32 i = 0; i < ARRAY_SIZE(classes); i++)
		if (!strcmp(word, classes[i].name))
			class = classes[i].bit;
	for (u64 nr = 0; nr < LIVE_NR_SYSCALLS; nr++) {
		const struct live_syscall *sc = live_syscall(nr);

		if (!sc->name)
			continue;
		if (class ? sc->classes & class : glob_match(word, sc->name)) {
			choose(filter, nr, on);
			any = true;
		}
	}
	return any ? 0 : -EINVAL;
}

static int add_pid(struct live_filter *filter, const char *text)
{
	u64 pid;

	if (parse_u64(text, &pid) || pid == 0 || pid > 0x7fffffff ||
	    filter->nr_pids == LIVE_MAX_PIDS)
		return -EINVAL;
	filter->pids[filter->nr_pids++] = pid;
	return 0;
}

/* 100us, 5ms, 1s, 300ns. */
static int set_slower(struct live_filter *filter, char *text)
{
	static const struct {
		const char *name;
		u64 ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", NS_PER_SEC } };
	size_t len = strlen(text);
	u64 n;

	for (u32 i = 0; i < ARRAY_SIZE(units); i++) {
		size_t unit_len = strlen(units[i].name);

		if (len <= unit_len || strcmp(text + len - unit_len, units[i].name))
			continue;
		text[len - unit_len] = '\0';
		if (parse_u64(text, &n) || n == 0 || n > ~0ull / units[i].ns)
			return -EINVAL;
		filter->slower_ns = n * units[i].ns;
		return 0;
	}
	return -EINVAL;
}

struct words {
	struct live_filter *filter;
	bool first; /* no call was named yet */
};

static int parse_word(struct words *w, char *word)
{
	struct live_filter *filter = w->filter;
	bool on = word[0] != '-';

	if (!strcmp(word, "failed")) {
		filter->failed = true;
		return 0;
	}
	if (!strcmp(word, "wait")) {
		filter->wait = true;
		return 0;
	}
	if (!strncmp(word, "pid:", 4))
		return add_pid(filter, word + 4);
	if (word[0] == '>')
		return set_slower(filter, word + 1);
	/* All but what is taken out. */
	if (w->first && !on)
		choose_all(filter, true);
	w->first = false;
	return choose_word(filter, word + !on, on);
}

static bool is_space(char c)
{
	return c == ',' || c == ' ' || c == '\n' || c == '\t';
}

int live_filter_parse(const char *text, struct live_filter *filter)
{
	struct words w = { .filter = filter, .first = true };
	bool any = false;
	char word[MAX_WORD];
	int error;

	memset(filter, 0, sizeof(*filter));
	for (;;) {
		size_t len = 0;

		while (is_space(*text))
			text++;
		if (!*text)
			break;
		for (; *text && !is_space(*text); text++) {
			if (len == sizeof(word) - 1)
				return -EINVAL;
			word[len++] = *text;
		}
		word[len] = '\0';
		if (!any && !strcmp(word, "off")) {
			while (is_space(*text))
				text++;
			return *text ? -EINVAL : 0;
		}
		any = true;
		error = parse_word(&w, word);
		if (error)
			return error;
	}
	/* Conditions alone are for all calls. */
	if (any && w.first)
		choose_all(filter, true);
	return any ? 0 : -EINVAL;
}
