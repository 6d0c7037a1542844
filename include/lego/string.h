/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_STRING_H
#define LEGO_STRING_H

/* C's meanings; strscpy and glob_match are the additions. Any context. */

#include <lego/types.h>

void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
#ifndef memcpy /* a test calls them otherwise */
/* Few bytes of a known number are copied and set without a call. */
#define memcpy(...) __builtin_memcpy(__VA_ARGS__)
#define memset(...) __builtin_memset(__VA_ARGS__)
#endif
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);

/*
 * Copies a string, truncated if necessary, always with a NUL. Returns its length, or -E2BIG if
 * truncated.
 */
ssize_t strscpy(char *dst, const char *src, size_t size);
/* The same; all bytes behind the string are 0. */
ssize_t strscpy_pad(char *dst, const char *src, size_t size);

/* Matches a shell pattern: * ? [a-z] [!a-z]. */
bool glob_match(const char *pattern, const char *text);

/* Returns true if text matches one of the comma-separated patterns. */
bool glob_match_list(const char *patterns, const char *text);

#endif
