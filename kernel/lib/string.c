// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory is copied in 8-byte words, unaligned ones included, and the rest in bytes. Much memory is
 * copied by a string instruction, which takes a while to start. The compiler would replace the
 * loops by calls of the very functions that they implement; LOOP() prevents that.
 */

#include <lego/string.h>

#include <asm/words.h>
#include <lego/compiler.h>
#include <lego/errno.h>

#define LOOP() barrier()

struct word {
	u64 value;
} __packed __attribute__((may_alias));

#define WORD(ptr)	(((struct word *)(ptr))->value)
#define CONST_WORD(ptr) (((const struct word *)(ptr))->value)
#define WORD_BYTES	sizeof(u64)
#define MUCH_BYTES	256

/* Copies forward: memmove() relies on that. */
void *(memcpy)(void *to, const void *from, size_t n)
{
	char *dst = to;
	const char *src = from;

	if (n >= MUCH_BYTES) {
		copy_words(&dst, &src, n / WORD_BYTES);
		n %= WORD_BYTES;
	}
	for (; n >= 4 * WORD_BYTES; n -= 4 * WORD_BYTES) {
		u64 a = CONST_WORD(src), b = CONST_WORD(src + 8);
		u64 c = CONST_WORD(src + 16), d = CONST_WORD(src + 24);

		WORD(dst) = a;
		WORD(dst + 8) = b;
		WORD(dst + 16) = c;
		WORD(dst + 24) = d;
		dst += 4 * WORD_BYTES;
		src += 4 * WORD_BYTES;
		LOOP();
	}
	for (; n >= WORD_BYTES; n -= WORD_BYTES) {
		WORD(dst) = CONST_WORD(src);
		dst += WORD_BYTES;
		src += WORD_BYTES;
		LOOP();
	}
	while (n--) {
		*dst++ = *src++;
		LOOP();
	}
	return to;
}

static void copy_backward(char *dst, const char *src, size_t n)
{
	dst += n;
	src += n;
	for (; n >= WORD_BYTES; n -= WORD_BYTES) {
		dst -= WORD_BYTES;
		src -= WORD_BYTES;
		WORD(dst) = CONST_WORD(src);
		LOOP();
	}
	while (n--) {
		*--dst = *--src;
		LOOP();
	}
}

void *memmove(void *dst, const void *src, size_t n)
{
	/* A forward copy is safe if dst is not inside [src, src + n). */
	if ((uintptr_t)dst - (uintptr_t)src >= n)
		return memcpy(dst, src, n);
	copy_backward(dst, src, n);
	return dst;
}

void *(memset)(void *dst, int c, size_t n)
{
	u64 word = (u8)c * 0x0101010101010101ULL;
	char *p = dst;

	if (n >= MUCH_BYTES) {
		set_words(&p, word, n / WORD_BYTES);
		n %= WORD_BYTES;
	}
	for (; n >= 4 * WORD_BYTES; n -= 4 * WORD_BYTES) {
		WORD(p) = word;
		WORD(p + 8) = word;
		WORD(p + 16) = word;
		WORD(p + 24) = word;
		p += 4 * WORD_BYTES;
		LOOP();
	}
	for (; n >= WORD_BYTES; n -= WORD_BYTES) {
		WORD(p) = word;
		p += WORD_BYTES;
		LOOP();
	}
	while (n--) {
		*p++ = (char)c;
		LOOP();
	}
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n >= WORD_BYTES && CONST_WORD(x) == CONST_WORD(y); n -= WORD_BYTES) {
		x += WORD_BYTES;
		y += WORD_BYTES;
	}
	for (; n; n--, x++, y++) {
		if (*x != *y)
			return *x - *y;
	}
	return 0;
}

size_t strlen(const char *s)
{
	const char *end = s;

	while (*end) {
		end++;
		LOOP();
	}
	return end - s;
}

size_t strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (u8)*a - (u8)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++) {
		if (*a != *b || !*a)
			return (u8)*a - (u8)*b;
	}
	return 0;
}

char *strchr(const char *s, int c)
{
	for (;; s++) {
		if (*s == (char)c)
			return (char *)s;
		if (!*s)
			return NULL;
	}
}

char *strrchr(const char *s, int c)
{
	const char *found = NULL;

	for (;; s++) {
		if (*s == (char)c)
			found = s;
		if (!*s)
			return (char *)found;
	}
}

ssize_t strscpy(char *dst, const char *src, size_t size)
{
	size_t n;

	if (!size)
		return -E2BIG;
	n = strnlen(src, size);
	if (n == size) {
		memcpy(dst, src, size - 1);
		dst[size - 1] = '\0';
		return -E2BIG;
	}
	memcpy(dst, src, n + 1);
	return n;
}

ssize_t strscpy_pad(char *dst, const char *src, size_t size)
{
	ssize_t n = strscpy(dst, src, size);

	if (n >= 0)
		memset(dst + n, 0, size - n);
	return n;
}
