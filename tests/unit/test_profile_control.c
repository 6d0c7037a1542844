// SPDX-License-Identifier: BSD-2-Clause
/* Tests how points are switched: at boot, by the file, and by a sysrq key. */

#include "unit.h"

DEFINE_PROFILE_POINT(tlb_one)
DEFINE_PROFILE_POINT(tlb_all)
DEFINE_PROFILE_POINT_SLEEPS(futex_wait)

static const char *const path = "profile/points";

static void expect_line(const char *text, bool on, const char *name)
{
	char line[32];

	snprintf(line, sizeof(line), "%s %s\n", on ? "on" : "off", name);
	assert_non_null(strstr(text, line));
}

/* Expects a letter for each point, upper case if it is on. */
static void expect_points(const char *states)
{
	const char *text = host_file_read(path);

	expect_line(text, states[0] == 'O', "tlb_one");
	expect_line(text, states[1] == 'A', "tlb_all");
	expect_line(text, states[2] == 'F', "futex_wait");
	for (int i = 0; i < 3; i++)
		text = strchr(text, '\n') + 1;
	assert_string_equal(text, "");
}

static void boot_with(const char *points)
{
	points_switch("*", false);
	assert_int_equal(host_set_param("profile.points", points), 0);
	profile_init();
}

/* Runs first. */
HOST_TEST(boot)
{
	profile_init();
	expect_points("OAF");
	assert_int_equal(host_nr_fences_dropped, 0);
	boot_with("tlb_*");
	expect_points("OAf");
	boot_with("tlb_*,-tlb_o*");
	expect_points("oAf");
	boot_with("-tlb_o*");
	expect_points("oAF");
	boot_with("-*");
	expect_points("oaf");
	boot_with("-*,futex_wait");
	expect_points("oaF");
	host_log_clear();
	boot_with("no_such_point");
	expect_points("oaf");
	assert_string_equal(host_log, "profile.points: there is no point no_such_point\n");
	boot_with("*");
	expect_points("OAF");
	boot_with("ordered");
	expect_points("OAF");
	assert_int_equal(host_nr_fences_dropped, 0);
	boot_with("futex_*,unordered,-x");
	expect_points("oaF");
	assert_int_equal(host_nr_fences_dropped, 1);
}

HOST_TEST(bad_values_are_refused)
{
	static const char *const bad[] = { "", ",", " ", "-", "a,-", "-,a", "unordered,-" };
	char too_long[400];

	boot_with("ordered,tlb_*");
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(host_set_param("profile.points", bad[i]), -EINVAL);
	memset(too_long, 'a', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(host_set_param("profile.points", too_long), -EINVAL);
	assert_int_equal(host_file_write(path, too_long), -EINVAL);
	assert_int_equal(host_file_write(path, "-tlb_*,-"), -EINVAL);
	assert_int_equal(host_file_write(path, "-tlb_*,no_such_point"), -EINVAL);
	assert_int_equal(host_file_write(path, "-tlb_*,-no_*"), -EINVAL);
	expect_points("OAf");
	points_switch("*", false);
	profile_init(); /* the previous value stays */
	expect_points("OAf");
}

/* The longest list is accepted. */
HOST_TEST(long_list)
{
	char list[256];

	memset(list, ',', sizeof(list));
	memcpy(list, "tlb_one,", 8);
	memcpy(list + 255 - 8, ",tlb_all", 9);
	boot_with(list);
	expect_points("OAf");
	assert_int_equal(host_file_write(path, "-*"), 0);
	assert_int_equal(host_file_write(path, list), 0);
	expect_points("OAf");
}

HOST_TEST(file)
{
	boot_with("*");
	assert_int_equal(host_file_write(path, "-tlb_*\n"), 0);
	expect_points("oaF");
	assert_int_equal(host_file_write(path, "tlb_one -futex_wait\n"), 0);
	expect_points("Oaf");
	assert_int_equal(host_file_write(path, "-*,tlb_all, futex*"), 0);
	expect_points("oAF");
	assert_int_equal(host_file_write(path, ""), 0);
	assert_int_equal(host_file_write(path, "\n"), 0);
	expect_points("oAF");
}

static void hit(void)
{
	PROFILE_SCOPE(tlb_all);
	host_now += 5;
}

HOST_TEST(reset_by_the_file)
{
	static struct point_snapshot snap;

	boot_with("*");
	points_reset();
	host_now = 1000;
	hit();
	points_snapshot(&snap);
	assert_int_equal(snap.nr_entries, 1);
	assert_int_equal(host_file_write(path, "reset\n"), 0);
	points_snapshot(&snap);
	assert_int_equal(snap.nr_entries, 0);
	expect_points("OAF");
}

HOST_TEST(key)
{
	boot_with("tlb_one");
	host_sysrq('o');
	expect_points("oaf");
	host_sysrq('o');
	expect_points("OAF");
}
