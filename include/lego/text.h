/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TEXT_H
#define LEGO_TEXT_H

/* A string that grows as it is printed to. Any context but NMI; one writer. */

#include <lego/compiler.h>
#include <lego/types.h>
#include <stdarg.h>

struct text {
	char *buf;	   /* kmalloc, NULL before the first character; ends in a NUL */
	size_t len;	   /* without the NUL */
	size_t size_bytes; /* of buf */
	bool failed;	   /* out of memory: something is missing at the end */
};

void text_printf(struct text *text, const char *fmt, ...) __printf(2, 3);
void text_vprintf(struct text *text, const char *fmt, va_list args);

/* Exactly these bytes, NULs included. */
void text_append(struct text *text, const void *bytes, size_t n);

/* Empty again, without memory. */
void text_free(struct text *text);

#endif
