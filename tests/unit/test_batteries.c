// SPDX-License-Identifier: BSD-2-Clause
/* printf, strings and a console for kernels that have none: the same as in the C library. */

#include <limits.h>
#include <stdio.h>

#include "unit_test.h"

#include "../../kernel/profile/batteries/console.h"
#include "../../kernel/profile/batteries/cpu_time.h"
#include "../../kernel/profile/batteries/printf.h"
#include "../../kernel/profile/batteries/string.h"

static char wanted[256], made[256];

#define assert_same(...)                                                                      \
	do {                                                                                  \
		int _length = snprintf(wanted, sizeof(wanted), __VA_ARGS__);                  \
                                                                                              \
		assert_int_equal(battery_snprintf(made, sizeof(made), __VA_ARGS__), _length); \
		assert_string_equal(made, wanted);                                            \
	} while (0)

HOST_TEST(numbers)
{
	static const long values[] = { 0, 1, -1, 9, 10, 4095, INT_MAX, LONG_MAX, LONG_MIN };

	for (unsigned int i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		int value = values[i];
		long whole = values[i];

		assert_same("%d %u %x %#x %o", value, value, value, value, value);
		assert_same("%ld %lu %lx %lo", whole, whole, whole, whole);
		assert_same("[%08d] [%-08d] [%#010x] [%060ld]", value, value, value, whole);
		assert_same("%lld %llu %zu", (long long)whole, (long long)whole, (size_t)whole);
		assert_same("[%8d] [%-8d] [%3lu] [%016lx] [%*d]", value, value, whole, whole, 7,
			    value);
	}
	assert_same("%06lu.%03u", 42l, 7);
}

HOST_TEST(text)
{
	assert_same("%s|%8s|%-8s|%.2s|%.*s|%-*s|", "abc", "abc", "abc", "abc", 1, "abc", 6, "abc");
	assert_same("%c%c%%", 'x', 'y');
	assert_same("%s", "");
	assert_int_equal(battery_snprintf(made, sizeof(made), "%.4s", "abcdefgh"), 4);
}

HOST_TEST(room)
{
	for (size_t size = 0; size < 8; size++) {
		made[size] = '!';
		assert_int_equal(battery_snprintf(made, size, "%s%d", "abc", 42), 5);
		snprintf(wanted, size, "%s%d", "abc", 42);
		if (size)
			assert_string_equal(made, wanted);
		assert_int_equal(made[size], '!');
	}
}

/* A format that ends too early reads nothing behind it. */
HOST_TEST(cut_format)
{
	static const char *const formats[] = { "a%", "a%-", "a%08l", "a%." };

	for (unsigned int i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const char *volatile format = formats[i];
		char copy[8];

		snprintf(copy, sizeof(copy), "%s", format);
		assert_int_equal(battery_snprintf(made, sizeof(made), copy), 1);
		assert_string_equal(made, "a");
	}
}

HOST_TEST(memory)
{
	char text[] = "0123456789", copy[11];

	assert_ptr_equal(memcpy(copy, text, 11), copy);
	assert_string_equal(copy, text);
	assert_ptr_equal(memset(copy + 2, 'x', 3), copy + 2);
	assert_string_equal(copy, "01xxx56789");
	/* Overlapping: to higher, lower and the same addresses. */
	assert_ptr_equal(memmove(text + 2, text, 6), text + 2);
	assert_string_equal(text, "0101234589");
	memmove(text, text + 3, 6);
	assert_string_equal(text, "1234584589");
	memmove(text, text, 10);
	assert_string_equal(text, "1234584589");
	assert_int_equal(memcmp("abc", "abd", 2), 0);
	assert_true(memcmp("abc", "abd", 3) < 0);
	assert_true(memcmp("a\xff", "a\1", 2) > 0);
}

HOST_TEST(strings)
{
	assert_int_equal(strlen(""), 0);
	assert_int_equal(strlen("abc"), 3);
	assert_int_equal(strcmp("abc", "abc"), 0);
	assert_true(strcmp("abc", "ab") > 0);
	assert_true(strcmp("ab", "abc") < 0);
	assert_true(strcmp("\xff", "a") > 0);
	assert_int_equal(strncmp("abc", "abd", 2), 0);
	assert_true(strncmp("abc", "abd", 3) < 0);
	assert_int_equal(strncmp("ab", "ab", 9), 0);
}

static size_t nr_made;

static void put(char c)
{
	made[nr_made++ % sizeof(made)] = c;
}

static int print(unsigned long ns, bool in_panic, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	nr_made = 0;
	len = battery_console_vprintf(put, ns, in_panic, fmt, args);
	va_end(args);
	made[nr_made] = '\0';
	return len;
}

/* Interrupts cannot be switched off here, so only the line is checked, not its lock. */
HOST_TEST(console)
{
	assert_int_equal(print(1234567999, true, "%s %d\n", "line", 2), 22);
	assert_string_equal(made, "[    1.234567] line 2\n");
}

/* A thread that runs from 100 to 130 and from 170 on; another has the CPU meanwhile. */
HOST_TEST(cpu_time)
{
	struct battery_cpu_time one = { 0 }, other = { 0 };

	battery_time_begin(&one, 100);
	assert_int_equal(battery_time_on(&one, 120), 20);
	assert_int_equal(battery_time_off(&one), 100);
	battery_time_switch(&one, &other, 130);
	assert_int_equal(battery_time_on(&one, 150), 30);
	assert_int_equal(battery_time_on(&other, 150), 20);
	assert_int_equal(battery_time_off(&other), 130);
	battery_time_switch(&other, &one, 170);
	assert_int_equal(battery_time_on(&one, 175), 35);
	assert_int_equal(battery_time_off(&one), 140);
	assert_int_equal(battery_time_on(&other, 1000), 40);
}
