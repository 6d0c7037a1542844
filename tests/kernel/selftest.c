// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs the suites, in the order in which the linker put their first tests. A suite is a KTAP test;
 * its tests are subtests, indented by four spaces. The last subtest compares the kernel's memory
 * use with that before the suite. Every line goes through printk, so a reader has to remove the
 * time prefix.
 */

#include <lego/selftest.h>

#ifdef CONFIG_PROFILE_MEMORY_CHAINS
#include "../../kernel/profile/memory/kernel_chains.h"
#endif

#include <lego/boot.h>
#include <lego/errno.h>
#include <lego/leak.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/string.h>
#include <lego/time.h>

extern const struct selftest __start_selftests[], __stop_selftests[];

#define for_each_selftest(test) for (test = __start_selftests; test < __stop_selftests; test++)

/* Prefix of suites that must fail; "all" leaves them out. */
#define BROKEN "broken_"

static const char *wanted;	 /* patterns; NULL: run no tests */
static unsigned int nr_failures; /* of the current test */

void selftest_fail(const char *file, int line, const char *what)
{
	nr_failures++;
	printk("    # %s:%d: failed: %s\n", file, line, what);
}

void selftest_fail_eq(const char *file, int line, const char *what, long long got, long long want)
{
	nr_failures++;
	printk("    # %s:%d: failed: %s: got %lld (%#llx), want %lld (%#llx)\n", file, line, what,
	       got, (unsigned long long)got, want, (unsigned long long)want);
}

static bool is_wanted(const struct selftest *test)
{
	char full_name[128];

	if (!strcmp(wanted, "all"))
		return strncmp(test->suite, BROKEN, strlen(BROKEN));
	snprintf(full_name, sizeof(full_name), "%s.%s", test->suite, test->name);
	return glob_match_list(wanted, full_name) || glob_match_list(wanted, test->suite);
}

/* Returns whether this is the first wanted test of its suite. */
static bool leads_suite(const struct selftest *leader)
{
	const struct selftest *test;

	if (!is_wanted(leader))
		return false;
	for (test = __start_selftests; test < leader; test++) {
		if (!strcmp(test->suite, leader->suite) && is_wanted(test))
			return false;
	}
	return true;
}

static bool belongs(const struct selftest *test, const struct selftest *leader)
{
	return !strcmp(test->suite, leader->suite) && is_wanted(test);
}

static unsigned int count_suites(void)
{
	const struct selftest *test;
	unsigned int nr = 0;

	for_each_selftest(test)
		nr += leads_suite(test);
	return nr;
}

static bool run_test(const struct selftest *test, unsigned int number)
{
	u64 start_ns = clock_monotonic_ns();

	nr_failures = 0;
	test->run();
	printk("    # %s took %llu us\n", test->name,
	       (unsigned long long)((clock_monotonic_ns() - start_ns) / NSEC_PER_USEC));
	printk("    %s %u %s\n", nr_failures ? "not ok" : "ok", number, test->name);
	return !nr_failures;
}

static bool run_leak_check(const struct leak_counts *before, unsigned int number)
{
	bool ok = leak_check(before);

	printk("    %s %u nothing_is_left_over\n", ok ? "ok" : "not ok", number);
	return ok;
}

static bool run_suite(const struct selftest *leader, unsigned int number)
{
	unsigned int nr_tests = 1, nr_passed = 0, nr_run = 0;
	const struct selftest *test;
	struct leak_counts counts;

	for_each_selftest(test)
		nr_tests += belongs(test, leader);
	leak_snapshot(&counts);
	printk("    KTAP version 1\n");
	printk("    # Subtest: %s\n", leader->suite);
	printk("    1..%u\n", nr_tests);
	for_each_selftest(test) {
		if (belongs(test, leader))
			nr_passed += run_test(test, ++nr_run);
	}
	nr_passed += run_leak_check(&counts, ++nr_run);
	printk("%s %u %s\n", nr_passed == nr_tests ? "ok" : "not ok", number, leader->suite);
	return nr_passed == nr_tests;
}

/* Allocates what the first switch to on does, so that it is no leak of a test. */
static void prepare_stores(void)
{
#ifdef CONFIG_PROFILE_MEMORY_CHAINS
	kernel_chains_switch(true);
	kernel_chains_switch(false);
#endif
}

void selftest_run(void)
{
	unsigned int nr_suites, nr_passed = 0, nr_run = 0;
	const struct selftest *test;

	crash_start();
	planted_leak_start();
	if (!wanted)
		return;
	prepare_stores();
	nr_suites = count_suites();
	leak_wait_steady(); /* threads started at boot may still be allocating */
	printk("KTAP version 1\n");
	printk("1..%u\n", nr_suites);
	for_each_selftest(test) {
		if (leads_suite(test))
			nr_passed += run_suite(test, ++nr_run);
	}
	if (!nr_suites)
		printk("# no test matches selftest=%s\n", wanted);
	printk("# %u of %u suites passed\n", nr_passed, nr_suites);
	machine_power_off(nr_suites && nr_passed == nr_suites ? 0 : 1);
}

static int set_selftest(const char *value)
{
	if (!*value)
		return -EINVAL;
	wanted = value;
	return 0;
}

/* Tests in the kernel to run instead of init. */
BOOT_PARAM(selftest, "selftest", "all|<glob>[,<glob>...]", set_selftest);
