// SPDX-License-Identifier: BSD-2-Clause
/* The system calls about time; Linux's clock numbers (uapi/linux/time.h). */

#include <lego/time.h>

#include <lego/errno.h>
#include <lego/process.h>
#include <lego/smp.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define CLOCK_MONOTONIC_RAW    4
#define CLOCK_REALTIME_COARSE  5
#define CLOCK_MONOTONIC_COARSE 6

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

int clock_number(int clock)
{
	pid_t number = clock_pid(clock);

	if (!clock_is_by_number(clock))
		return clock;
	if (clock_is_of_thread(clock))
		return !number || number == current->pid ? CLOCK_THREAD_CPUTIME_ID : clock;
	return !number || number == current->proc->pid ? CLOCK_PROCESS_CPUTIME_ID : clock;
}

/* Reads a clock of another process, or of another thread of this one. */
static int read_by_number(int clock, u64 *ns)
{
	pid_t number = clock_pid(clock);
	struct process *proc;
	struct task *task;

	if (clock_is_of_thread(clock)) {
		task = process_find_thread(current->proc, number);
		if (!task)
			return -EINVAL;
		*ns = cycles_to_ns(task_own_cycles(task));
		task_put(task);
		return 0;
	}
	proc = process_find(number);
	if (!proc)
		return -EINVAL;
	*ns = cycles_to_ns(process_exec_cycles(proc));
	process_put(proc);
	return 0;
}

static int clock_read_ns(int clock, u64 *ns)
{
	clock = clock_number(clock);
	if (clock_is_by_number(clock))
		return read_by_number(clock, ns);
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_TAI:
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
		*ns = cycles_to_ns(task_own_cycles(current));
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
	u64 ns;
	int error = clock_read_ns(clock, &ns);

	if (error)
		return error;
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

/* Returns whether the clock is one of CPU time, whose process or thread may end. */
static bool is_cpu_clock(int clock)
{
	return clock == CLOCK_PROCESS_CPUTIME_ID || clock_is_by_number(clock);
}

/*
 * Sleeps until the monotonic clock, or a clock of CPU time, reaches the deadline. A CPU time clock
 * is checked at the earliest time it can have reached the deadline, and at most with each tick.
 * Like Linux, it sleeps on if that clock's process ends. 0 or -EINTR. Inlined, so that reports of
 * waits name the caller.
 */
static __always_inline int sleep_until(int clock, u64 deadline_ns)
{
	u64 now, next;
	int error = 0;

	if (!is_cpu_clock(clock))
		return sleep_until_ns(deadline_ns);
	while (!error) {
		next = TIME_NEVER_NS;
		if (!clock_read_ns(clock, &now)) {
			if (now >= deadline_ns)
				return 0;
			next = time_after_ns(
				max((deadline_ns - now) / nr_cpus, NSEC_PER_SEC / tick_hz));
		}
		error = sleep_until_ns(next);
	}
	return error;
}

/*
 * Sleeps until deadline_ns as sleep_until() does. If a signal ends the sleep, stores the remaining
 * time in rem, if given. Without a handler the sleep continues to the same deadline.
 */
static long sleep_user(int clock, u64 deadline_ns, struct timespec64 __user *rem);

static long restart_sleep(struct task *task)
{
	return sleep_user((int)task->restart.clock, task->restart.deadline_ns, task->restart.arg);
}

static long sleep_user(int clock, u64 deadline_ns, struct timespec64 __user *rem)
{
	struct task *task = current;
	struct timespec64 left;
	u64 now;

	if (!sleep_until(clock, deadline_ns))
		return 0;
	if (clock_read_ns(clock, &now))
		return -EINTR;
	left = ns_to_timespec(deadline_ns > now ? deadline_ns - now : 0);
	if (rem && copy_to_user(rem, &left, sizeof(left)))
		return -EFAULT;
	task->restart.fn = restart_sleep;
	task->restart.clock = (u64)clock;
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
	return sleep_user(CLOCK_MONOTONIC, time_after_ns(ns), rem);
}

/*
 * Returns 0, or the error for a clock that cannot be slept on. The thread's own CPU time is one: it
 * stands still during the sleep.
 */
static int check_sleep_clock(int clock)
{
	u64 ns;

	if (clock_has_timers(clock) || clock == CLOCK_PROCESS_CPUTIME_ID)
		return 0;
	if (clock_number(clock) != clock)
		return clock_number(clock) == CLOCK_THREAD_CPUTIME_ID ? -EINVAL : 0;
	if (clock_is_by_number(clock))
		return clock_read_ns(clock, &ns);
	return clock < CLOCK_REALTIME || clock > CLOCK_BOOTTIME ? -EINVAL : -EOPNOTSUPP;
}

SYSCALL_DEFINE4(clock_nanosleep, int, clock, int, flags, const struct timespec64 __user *, req,
		struct timespec64 __user *, rem)
{
	int error = check_sleep_clock(clock), by;
	struct timespec64 ts;
	u64 ns, now;

	if (error)
		return error;
	if (get_user(ts, req))
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns))
		return -EINVAL;
	by = clock_has_timers(clock) ? CLOCK_MONOTONIC : clock_number(clock);
	if (!(flags & TIMER_ABSTIME)) {
		error = clock_read_ns(by, &now);
		if (error)
			return error;
		ns = ns < TIME_NEVER_NS - now ? now + ns : TIME_NEVER_NS;
		return sleep_user(by, ns, rem);
	}
	if (clock_is_realtime(clock))
		ns = realtime_to_monotonic_ns(ns);
	return sleep_until(by, ns) ? -ERESTARTNOHAND : 0;
}
