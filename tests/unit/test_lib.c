// SPDX-License-Identifier: BSD-2-Clause
/* Tests kernel/lib/ against the host's C library and plain arithmetic. See lego_names.h. */

#include <stdio.h>
#include <stdlib.h>

#include "unit_test.h"

#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/math64.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/sort.h>
#include <lego/string.h>
#include <lego/text.h>

static u64 random_state = 1;

/* xorshift64: the same numbers in each run. */
static u64 random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Numbers of all sizes, not only large ones. */
static u64 random_sized_u64(void)
{
	return random_u64() >> (random_u64() % 64);
}

HOST_TEST(mul_div)
{
	static const u64 edges[] = { 0,
				     1,
				     2,
				     3,
				     10000,
				     0xffffffff,
				     0x100000000,
				     0x100000001,
				     0x7fffffffffffffff,
				     0x8000000000000000,
				     ~0ull - 1,
				     ~0ull };
	unsigned int n = ARRAY_SIZE(edges);

	for (u32 i = 0; i < 200000 + n * n * n; i++) {
		u32 e = i - 200000;
		bool edge = i >= 200000;
		u64 a = edge ? edges[e % n] : random_sized_u64();
		u64 b = edge ? edges[e / n % n] : random_sized_u64();
		u64 c = edge ? edges[e / n / n] : random_sized_u64();
		unsigned __int128 quotient;

		if (!c)
			continue;
		quotient = (unsigned __int128)a * b / c;
		if (quotient >> 64)
			quotient = ~0ull;
		assert_int_equal(mul_div_u64(a, b, c), (u64)quotient);
	}
}

struct element {
	u64 key;
	char payload[5];
};

static int compare_elements(const void *a_, const void *b_)
{
	const struct element *a = a_, *b = b_;

	return (a->key > b->key) - (a->key < b->key);
}

HOST_TEST(sort)
{
	static struct element elements[1000];

	for (u32 nr = 0; nr < ARRAY_SIZE(elements); nr = nr * 3 / 2 + 1) {
		u64 sum = 0, sorted_sum = 0;

		for (u32 i = 0; i < nr; i++) {
			elements[i].key = random_u64() % (nr + 1);
			elements[i].payload[4] = elements[i].key;
			sum += elements[i].key * elements[i].key;
		}
		sort(elements, nr, sizeof(elements[0]), compare_elements);
		for (u32 i = 0; i < nr; i++) {
			assert_true(i == 0 || elements[i - 1].key <= elements[i].key);
			assert_int_equal(elements[i].payload[4], (char)elements[i].key);
			sorted_sum += elements[i].key * elements[i].key;
		}
		assert_int_equal(sum, sorted_sum);
	}
}

HOST_TEST(glob)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{ "", "", true },	   { "", "a", false },	      { "*", "", true },
		{ "*", "abc", true },	   { "a*c", "abbc", true },   { "a*c", "abcb", false },
		{ "?", "", false },	   { "?", "a", true },	      { "a?c", "abc", true },
		{ "a?c", "ac", false },	   { "[a-c]x", "bx", true },  { "[a-c]x", "dx", false },
		{ "[!a-c]x", "dx", true }, { "[!a-c]", "b", false },  { "[]]", "]", true },
		{ "[", "[", true },	   { "[a", "[a", true },      { "[a", "a", false },
		{ "*a*a*a", "aaa", true }, { "*a*a*a", "aa", false }, { "**b", "aab", true },
		{ "a,b", "a,b", true },	   { "[a-]", "-", true },     { "*.c", "x.c.c", true },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(glob_match(cases[i].pattern, cases[i].text), cases[i].matches);
	assert_true(glob_match_list("a,b*,c", "bcd"));
	assert_true(glob_match_list("a,b*,c", "c"));
	assert_false(glob_match_list("a,b*,c", "d"));
	assert_false(glob_match_list("a,b*,c", "a,b"));
	/* This must not take exponential time. */
	assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*b",
				"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

