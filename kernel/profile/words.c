// SPDX-License-Identifier: BSD-2-Clause
/* Parses control words: a single word, a line, or a list. */

#include "words.h"

static bool is_separator(char c)
{
	return c == ',' || c == ' ' || c == '\n' || c == '\t';
}

int words_copy_line(const char *text, char *line, size_t size)
{
	size_t len = strlen(text);

	if (len && text[len - 1] == '\n')
		len--;
	if (len >= size)
		return -OS_EINVAL;
	memcpy(line, text, len);
	line[len] = '\0';
	return 0;
}

bool words_are(const char *text, const char *word)
{
	size_t len = strlen(word);

	return strlen(text) >= len && !memcmp(text, word, len) &&
	       (!text[len] || (text[len] == '\n' && !text[len + 1]));
}

int words_on_off(const char *text, bool *on)
{
	bool is_on = words_are(text, "on");

	if (!is_on && !words_are(text, "off"))
		return -OS_EINVAL;
	*on = is_on;
	return 0;
}

u32 words_digit(char c)
{
	char lower = c | 0x20;

	if (c >= '0' && c <= '9')
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : ~0u;
}

int words_next(const char **list, char *word, size_t size)
{
	size_t len = 0;

	while (is_separator(**list))
		(*list)++;
	for (; **list && !is_separator(**list); (*list)++) {
		if (len == size - 1)
			return -OS_EINVAL;
		word[len++] = **list;
	}
	word[len] = '\0';
	return len != 0;
}
