// SPDX-License-Identifier: BSD-2-Clause
/*
 * A text is a list of chunks, so that it needs no large allocation. The chunks grow with the text,
 * up to a limit. The output of one text_printf() is in one chunk.
 *
 * A stream makes its text in steps, as it is read, and keeps only the text of one step. The reader
 * drops that text when it asks for the next step.
 */
#include <lego/text.h>

#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>

#define FIRST_BYTES 512
/* The size of a chunk, with its header. One print that needs more gets a larger one. */
#define MAX_BYTES ((64ul << 10) - sizeof(struct text_chunk))

struct text_chunk {
	struct text_chunk *next;
	size_t size_bytes; /* of bytes[] */
	size_t len;
	char bytes[];
};

/* Returns the last chunk, which has room for n characters and a NUL; or NULL. */
static struct text_chunk *reserve_chunk(struct text *text, size_t n)
{
	struct text_chunk *last = text->last, *chunk;
	size_t size = last ? min(2 * last->size_bytes, MAX_BYTES) : FIRST_BYTES;

	if (text->failed)
		return NULL;
	if (last && last->len + n < last->size_bytes)
		return last;
	size = max(size, n + 1);
	chunk = kmalloc(sizeof(*chunk) + size);
	if (!chunk) {
		text->failed = true;
		return NULL;
	}
	text->held_bytes += sizeof(*chunk) + size;
	chunk->next = NULL;
	chunk->size_bytes = size;
	chunk->len = 0;
	if (last)
		last->next = chunk;
	else
		text->first = chunk;
	text->last = chunk;
	return chunk;
}

void text_append(struct text *text, const void *bytes, size_t n)
{
	struct text_chunk *chunk = reserve_chunk(text, n);

	if (!chunk)
		return;
	memcpy(chunk->bytes + chunk->len, bytes, n);
	chunk->len += n;
	text->len += n;
}

/*
 * Formats into the remaining room, and again if that was too short. Only the number of bytes
 * written counts: a string argument may change while it is formatted.
 */
void text_vprintf(struct text *text, const char *fmt, va_list args)
{
	struct text_chunk *chunk;
	size_t len = 0, room;
	va_list again;

	while ((chunk = reserve_chunk(text, len))) {
		room = chunk->size_bytes - chunk->len;
		va_copy(again, args);
		len = vsnprintf(chunk->bytes + chunk->len, room, fmt, again);
		va_end(again);
		if (len < room) {
			chunk->len += len;
			text->len += len;
			return;
		}
	}
}

void text_printf(struct text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text_vprintf(text, fmt, args);
	va_end(args);
}

void text_stream(struct text *text, bool (*more)(struct text *text, void *data),
		 void (*end)(void *data), void *data)
{
	text->more = more;
	text->end = end;
	text->data = data;
}

static void free_chunks(struct text *text)
{
	struct text_chunk *next;

	for (struct text_chunk *chunk = text->first; chunk; chunk = next) {
		next = chunk->next;
		kfree(chunk);
	}
	text->first = text->last = NULL;
	text->len = 0;
	text->held_bytes = 0;
}

static void end_stream(struct text *text)
{
	if (text->more)
		text->end(text->data);
	text->more = NULL;
}

/* Replaces the text by that of the next step. Returns false at the end. */
static bool next_piece(struct text *text)
{
	if (!text->more || text->failed)
		return false;
	text->nr_dropped += text->len;
	free_chunks(text);
	if (text->more(text, text->data))
		return true;
	end_stream(text);
	return false;
}

/* Copies up to n bytes of the chunks, from position pos on, to buf. Returns their number. */
static size_t read_chunks(const struct text *text, size_t pos, void *buf, size_t n)
{
	size_t done = 0, part;

	for (const struct text_chunk *chunk = text->first; chunk && done < n; chunk = chunk->next) {
		if (pos >= chunk->len) {
			pos -= chunk->len;
			continue;
		}
		part = min(n - done, chunk->len - pos);
		memcpy((char *)buf + done, chunk->bytes + pos, part);
		done += part;
		pos = 0;
	}
	return done;
}

ssize_t text_read(struct text *text, size_t pos, void *buf, size_t n)
{
	size_t done = 0;

	if (pos < text->nr_dropped)
		return -EINVAL;
	do {
		size_t at = pos + done - text->nr_dropped;

		done += read_chunks(text, at, (char *)buf + done, n - done);
	} while (done < n && next_piece(text));
	return done;
}

void text_free(struct text *text)
{
	end_stream(text);
	free_chunks(text);
	*text = (struct text){ 0 };
}
