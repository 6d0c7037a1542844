// SPDX-License-Identifier: BSD-2-Clause
/*
 * printf without floating point. Output goes through put_char(), which also counts the bytes that
 * do not fit. Digits are produced backwards, then a number is laid out as: spaces, sign or 0x,
 * zeros, digits, spaces. An unknown conversion is printed unchanged.
 *
 * %pE prints names that programs and files choose, which may contain any bytes, including newlines
 * and terminal escapes. It escapes all bytes that could forge a line of the log or of a file in
 * /proc.
 */

#include <lego/printk.h>

#include <lego/kernel.h>
#include <lego/string.h>

struct output {
	char *buf;
	size_t size;
	size_t len; /* of the whole output, stored or not */
};

enum length {
	LENGTH_CHAR,
	LENGTH_SHORT,
	LENGTH_INT,
	LENGTH_LONG
};

struct spec {
	bool left, zero, plus, space, alt;
	int width;
	int precision; /* -1: none */
	enum length length;
	char conversion;
};

static void put_char(struct output *out, char c)
{
	if (out->len < out->size)
		out->buf[out->len] = c;
	out->len++;
}

static void put_repeated(struct output *out, char c, int nr)
{
	for (; nr > 0; nr--)
		put_char(out, c);
}

static void put_text(struct output *out, const struct spec *spec, const char *text, int len)
{
	int pad = spec->width - len;

	if (!spec->left)
		put_repeated(out, ' ', pad);
	for (int i = 0; i < len; i++)
		put_char(out, text[i]);
	if (spec->left)
		put_repeated(out, ' ', pad);
}

static void put_number(struct output *out, const struct spec *spec, u64 value, const char *sign,
		       unsigned int base)
{
	const char *digits = spec->conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	int sign_len = strlen(sign), nr_zeros, pad;
	char reversed[24]; /* at most 22 octal digits */
	int nr = 0;

	/* As in C, 0 with precision 0 has no digits. */
	for (; value || (!nr && spec->precision); value /= base) {
		reversed[nr++] = digits[value % base];
		if (!value)
			break;
	}

	nr_zeros = spec->precision > nr ? spec->precision - nr : 0;
	if (spec->alt && base == 8 && !nr_zeros && (!nr || reversed[nr - 1] != '0'))
		nr_zeros = 1;
	pad = spec->width - sign_len - nr_zeros - nr;
	if (spec->zero && !spec->left && spec->precision < 0 && pad > 0) {
		nr_zeros += pad;
		pad = 0;
	}

	if (!spec->left)
		put_repeated(out, ' ', pad);
	for (; *sign; sign++)
		put_char(out, *sign);
	put_repeated(out, '0', nr_zeros);
	while (nr)
		put_char(out, reversed[--nr]);
	if (spec->left)
		put_repeated(out, ' ', pad);
}

static const char *read_flags(const char *fmt, struct spec *spec)
{
	for (;; fmt++) {
		switch (*fmt) {
		case '-':
			spec->left = true;
			break;
		case '0':
			spec->zero = true;
			break;
		case '+':
			spec->plus = true;
			break;
		case ' ':
			spec->space = true;
			break;
		case '#':
			spec->alt = true;
			break;
		default:
			return fmt;
		}
	}
}

static const char *read_decimal(const char *fmt, int *value)
{
	*value = 0;
	for (; *fmt >= '0' && *fmt <= '9'; fmt++) {
		if (*value < 100000)
			*value = *value * 10 + (*fmt - '0');
	}
	return fmt;
}

static const char *read_length(const char *fmt, struct spec *spec)
{
	spec->length = LENGTH_INT;
	if (*fmt == 'h') {
		spec->length = LENGTH_SHORT;
		if (*++fmt != 'h')
			return fmt;
		spec->length = LENGTH_CHAR;
		return fmt + 1;
	}
	if (*fmt == 'l') {
		spec->length = LENGTH_LONG;
		return *++fmt == 'l' ? fmt + 1 : fmt;
	}
	if (*fmt == 'z') {
		spec->length = LENGTH_LONG;
		return fmt + 1;
	}
	return fmt;
}

static s64 narrow_signed(s64 value, enum length length)
{
	switch (length) {
	case LENGTH_CHAR:
		return (signed char)value;
	case LENGTH_SHORT:
		return (short)value;
	case LENGTH_INT:
		return (int)value;
	default:
		return value;
	}
}

static u64 narrow_unsigned(u64 value, enum length length)
{
	switch (length) {
	case LENGTH_CHAR:
		return (unsigned char)value;
	case LENGTH_SHORT:
		return (unsigned short)value;
	case LENGTH_INT:
		return (unsigned int)value;
	default:
		return value;
	}
}

static void put_signed(struct output *out, const struct spec *spec, s64 value)
{
	const char *sign = value < 0 ? "-" : spec->plus ? "+" : spec->space ? " " : "";

	put_number(out, spec, value < 0 ? -(u64)value : (u64)value, sign, 10);
}

