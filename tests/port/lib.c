// SPDX-License-Identifier: BSD-2-Clause
/* The parts of a C library that the kernel uses: memory, strings, printf. */

#include "kernel.h"

#define HEAP_BYTES (4ul << 20)

void *memset(void *dst, int c, size_t n)
{
	asm volatile("rep stosb" : "+D"(dst), "+c"(n) : "a"(c) : "memory");
	return (char *)dst - n;
}

void *memcpy(void *dst, const void *src, size_t n)
{
	void *to = dst;

	asm volatile("rep movsb" : "+D"(to), "+S"(src), "+c"(n) : : "memory");
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n--; x++, y++) {
		if (*x != *y)
			return *x - *y;
	}
	return 0;
}

size_t strlen(const char *s)
{
	size_t len = 0;

	while (s[len])
		len++;
	return len;
}

int strcmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return (u8)*a - (u8)*b;
}

/* Memory is never freed, so there is no free(). */
void *alloc(size_t size)
{
	static char heap[HEAP_BYTES] __attribute__((aligned(16)));
	static size_t used;
	u64 flags = irq_save();
	size_t at = (used + 15) & ~15ul;
	bool fits = size <= HEAP_BYTES - at;

	if (fits)
		used = at + size;
	irq_restore(flags);
	return fits ? heap + at : NULL;
}

/* The product has 128 bits. Returns all ones if the result does not fit. */
u64 mul_div(u64 a, u64 b, u64 c)
{
	u64 low, high, rest;

	asm("mulq %3" : "=a"(low), "=d"(high) : "a"(a), "r"(b) : "cc");
	if (high >= c)
		return ~0ul;
	asm("divq %4" : "=a"(low), "=d"(rest) : "a"(low), "d"(high), "r"(c) : "cc");
	return low;
}

struct output {
	char *buf;
	size_t size, len;
};

struct spec {
	bool left, zeros, alternate;
	int width, precision; /* precision -1: none */
	bool is_long;
};

static void put(struct output *out, char c)
{
	if (out->len + 1 < out->size)
		out->buf[out->len] = c;
	out->len++;
}

static void put_field(struct output *out, const struct spec *spec, const char *text, size_t len)
{
	int padding = spec->width - (int)len;

	for (; !spec->left && padding > 0; padding--)
		put(out, spec->zeros ? '0' : ' ');
	while (len--)
		put(out, *text++);
	for (; padding > 0; padding--)
		put(out, ' ');
}

static void put_number(struct output *out, const struct spec *spec, u64 value, char type)
{
	u32 base = type == 'x' ? 16 : type == 'o' ? 8 : 10;
	char text[32], *end = text + sizeof(text), *at = end;
	bool negative = type == 'd' && (s64)value < 0;

	if (negative)
		value = -value;
	do {
		*--at = "0123456789abcdef"[value % base];
	} while (value /= base);
	if (spec->alternate && base == 16) {
		*--at = 'x';
		*--at = '0';
	}
	if (negative)
		*--at = '-';
	put_field(out, spec, at, end - at);
}

static void put_string(struct output *out, struct spec *spec, const char *text)
{
	size_t len = 0;

	while (len != (size_t)spec->precision && text[len])
		len++;
	spec->zeros = false;
	put_field(out, spec, text, len);
}

static const char *parse_number(const char *fmt, int *number, va_list *args)
{
	*number = 0;
	if (*fmt == '*') {
		*number = va_arg(*args, int);
		return fmt + 1;
	}
	for (; *fmt >= '0' && *fmt <= '9'; fmt++)
		*number = *number * 10 + *fmt - '0';
	return fmt;
}

static const char *parse_spec(const char *fmt, struct spec *spec, va_list *args)
{
	*spec = (struct spec){ .precision = -1 };
	for (;; fmt++) {
		if (*fmt == '-')
			spec->left = true;
		else if (*fmt == '0')
			spec->zeros = true;
		else if (*fmt == '#')
			spec->alternate = true;
		else
			break;
	}
	fmt = parse_number(fmt, &spec->width, args);
	if (*fmt == '.')
		fmt = parse_number(fmt + 1, &spec->precision, args);
	for (; *fmt == 'l' || *fmt == 'z'; fmt++)
		spec->is_long = true;
	return fmt;
}

static void put_argument(struct output *out, struct spec *spec, char type, va_list *args)
{
	char c = type;

	if (type == 's') {
		put_string(out, spec, va_arg(*args, const char *));
	} else if (type == 'd') {
		put_number(out, spec, spec->is_long ? va_arg(*args, s64) : va_arg(*args, s32),
			   type);
	} else if (type == 'u' || type == 'x' || type == 'o') {
		put_number(out, spec, spec->is_long ? va_arg(*args, u64) : va_arg(*args, u32),
			   type);
	} else {
		if (type == 'c')
			c = va_arg(*args, int);
		put_field(out, spec, &c, 1);
	}
}

int vsnprintf(char *buf, size_t size, const char *fmt, va_list args)
{
	struct output out = { .buf = buf, .size = size };
	struct spec spec;
	va_list copy;

	va_copy(copy, args);
	for (; *fmt; fmt++) {
		if (*fmt != '%') {
			put(&out, *fmt);
			continue;
		}
		fmt = parse_spec(fmt + 1, &spec, &copy);
		put_argument(&out, &spec, *fmt, &copy);
	}
	va_end(copy);
	if (size)
		buf[out.len < size ? out.len : size - 1] = '\0';
	return out.len;
}

int snprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(buf, size, fmt, args);
	va_end(args);
	return len;
}
