/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TEXT_H
#define LEGO_TEXT_H

/* Text that grows as it is printed to, however long it gets. Any context but NMI; one writer. */

#include <lego/compiler.h>
#include <lego/types.h>
#include <stdarg.h>

struct text_chunk;

struct text {
	struct text_chunk *first, *last; /* NULL before the first character */
	size_t len;
	size_t held_bytes; /* memory of the chunks */
	bool failed;	   /* out of memory: something is missing at the end */

	/* For a text that is made while it is read: see text_stream(). */
	size_t nr_dropped; /* characters before these */
	bool (*more)(struct text *text, void *data);
	void (*end)(void *data);
	void *data;
};

void text_printf(struct text *text, const char *fmt, ...) __printf(2, 3);
void text_vprintf(struct text *text, const char *fmt, va_list args);

/* Exactly these bytes, NULs included. */
void text_append(struct text *text, const void *bytes, size_t n);

/*
 * Makes a text go on while it is read, so that it is never in memory as a whole: text_read() calls
 * more(), which prints the next piece or returns false, and drops the piece before. Then, or when
 * the text is freed, end() is called once.
 */
void text_stream(struct text *text, bool (*more)(struct text *text, void *data),
		 void (*end)(void *data), void *data);

/*
 * Copies up to n bytes from position pos on to buf. Returns how many, or -EINVAL if they have been
 * dropped.
 */
ssize_t text_read(struct text *text, size_t pos, void *buf, size_t n);

/* Empty again, without memory. */
void text_free(struct text *text);

#endif
