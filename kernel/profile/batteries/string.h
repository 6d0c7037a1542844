/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_STRING_H
#define PROFILE_BATTERIES_STRING_H

/*
 * Memory and strings, by the names of C: GCC calls the first four by itself, in your code, too.
 * They are weak, so functions of your own by these names replace them.
 */

#include <stddef.h>

void *memset(void *dst, int c, size_t n);
void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);

#endif
