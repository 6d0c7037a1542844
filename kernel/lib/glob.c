// SPDX-License-Identifier: BSD-2-Clause
/*
 * Matches shell patterns without recursion. On a mismatch, only the last '*' seen takes one
 * character more, so the worst case is the length of the pattern times the length of the text. A
 * set without a closing bracket is literal; a ']' right after the opening is a member.
 */

#include <lego/string.h>

/* Returns the end of the set that starts at p ('['), or NULL if it is not closed before end. */
static const char *match_set(const char *p, const char *end, char c, bool *matched)
{
	bool negated = false, found = false, first = true;

	p++;
	if (p < end && (*p == '!' || *p == '^')) {
		negated = true;
		p++;
	}
	for (; p < end && (first || *p != ']'); first = false) {
		u8 low = *p++, high = low;

		if (p + 1 < end && p[0] == '-' && p[1] != ']') {
			high = p[1];
			p += 2;
		}
		if (low <= (u8)c && (u8)c <= high)
			found = true;
	}
	if (p >= end)
		return NULL;
	*matched = found != negated;
	return p + 1;
}

/* Matches one character. Returns the end of its pattern element, or NULL. */
static const char *match_one(const char *p, const char *end, char c)
{
	const char *behind;
	bool matched;

	switch (*p) {
	case '?':
		return p + 1;
	case '[':
		behind = match_set(p, end, c, &matched);
		if (behind)
			return matched ? behind : NULL;
		break;
	}
	return *p == c ? p + 1 : NULL;
}

static bool match_glob(const char *p, const char *end, const char *text)
{
	const char *star = NULL, *star_text = NULL;

	for (;;) {
		const char *behind = NULL;

		if (p < end && *p == '*') {
			star = ++p;
			star_text = text;
			continue;
		}
		if (!*text && p == end)
			return true;
		if (*text && p < end)
			behind = match_one(p, end, *text);
		if (behind) {
			p = behind;
			text++;
		} else if (star && *star_text) {
			p = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
}

bool glob_match(const char *pattern, const char *text)
{
	return match_glob(pattern, pattern + strlen(pattern), text);
}

bool glob_match_list(const char *patterns, const char *text)
{
	for (;;) {
		const char *comma = strchr(patterns, ',');
		const char *end = comma ? comma : patterns + strlen(patterns);

		if (match_glob(patterns, end, text))
			return true;
		if (!comma)
			return false;
		patterns = comma + 1;
	}
}