static void put_unsigned(struct output *out, const struct spec *spec, u64 value)
{
	const char *prefix = "";
	unsigned int base = 10;

	if (spec->conversion == 'x' || spec->conversion == 'X')
		base = 16;
	else if (spec->conversion == 'o')
		base = 8;
	if (base == 16 && spec->alt && value)
		prefix = spec->conversion == 'X' ? "0X" : "0x";
	put_number(out, spec, value, prefix, base);
}

static void put_string(struct output *out, const struct spec *spec, const char *s)
{
	if (!s)
		s = "(null)";
	put_text(out, spec, s, spec->precision < 0 ? strlen(s) : strnlen(s, spec->precision));
}

static void put_escaped_bytes(struct output *out, const char *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		u8 byte = bytes[i];

		if (byte >= ' ' && byte <= '~') {
			if (byte == '"' || byte == '\\')
				put_char(out, '\\');
			put_char(out, byte);
		} else {
			put_char(out, '\\');
			put_char(out, 'x');
			put_char(out, digits[byte >> 4]);
			put_char(out, digits[byte & 15]);
		}
	}
}

/* Prints an escaped name. The name of a running program may change between the two passes. */
static void put_escaped(struct output *out, const struct spec *spec, const char *name)
{
	struct output counted = { 0 };
	size_t n = strlen(name);
	int pad;

	put_escaped_bytes(&counted, name, n);
	pad = spec->width - (int)counted.len;
	if (!spec->left)
		put_repeated(out, ' ', pad);
	put_escaped_bytes(out, name, n);
	if (spec->left)
		put_repeated(out, ' ', pad);
}

/* Prints a pointer as 0x and 16 digits. */
static void put_pointer(struct output *out, const struct spec *spec, const void *ptr)
{
	struct spec hex = *spec;

	hex.conversion = 'x';
	hex.precision = 16;
	put_number(out, &hex, (uintptr_t)ptr, "0x", 16);
}

/* Parses the text after a '%'. Returns the place of the conversion character. */
static const char *read_spec(const char *fmt, struct spec *spec, int star[2])
{
	fmt = read_flags(fmt, spec);
	if (*fmt == '*') {
		star[0] = 1;
		fmt++;
	} else {
		fmt = read_decimal(fmt, &spec->width);
	}
	spec->precision = -1;
	if (*fmt == '.') {
		if (*++fmt == '*') {
			star[1] = 1;
			fmt++;
		} else {
			fmt = read_decimal(fmt, &spec->precision);
		}
	}
	fmt = read_length(fmt, spec);
	spec->conversion = *fmt;
	return fmt;
}

static void set_width(struct spec *spec, int width)
{
	if (width < 0) {
		spec->left = true;
		width = width == INT32_MIN ? 0 : -width;
	}
	spec->width = width;
}

int vsnprintf(char *buf, size_t size, const char *fmt, va_list args)
{
	struct output out = { .buf = buf, .size = size };
	bool wide;

	for (; *fmt; fmt++) {
		const char *percent = fmt;
		struct spec spec = { 0 };
		int star[2] = { 0, 0 };
		char c;

		if (*fmt != '%') {
			put_char(&out, *fmt);
			continue;
		}
		fmt = read_spec(fmt + 1, &spec, star);
		if (star[0])
			set_width(&spec, va_arg(args, int));
		if (star[1])
			spec.precision = max(va_arg(args, int), -1);
		wide = spec.length == LENGTH_LONG;

		switch (spec.conversion) {
		case 'd':
		case 'i':
			put_signed(&out, &spec,
				   wide ? va_arg(args, long) :
					  narrow_signed(va_arg(args, int), spec.length));
			break;
		case 'u':
		case 'x':
		case 'X':
		case 'o':
			put_unsigned(&out, &spec,
				     wide ? va_arg(args, unsigned long) :
					    narrow_unsigned(va_arg(args, unsigned int),
							    spec.length));
			break;
		case 'c':
			c = va_arg(args, int);
			put_text(&out, &spec, &c, 1);
			break;
		case 's':
			put_string(&out, &spec, va_arg(args, const char *));
			break;
		case 'p':
			if (fmt[1] == 'E') {
				fmt++;
				put_escaped(&out, &spec, va_arg(args, const char *));
			} else {
				put_pointer(&out, &spec, va_arg(args, const void *));
			}
			break;
		case '%':
			put_char(&out, '%');
			break;
		default:
			for (; percent < fmt; percent++)
				put_char(&out, *percent);
			if (!*fmt)
				fmt--;
			else
				put_char(&out, *fmt);
			break;
		}
	}
	if (size)
		buf[min(out.len, size - 1)] = '\0';
	return out.len;
}

size_t escape_bytes(char *buf, size_t size, const char *bytes, size_t n)
{
	struct output out = { .buf = buf, .size = size };

	put_escaped_bytes(&out, bytes, n);
	if (size)
		buf[min(out.len, size - 1)] = '\0';
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

int scnprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	size_t len;

	va_start(args, fmt);
	len = vsnprintf(buf, size, fmt, args);
	va_end(args);
	return size ? min(len, size - 1) : 0;
}