HOST_TEST(parse_u64)
{
	static const char *const bad[] = { "",	 "-1", "+1",  " 1",  "1 ", "0x",
					   "x1", "1a", "0xg", "1.0", "--", "0x-1" };
	u64 value;

	assert_int_equal(parse_u64("0", &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(parse_u64("010", &value), 0);
	assert_int_equal(value, 10);
	assert_int_equal(parse_u64("0xfF", &value), 0);
	assert_int_equal(value, 255);
	assert_int_equal(parse_u64("18446744073709551615", &value), 0);
	assert_int_equal(value, ~0ull);
	assert_int_equal(parse_u64("18446744073709551616", &value), -ERANGE);
	assert_int_equal(parse_u64("0x10000000000000000", &value), -ERANGE);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_u64(bad[i], &value), -EINVAL);
}

/* Both functions must print the same, into a buffer of each size. */
static void same_print(const char *fmt, ...)
{
	char ours[128], theirs[128];
	va_list args;

	for (size_t size = 0; size < sizeof(ours); size = size * 2 + 1) {
		int our_len, their_len;

		__builtin_memset(ours, 'x', sizeof(ours));
		__builtin_memset(theirs, 'x', sizeof(theirs));
		va_start(args, fmt);
		our_len = lego_vsnprintf(ours, size, fmt, args);
		va_end(args);
		va_start(args, fmt);
		their_len = __builtin_vsnprintf(theirs, size, fmt, args);
		va_end(args);
		assert_int_equal(our_len, their_len);
		assert_memory_equal(ours, theirs, sizeof(ours));
	}
}

HOST_TEST(printf)
{
	static const char *const flags[] = { "", "-", "0", "+", " ", "#", "-0", "+0", "- ", "#0" };
	static const char *const widths[] = { "", "1", "7", "20", ".0", ".1", "12.5", "3.9" };
	static const long values[] = { 0,   1,	   -1,	 9,	    10,	       255,
				       256, 65535, -128, INT32_MIN, INT64_MAX, INT64_MIN };
	char fmt[32];

	for (u32 f = 0; f < ARRAY_SIZE(flags); f++) {
		for (u32 w = 0; w < ARRAY_SIZE(widths); w++) {
			for (const char *c = "diuxXo"; *c; c++) {
				/*
				 * + and space are tested with %d only. # has no meaning for decimal
				 * conversions.
				 */
				if ((flags[f][0] == '+' || flags[f][0] == ' ') && *c != 'd')
					continue;
				if (flags[f][0] == '#' && (*c == 'd' || *c == 'i' || *c == 'u'))
					continue;
				__builtin_snprintf(fmt, sizeof(fmt), "<%%%s%sl%c>", flags[f],
						   widths[w], *c);
				for (u32 v = 0; v < ARRAY_SIZE(values); v++)
					same_print(fmt, values[v]);
			}
			if (flags[f][0] == '-' || !flags[f][0]) {
				__builtin_snprintf(fmt, sizeof(fmt), "<%%%s%ss>", flags[f],
						   widths[w]);
				same_print(fmt, "some text");
				same_print(fmt, "");
			}
		}
	}
	same_print("%d%% of %s%c", 100, "all", '!');
	same_print("%*d|%-*d|%.*s", 5, 42, 5, 42, 2, "xyz");
	same_print("%hhd %hu %zu %llx", 300, 70000, (size_t)5, ~0ull);
	same_print("%016lx", 0xffffffff81000000ul);
	same_print("%3u.%02u %4lu.%09lu", 7u, 5u, 3ul, 7ul);
}

HOST_TEST(scnprintf_returns_stored_length)
{
	char buf[4];

	assert_int_equal(lego_scnprintf(buf, sizeof(buf), "%s", "abcdef"), 3);
	assert_string_equal(buf, "abc");
	assert_int_equal(lego_scnprintf(buf, sizeof(buf), "%s", "ab"), 2);
	assert_int_equal(lego_scnprintf(buf, 0, "%s", "ab"), 0);
}

/* A name with control characters stays on its line, quoted, and cannot imitate kernel messages. */
HOST_TEST(escaped_names)
{
	char text[64];

	assert_int_equal(lego_snprintf(text, sizeof(text), "%pE", "a name, 1"), 9);
	assert_string_equal(text, "a name, 1");
	assert_int_equal(lego_snprintf(text, sizeof(text), "<%pE>", "a\nb\t\"c\" \\ \x7f\xc3\x1b["),
			 34);
	assert_string_equal(text, "<a\\x0ab\\x09\\\"c\\\" \\\\ \\x7f\\xc3\\x1b[>");
	lego_snprintf(text, sizeof(text), "%-6pE|%7pE|%3pE|%pE", "a\n", "a\n", "a\n", "");
	assert_string_equal(text, "a\\x0a |  a\\x0a|a\\x0a|");
	assert_int_equal(lego_snprintf(text, 4, "%pE", "\n\n"), 8); /* truncated like other text */
	assert_string_equal(text, "\\x0");
	assert_int_equal(escape_bytes(text, sizeof(text), "a\0b\n", 4), 10);
	assert_string_equal(text, "a\\x00b\\x0a");
	lego_snprintf(text, sizeof(text), "%p", (void *)0x1234); /* %p without a suffix */
	assert_string_equal(text, "0x0000000000001234");
}

/* Every length up to a few words, every alignment, and every overlap. */
HOST_TEST(memory)
{
	u8 ours[128], theirs[128];

	for (size_t len = 0; len < 70; len++) {
		for (size_t from = 0; from < 24; from++) {
			for (size_t to = 0; to < 24; to++) {
				for (u32 i = 0; i < sizeof(ours); i++)
					ours[i] = theirs[i] = i * 7 + 1;
				lego_memmove(ours + to, ours + from, len);
				__builtin_memmove(theirs + to, theirs + from, len);
				assert_memory_equal(ours, theirs, sizeof(ours));
			}
			lego_memset(ours + from, 0x1a5, len);
			__builtin_memset(theirs + from, 0x1a5, len);
			assert_memory_equal(ours, theirs, sizeof(ours));
			lego_memcpy(ours, theirs + from, len);
			assert_int_equal(lego_memcmp(ours, theirs + from, len), 0);
			if (len) {
				ours[len - 1]++;
				assert_int_not_equal(lego_memcmp(ours, theirs + from, len), 0);
				ours[len - 1]--;
			}
		}
	}
	assert_true(lego_memcmp("\xff", "\x01", 1) > 0);
	assert_true(lego_memcmp("aaaaaaaa\x01", "aaaaaaaa\x80", 9) < 0);
}

HOST_TEST(strings)
{
	const char *text = "a.b.c";
	char buf[4];

	assert_int_equal(lego_strlen(""), 0);
	assert_int_equal(lego_strnlen("abc", 2), 2);
	assert_int_equal(lego_strnlen("abc", 9), 3);
	assert_true(lego_strcmp("\xff", "a") > 0);
	assert_int_equal(lego_strncmp("abc", "abd", 2), 0);
	assert_true(lego_strncmp("abc", "abd", 3) < 0);
	assert_int_equal(lego_strncmp("a", "a", 5), 0);
	assert_ptr_equal(lego_strchr(text, '.'), text + 1);
	assert_ptr_equal(lego_strchr(text, '\0'), text + 5);
	assert_ptr_equal(lego_strrchr(text, '.'), text + 3);
	assert_null(lego_strrchr(text, 'x'));
	assert_int_equal(strscpy(buf, "abc", sizeof(buf)), 3);
	assert_string_equal(buf, "abc");
	assert_int_equal(strscpy(buf, "abcd", sizeof(buf)), -E2BIG);
	assert_string_equal(buf, "abc");
	assert_int_equal(strscpy(buf, "x", 0), -E2BIG);
	assert_int_equal(strscpy_pad(buf, "x", sizeof(buf)), 1);
	assert_memory_equal(buf, "x\0\0\0", sizeof(buf));
	assert_int_equal(strscpy_pad(buf, "abcd", sizeof(buf)), -E2BIG);
	assert_string_equal(buf, "abc");
}

/*
 * kmalloc() for texts: fills memory with '#', fails above MAX_KMALLOC, and changes the string being
 * printed, as another CPU may.
 */
#define MAX_KMALLOC (1 << 20)

static char name[2000];
static size_t next_name_len;
static int nr_kmallocs;

void *kmalloc(size_t size)
{
	if (size > MAX_KMALLOC)
		return NULL;
	nr_kmallocs++;
	memset(name, 'x', next_name_len);
	name[next_name_len] = '\0';
	return memset(malloc(size), '#', size);
}

void kfree(const void *ptr)
{
	free((void *)ptr);
}

static void expect_text(struct text *text, const char *first, size_t nr_x)
{
	char read[2000];

	assert_false(text->failed);
	assert_int_equal(text->len, strlen(first) + nr_x);
	assert_int_equal(text_read(text, 0, read, sizeof(read)), text->len);
	assert_memory_equal(read, first, strlen(first));
	for (size_t i = strlen(first); i < text->len; i++)
		assert_int_equal(read[i], 'x');
}

HOST_TEST(text_of_a_string_that_changes)
{
	struct text text = { 0 };

	next_name_len = 10;
	text_printf(&text, "first ");
	expect_text(&text, "first ", 0);
	memset(name, 'x', 1000);
	text_printf(&text, "%s", name);
	expect_text(&text, "first ", 10);
	text_free(&text);

	/* The string grows at the first allocation, so that a second one is needed. */
	next_name_len = 3;
	text_printf(&text, "%s", "");
	next_name_len = 1500;
	memset(name, 'x', 700);
	name[700] = '\0';
	nr_kmallocs = 0;
	text_printf(&text, "%s", name);
	assert_int_equal(nr_kmallocs, 2);
	expect_text(&text, "", 1500);
	text_free(&text);
}

/* A text much longer than one kmalloc(), read in chunks of odd sizes. */
HOST_TEST(long_text)
{
	enum {
		NR_LINES = 1000000
	};
	struct text text = { 0 };
	char read[1009], line[16];
	size_t pos = 0, nr = 0;
	ssize_t n;

	for (u32 i = 0; i < NR_LINES; i++)
		text_printf(&text, "%u\n", i);
	text_append(&text, "end", 3);
	assert_false(text.failed);
	while ((n = text_read(&text, pos, read, sizeof(read) - pos % 7)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			line[nr++ % sizeof(line)] = read[i];
			if (read[i] == '\n')
				nr = 0;
		}
		pos += n;
	}
	assert_int_equal(pos, text.len);
	/* 10 numbers of one digit, 90 of two, and so on, each with a newline. */
	assert_int_equal(pos, 10 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 90000 * 6 + 900000 * 7 + 3);
	assert_int_equal(nr, 3);
	assert_memory_equal(line, "end", 3);
	text_free(&text);
	assert_null(text.first);
}

static u32 next_line, nr_ends;

static bool print_line(struct text *text, void *last)
{
	if (next_line > *(u32 *)last)
		return false;
	text_printf(text, "%u\n", next_line++);
	return true;
}

static void end_lines(void *last)
{
	nr_ends++;
}

/* Only one line at a time is in memory. Reads may go forward, but not back. */
HOST_TEST(text_made_while_it_is_read)
{
	struct text text = { 0 };
	u32 last = 12345;
	char read[100];

	text_printf(&text, "first\n");
	next_line = 10000;
	nr_ends = 0;
	text_stream(&text, print_line, end_lines, &last);
	assert_int_equal(text_read(&text, 0, read, 3), 3);
	assert_int_equal(next_line, 10000);
	assert_int_equal(text_read(&text, 3, read, 7), 7);
	assert_memory_equal(read, "st\n1000", 7);
	assert_int_equal(text_read(&text, 6, read, 6), 6);
	assert_memory_equal(read, "10000\n", 6);
	assert_int_equal(next_line, 10001);
	assert_int_equal(text.len, 6);
	assert_int_equal(text_read(&text, 5, read, 1), -EINVAL);
	/* Reads far ahead, the end, and behind the end. */
	assert_int_equal(text_read(&text, 6 + 6 * 2345, read, 100), 6);
	assert_memory_equal(read, "12345\n", 6);
	assert_int_equal(nr_ends, 1);
	assert_int_equal(text_read(&text, 6 + 6 * 2346, read, 100), 0);
	assert_int_equal(text_read(&text, 6 + 6 * 2346 + 100, read, 100), 0);
	text_free(&text);
	assert_int_equal(nr_ends, 1);
	/* Frees a stream that was not read to its end. */
	text_stream(&text, print_line, end_lines, &last);
	text_free(&text);
	assert_int_equal(nr_ends, 2);
	assert_int_equal(text_read(&text, 0, read, 100), 0);
}
