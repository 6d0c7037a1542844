/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WORDS_H
#define PROFILE_WORDS_H

/* Parsing of control words, as in boot parameters and in writes to files in /proc. */

#include "util.h"

/* Returns true if text is exactly this word, with or without a newline at its end. */
bool words_are(const char *text, const char *word);

/* Sets *on if text is "on" or "off", with or without a newline. Returns 0 or -OS_EINVAL. */
int words_on_off(const char *text, bool *on);

/* Copies text without its final newline. Returns 0, or -OS_EINVAL if it does not fit. */
int words_copy_line(const char *text, char *line, size_t size);

/* Returns the value of a hexadecimal digit; ~0: it is none. */
u32 words_digit(char c);

/*
 * Copies the next word of a list and moves *list behind it. Spaces, tabs, newlines and commas
 * separate words. Returns 1, 0 at the end of the list (word is empty then), or -OS_EINVAL if the
 * word does not fit.
 */
int words_next(const char **list, char *word, size_t size);

#endif
