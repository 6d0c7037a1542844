// SPDX-License-Identifier: BSD-2-Clause
/* printf for kernels that have none: the same text as the C library's. */

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../kernel/profile/batteries/printf.h"

static char wanted[256], made[256];

#define assert_same(...)                                                                      \
	do {                                                                                  \
		int _length = snprintf(wanted, sizeof(wanted), __VA_ARGS__);                  \
                                                                                              \
		assert_int_equal(battery_snprintf(made, sizeof(made), __VA_ARGS__), _length); \
		assert_string_equal(made, wanted);                                            \
	} while (0)

static void test_numbers(void **state)
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

static void test_text(void **state)
{
	assert_same("%s|%8s|%-8s|%.2s|%.*s|%-*s|", "abc", "abc", "abc", "abc", 1, "abc", 6, "abc");
	assert_same("%c%c%%", 'x', 'y');
	assert_same("%s", "");
	assert_int_equal(battery_snprintf(made, sizeof(made), "%.4s", "abcdefgh"), 4);
}

static void test_room(void **state)
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
static void test_cut_format(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_cut_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
