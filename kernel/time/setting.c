// SPDX-License-Identifier: BSD-2-Clause
/*
 * The setting of a program's timer: its next expiry and its interval. Shared by all kinds of
 * timers.
 */

#include <lego/time.h>

#include <lego/errno.h>

int timer_setting_from(struct timer_setting *setting, const struct itimerspec64 *spec, int clock,
		       bool absolute, u64 now_ns)
{
	u64 ns;

	if (timespec_to_ns(&spec->value, &ns) ||
	    timespec_to_ns(&spec->interval, &setting->interval_ns))
		return -EINVAL;
	setting->expires_ns = 0;
	if (!ns)
		return 0;
	if (!absolute)
		ns = ns < TIME_NEVER_NS - now_ns ? now_ns + ns : TIME_NEVER_NS;
	else if (clock_is_realtime(clock))
		ns = realtime_to_monotonic_ns(ns);
	setting->expires_ns = max(ns, 1ULL);
	return 0;
}

struct itimerspec64 timer_setting_left(const struct timer_setting *setting, u64 now_ns)
{
	u64 left = 0;

	if (setting->expires_ns > now_ns)
		left = setting->expires_ns - now_ns;
	else if (setting->expires_ns && setting->interval_ns)
		left = setting->interval_ns - (now_ns - setting->expires_ns) % setting->interval_ns;
	return (struct itimerspec64){ .interval = ns_to_timespec(setting->interval_ns),
				      .value = ns_to_timespec(min(left, (u64)INT64_MAX)) };
}

u64 timer_setting_advance(struct timer_setting *setting, u64 now_ns)
{
	u64 nr = 1, passed;

	if (!setting->interval_ns) {
		setting->expires_ns = 0;
		return 1;
	}
	if (now_ns > setting->expires_ns)
		nr += (now_ns - setting->expires_ns) / setting->interval_ns;
	if (__builtin_mul_overflow(nr, setting->interval_ns, &passed) ||
	    __builtin_add_overflow(setting->expires_ns, passed, &setting->expires_ns))
		setting->expires_ns = TIME_NEVER_NS;
	return nr;
}
