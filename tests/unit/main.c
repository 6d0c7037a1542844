// SPDX-License-Identifier: BSD-2-Clause
/* Runs the tests of a program, which are in a section. */

#include "unit_test.h"

extern const struct CMUnitTest __start_unit_tests[] __attribute__((weak));
extern const struct CMUnitTest __stop_unit_tests[] __attribute__((weak));

/* test_interleave*.c have a main() of their own. */
__attribute__((weak)) int main(void)
{
	return _cmocka_run_group_tests("tests", __start_unit_tests,
				       __stop_unit_tests - __start_unit_tests, unit_tests_begin,
				       NULL);
}
