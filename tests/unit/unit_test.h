/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

/* cmocka, and tests that need no list: main.c runs those of a program in their order. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if __has_attribute(no_reorder)
#define IN_ORDER no_reorder /* gcc may write variables in another order, clang does not */
#else
#define IN_ORDER
#endif

/* A test with what runs before and after it, or NULL. */
#define HOST_TEST_WITH(name_, setup_, teardown_)                                       \
	static void test_##name_(void **state);                                        \
	static const struct CMUnitTest test_entry_##name_                              \
		__attribute__((used, aligned(8), section("unit_tests"), IN_ORDER)) = { \
			.name = #name_,                                                \
			.test_func = test_##name_,                                     \
			.setup_func = setup_,                                          \
			.teardown_func = teardown_,                                    \
		};                                                                     \
	static void test_##name_(void **state)
#define HOST_TEST(name_) HOST_TEST_WITH(name_, NULL, NULL)

/* Runs before the first test of a program that defines it. Returns 0. */
int unit_tests_begin(void **state) __attribute__((weak));

#endif
