// SPDX-License-Identifier: BSD-2-Clause
/* Tests kernel/profile/os.h: the default sort, division, parsing and glob patterns. */

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#undef __always_inline
#include <lego/types.h>

/* What has no default, and is not used here. */
typedef void os_task_t, os_process_t, os_regs_t;
typedef char os_lock_t;
#define os_cycles()		 0ull
#define os_cycles_to_ns(cycles)	 (cycles)
#define os_vprintk(fmt, args)	 0
#define os_vsnprintf(b, s, f, a) 0
#define os_zalloc(size)		 NULL
#define os_free(ptr)		 ((void)0)
#define os_lock(lock)		 0ul
#define os_unlock(lock, flags)	 ((void)0)
#define OS_LOCK_INIT		 0
#define os_current_task()	 NULL
#define os_task_profile(task)	 NULL
#define os_task_process(task)	 NULL
#define os_process_profile(proc) NULL
#define os_process_of(pp)	 NULL
#define os_process_pid(proc)	 0
#define os_process_name(proc)	 ""
#define PROFILE_PORT_API	 1
#define PROFILE_OS_HOOKS_HEADER	 <stddef.h>
#define PROFILE_OS_HEADER	 <stddef.h>
#include "../../kernel/profile/os.h"

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

HOST_TEST(sort)
{
	int values[37], sorted[37];

	for (size_t nr = 0; nr <= PF_ARRAY_SIZE(values); nr++) {
		for (size_t i = 0; i < nr; i++)
			values[i] = sorted[i] = (int)(i * 7919 % 17);
		qsort(sorted, nr, sizeof(int), compare_ints);
		os_sort(values, nr, sizeof(int), compare_ints);
		assert_memory_equal(values, sorted, nr * sizeof(int));
	}
}

HOST_TEST(mul_div)
{
	static const u64 numbers[] = { 0, 1, 2, 3, 1000000000, ~0u, 1ull << 63, ~0ull - 1, ~0ull };
	size_t nr = PF_ARRAY_SIZE(numbers);

	for (size_t i = 0; i < nr * nr * nr; i++) {
		u64 a = numbers[i % nr], b = numbers[i / nr % nr], c = numbers[i / nr / nr];
		unsigned __int128 want;

		if (!c)
			continue;
		want = (unsigned __int128)a * b / c;
		assert_int_equal(os_mul_div_u64(a, b, c), want >> 64 ? ~0ull : (u64)want);
	}
}

HOST_TEST(parse)
{
	static const char *const wrong[] = { "", "-1", "1 ", "x", "18446744073709551617" };
	u64 value;

	assert_int_equal(os_parse_u64("0", &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(os_parse_u64("1234567890123456789", &value), 0);
	assert_int_equal(value, 1234567890123456789);
	for (size_t i = 0; i < PF_ARRAY_SIZE(wrong); i++)
		assert_int_equal(os_parse_u64(wrong[i], &value), -OS_EINVAL);
}

HOST_TEST(globs)
{
	assert_true(os_glob_match_list("flush", "flush"));
	assert_true(os_glob_match_list("a,flush", "flush"));
	assert_true(os_glob_match_list("fl*,a", "flush"));
	assert_true(os_glob_match_list("*", "flush"));
	assert_true(os_glob_match_list("*", ""));
	assert_false(os_glob_match_list("flus", "flush"));
	assert_false(os_glob_match_list("flushes,f", "flush"));
	assert_false(os_glob_match_list("", "flush"));
	assert_false(os_glob_match_list("a*,b*", "flush"));
}
