/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TEXT_H
#define LEGO_TEXT_H

/* A text of any length, which grows when it is printed to. Any context but NMI; one writer. */

#include <lego/compiler.h>
#include <lego/types.h>
#include <stdarg.h>

struct text_chunk;

struct text {
	struct text_chunk *first, *last; /* NULL before the first character */
	size_t len;
	size_t held_bytes; /* memory of the chunks */
	bool failed;	   /* out of memory: the end of the text is missing */

	/* For a text that is made while it is read: see text_stream(). */
	size_t nr_dropped; /* characters before the first chunk, which were dropped */
	bool (*more)(struct text *text, void *data);
	void (*end)(void *data);
	void *data;
};

void text_printf(struct text *text, const char *fmt, ...) __printf(2, 3);
void text_vprintf(struct text *text, const char *fmt, va_list args);

/* Appends exactly these bytes, including NULs. */
void text_append(struct text *text, const void *bytes, size_t n);

/*
 * Makes a text grow while it is read, so that it is never in memory as a whole: text_read() calls
 * more(), which prints the next chunk or returns false at the end, and drops the chunk before. At
 * the end, or when the text is freed, end() is called once.
 */
void text_stream(struct text *text, bool (*more)(struct text *text, void *data),
		 void (*end)(void *data), void *data);

/*
 * Copies up to n bytes from position pos on to buf. Returns their number, or -EINVAL if they were
 * dropped.
 */
ssize_t text_read(struct text *text, size_t pos, void *buf, size_t n);

/* Frees the memory. The text is empty again. */
void text_free(struct text *text);

#endif
