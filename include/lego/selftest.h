/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SELFTEST_H
#define LEGO_SELFTEST_H

/*
 * In-kernel suites (CONFIG_SELFTEST). "selftest=all" or "selftest=<glob>[,<glob>...]" over
 * "suite.name" runs them in a kernel thread before init, prints KTAP version 1
 * (Documentation/dev-tools/ktap.rst) and powers off with status 0, or 1 when a test failed or none
 * matched. Each suite also fails when it leaves anything behind (lego/leak.h).
 */

#include <lego/kernel.h>

struct selftest {
	const char *suite;
	const char *name;
	void (*run)(void);
};

/* A test is a function in process context, interrupts on. It fails if any EXPECT in it fails. */
#define SELFTEST(suite_, name_)                                                          \
	static void selftest_##suite_##_##name_(void);                                   \
	static const struct selftest selftest_entry_##suite_##_##name_ __used __section( \
		"selftests") __aligned(8) = { .suite = #suite_,                          \
					      .name = #name_,                            \
					      .run = selftest_##suite_##_##name_ };      \
	static void selftest_##suite_##_##name_(void)

/* Records and prints a failure as a KTAP diagnostic line. The test goes on. */
void selftest_fail(const char *file, int line, const char *what);
void selftest_fail_eq(const char *file, int line, const char *what, long long got, long long want);

#define EXPECT(cond)                                              \
	do {                                                      \
		if (!(cond))                                      \
			selftest_fail(__FILE__, __LINE__, #cond); \
	} while (0)

#define EXPECT_EQ(got, want)                                                                  \
	do {                                                                                  \
		long long _got = (long long)(got), _want = (long long)(want);                 \
		if (_got != _want)                                                            \
			selftest_fail_eq(__FILE__, __LINE__, #got " == " #want, _got, _want); \
	} while (0)

/* Like EXPECT, but returns from the test function. */
#define ASSERT(cond)                                              \
	do {                                                      \
		if (!(cond)) {                                    \
			selftest_fail(__FILE__, __LINE__, #cond); \
			return;                                   \
		}                                                 \
	} while (0)

/*
 * Runs the tests that the command line selects, and powers off. Returns at once if it selects none.
 */
void selftest_run(void);

/* Starts the crash of crash=<mode>: tests/kernel/crash.c. */
void crash_start(void);
void planted_leak_start(void);

/* Called by do_nmi(): crashes in an NMI, or does what a test wants to do in an NMI. */
void selftest_nmi(void);
extern void (*selftest_nmi_hook)(void);

#endif
