// SPDX-License-Identifier: BSD-2-Clause
#include <lego/text.h>

#include <lego/kernel.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>

/* The buffer doubles when it is full, so appending costs what is appended. */

#define FIRST_BYTES 512

/* Room for n more characters and the NUL. */
static bool reserve(struct text *text, size_t n)
{
	size_t size = text->size_bytes ? text->size_bytes : FIRST_BYTES;
	char *buf;

	if (text->failed)
		return false;
	if (text->len + n < text->size_bytes)
		return true;
	while (size <= text->len + n)
		size *= 2;
	buf = kmalloc(size);
	if (!buf) {
		text->failed = true;
		return false;
	}
	if (text->buf)
		memcpy(buf, text->buf, text->len);
	buf[text->len] = '\0';
	kfree(text->buf);
	text->buf = buf;
	text->size_bytes = size;
	return true;
}

void text_append(struct text *text, const void *bytes, size_t n)
{
	if (!reserve(text, n))
		return;
	memcpy(text->buf + text->len, bytes, n);
	text->len += n;
	text->buf[text->len] = '\0';
}

void text_vprintf(struct text *text, const char *fmt, va_list args)
{
	va_list again;
	size_t len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (!reserve(text, len))
		return;
	vsnprintf(text->buf + text->len, len + 1, fmt, args);
	text->len += len;
}

void text_printf(struct text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text_vprintf(text, fmt, args);
	va_end(args);
}

void text_free(struct text *text)
{
	kfree(text->buf);
	*text = (struct text){ 0 };
}
