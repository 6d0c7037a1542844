// SPDX-License-Identifier: BSD-2-Clause
#include <lego/time.h>

#include <lego/errno.h>
#include <lego/process.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* The system calls about time; Linux's clock numbers (uapi/linux/time.h). */

#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID	 3
#define CLOCK_MONOTONIC_RAW	 4
#define CLOCK_REALTIME_COARSE	 5
#define CLOCK_MONOTONIC_COARSE	 6

struct timezone {
	s32 tz_minuteswest;
	s32 tz_dsttime;
};

int timespec_to_ns(const struct timespec64 *ts, u64 *ns)
{
	if (ts->tv_sec < 0 || ts->tv_nsec < 0 || (u64)ts->tv_nsec >= NSEC_PER_SEC)
		return -EINVAL;
	*ns = TIME_NEVER_NS;
	if ((u64)ts->tv_sec < TIME_NEVER_NS / NSEC_PER_SEC)
		*ns = (u64)ts->tv_sec * NSEC_PER_SEC + (u64)ts->tv_nsec;
	return 0;
}

u64 realtime_to_monotonic_ns(u64 ns)
{
	u64 offset = clock_realtime_ns() - clock_monotonic_ns();

	if (ns == TIME_NEVER_NS)
		return ns;
	return ns > offset ? ns - offset : 0;
}

struct timespec64 ns_to_timespec(u64 ns)
{
	return (struct timespec64){ .tv_sec = (s64)(ns / NSEC_PER_SEC),
				    .tv_nsec = (s64)(ns % NSEC_PER_SEC) };
}

static int clock_read_ns(int clock, u64 *ns)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		*ns = clock_realtime_ns();
		return 0;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		*ns = clock_monotonic_ns();
		return 0;
	case CLOCK_PROCESS_CPUTIME_ID:
		*ns = cycles_to_ns(process_exec_cycles(current->proc));
		return 0;
	case CLOCK_THREAD_CPUTIME_ID:
		*ns = cycles_to_ns(task_exec_cycles(current));
		return 0;
	default:
		return -EINVAL;
	}
}

SYSCALL_DEFINE2(clock_gettime, int, clock, struct timespec64 __user *, ts)
{
	struct timespec64 now;
	u64 ns;
	int error = clock_read_ns(clock, &ns);

	if (error)
		return error;
	now = ns_to_timespec(ns);
	return copy_to_user(ts, &now, sizeof(now));
}

SYSCALL_DEFINE2(clock_getres, int, clock, struct timespec64 __user *, res)
{
	struct timespec64 resolution = { .tv_nsec = 1 };

	if (clock < CLOCK_REALTIME || clock > CLOCK_BOOTTIME)
		return -EINVAL;
	if (clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE)
		resolution.tv_nsec = NSEC_PER_SEC / tick_hz;
	return res ? copy_to_user(res, &resolution, sizeof(resolution)) : 0;
}

SYSCALL_DEFINE2(gettimeofday, struct timeval __user *, tv, struct timezone __user *, tz)
{
	u64 ns = clock_realtime_ns();
	struct timeval now = { .tv_sec = (s64)(ns / NSEC_PER_SEC),
			       .tv_usec = (s64)(ns % NSEC_PER_SEC / NSEC_PER_USEC) };
	struct timezone utc = { 0, 0 };

	if (tv && copy_to_user(tv, &now, sizeof(now)))
		return -EFAULT;
	if (tz && copy_to_user(tz, &utc, sizeof(utc)))
		return -EFAULT;
	return 0;
}

SYSCALL_DEFINE1(time, s64 __user *, seconds)
{
	s64 now = (s64)(clock_realtime_ns() / NSEC_PER_SEC);

	if (seconds && put_user(now, seconds))
		return -EFAULT;
	return now;
}

u64 time_after_ns(u64 ns)
{
	u64 now = clock_monotonic_ns();

	return ns > TIME_NEVER_NS - now ? TIME_NEVER_NS : now + ns;
}

/*
 * Until deadline_ns (monotonic); when a signal ends the sleep, what is left goes to rem, if given.
 * Without a handler the sleep goes on to the same end.
 */
static long sleep_user(u64 deadline_ns, struct timespec64 __user *rem);

static long restart_sleep(struct task *task)
{
	return sleep_user(task->restart.deadline_ns, task->restart.arg);
}

static long sleep_user(u64 deadline_ns, struct timespec64 __user *rem)
{
	struct task *task = current;
	struct timespec64 left;
	u64 now;

	if (!sleep_until_ns(deadline_ns))
		return 0;
	now = clock_monotonic_ns();
	left = ns_to_timespec(deadline_ns > now ? deadline_ns - now : 0);
	if (rem && copy_to_user(rem, &left, sizeof(left)))
		return -EFAULT;
	task->restart.fn = restart_sleep;
	task->restart.deadline_ns = deadline_ns;
	task->restart.arg = rem;
	return -ERESTART_RESTARTBLOCK;
}

SYSCALL_DEFINE2(nanosleep, const struct timespec64 __user *, req, struct timespec64 __user *, rem)
{
	struct timespec64 ts;
	u64 ns;

	if (get_user(ts, req))
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns))
		return -EINVAL;
	return sleep_user(time_after_ns(ns), rem);
}

SYSCALL_DEFINE4(clock_nanosleep, int, clock, int, flags, const struct timespec64 __user *, req,
		struct timespec64 __user *, rem)
{
	struct timespec64 ts;
	u64 ns;

	if (clock < CLOCK_REALTIME || clock > CLOCK_BOOTTIME)
		return -EINVAL;
	if (!clock_has_timers(clock))
		return -EOPNOTSUPP;
	if (get_user(ts, req))
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns))
		return -EINVAL;
	if (!(flags & TIMER_ABSTIME))
		return sleep_user(time_after_ns(ns), rem);
	if (clock == CLOCK_REALTIME)
		ns = realtime_to_monotonic_ns(ns);
	return sleep_until_ns(ns) ? -ERESTARTNOHAND : 0;
}
