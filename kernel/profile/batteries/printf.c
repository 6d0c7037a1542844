// SPDX-License-Identifier: BSD-2-Clause
/*
 * printf for a kernel that has none: what the profilers' reports use, and no more. It needs no
 * other function, allocates nothing and may be called in any context.
 */

#include "printf.h"

struct output {
	char *buf;
	size_t size, len;
};

struct spec {
	_Bool left, zeros, alternate;
	int width, precision; /* precision -1: none */
	_Bool is_long;
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

static void put_number(struct output *out, struct spec *spec, unsigned long value, char type)
{
	unsigned int base = type == 'x' ? 16 : type == 'o' ? 8 : 10;
	char text[72], *end = text + sizeof(text), *at = end;
	_Bool negative = type == 'd' && (long)value < 0;
	_Bool has_prefix = spec->alternate && base == 16 && value;
	int width = spec->width - negative - 2 * has_prefix;

	if (negative)
		value = -value;
	do {
		*--at = "0123456789abcdef"[value % base];
	} while (value /= base);
	/* Zeros come behind the sign. */
	while (spec->zeros && !spec->left && end - at < width && at > text + 3)
		*--at = '0';
	spec->zeros = 0;
	if (has_prefix) {
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
	spec->zeros = 0;
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
			spec->left = 1;
		else if (*fmt == '0')
			spec->zeros = 1;
		else if (*fmt == '#')
			spec->alternate = 1;
		else
			break;
	}
	fmt = parse_number(fmt, &spec->width, args);
	if (*fmt == '.')
		fmt = parse_number(fmt + 1, &spec->precision, args);
	for (; *fmt == 'l' || *fmt == 'z'; fmt++)
		spec->is_long = 1;
	return fmt;
}

static void put_argument(struct output *out, struct spec *spec, char type, va_list *args)
{
	char c = type;

	if (type == 's') {
		put_string(out, spec, va_arg(*args, const char *));
	} else if (type == 'd') {
		put_number(out, spec, spec->is_long ? va_arg(*args, long) : va_arg(*args, int),
			   type);
	} else if (type == 'u' || type == 'x' || type == 'o') {
		put_number(out, spec,
			   spec->is_long ? va_arg(*args, unsigned long) :
					   va_arg(*args, unsigned int),
			   type);
	} else {
		if (type == 'c')
			c = va_arg(*args, int);
		put_field(out, spec, &c, 1);
	}
}

int battery_vsnprintf(char *buf, size_t size, const char *fmt, va_list args)
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
		if (!*fmt)
			break;
		put_argument(&out, &spec, *fmt, &copy);
	}
	va_end(copy);
	if (size)
		buf[out.len < size ? out.len : size - 1] = '\0';
	return out.len;
}

int battery_snprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = battery_vsnprintf(buf, size, fmt, args);
	va_end(args);
	return len;
}
