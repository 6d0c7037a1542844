/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TIME_H
#define LEGO_TIME_H

/* One clock: the TSC, scaled to nanoseconds. Any context, NMI included. */

#include <asm/tsc.h>
#include <lego/kernel.h>

#define NSEC_PER_SEC  1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

/* Set once by clock_init() before any other CPU runs. */
extern u64 tsc_khz;

/* Ticks a second: CONFIG_HZ, or the boot parameter tick_hz. */
extern u32 tick_hz;

/*
 * Converts TSC cycles to nanoseconds, rounded to nearest; exact to 1 ns for up to 2^63 ns. Returns
 * 0 before clock_init().
 */
u64 cycles_to_ns(u64 cycles);

/*
 * Converts a time to TSC cycles, rounding up: when the TSC has reached the result,
 * clock_monotonic_ns() has reached ns. After clock_init(). Returns ~0 if the result does not fit.
 */
u64 ns_to_cycles_up(u64 ns);

/* Returns nanoseconds since the TSC was zero at boot. Never goes back on one CPU. */
u64 clock_monotonic_ns(void);

/* Returns nanoseconds since 1970: the RTC, read once at boot, plus the monotonic clock. */
u64 clock_realtime_ns(void);

/* Busy-waits; interrupts may be on or off. Needs clock_init(). */
void udelay(u64 microseconds);

/* A time that never comes. */
#define TIME_NEVER_NS (~0ULL)

struct timespec64 {
	s64 tv_sec;
	s64 tv_nsec;
};

struct itimerspec64 {
	struct timespec64 interval;
	struct timespec64 value;
};

/*
 * Converts a time; TIME_NEVER_NS if it does not fit. Returns 0, or -EINVAL for a negative or
 * denormal time.
 */
int timespec_to_ns(const struct timespec64 *ts, u64 *ns);

struct timespec64 ns_to_timespec(u64 ns);

/* Linux's clocks that timers can have, and the flag of their absolute times. */
#define CLOCK_REALTIME		 0
#define CLOCK_MONOTONIC		 1
#define CLOCK_PROCESS_CPUTIME_ID 2 /* of the current process, or thread */
#define CLOCK_THREAD_CPUTIME_ID	 3
#define CLOCK_BOOTTIME		 7
#define CLOCK_TAI		 11 /* equal to CLOCK_REALTIME, because the offset is never set */
#define TIMER_ABSTIME		 1

static inline bool clock_has_timers(int clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_TAI;
}

/* Returns true if the clock tells the time of day. */
static inline bool clock_is_realtime(int clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_TAI;
}

/*
 * Returns CLOCK_PROCESS_CPUTIME_ID or CLOCK_THREAD_CPUTIME_ID if the clock names the current
 * process or thread by its number, as clock_getcpuclockid(3) does; else the clock unchanged.
 */
int clock_number(int clock);
/*
 * Returns true if the clock measures the CPU time of a process or thread given by its number. In a
 * result of clock_number(), that is not the current one.
 */
static inline bool clock_is_by_number(int clock)
{
	return clock < 0 && (clock & 3) == 2;
}
static inline bool clock_is_of_thread(int clock)
{
	return clock & 4;
}
static inline pid_t clock_pid(int clock)
{
	return ~(clock >> 3);
}

/*
 * The setting of a program's timer. expires_ns is a time on the monotonic clock or on a clock of
 * CPU time, like now_ns of the functions below; 0: the timer is off. Without an interval, it
 * expires once.
 */
struct timer_setting {
	u64 expires_ns;
	u64 interval_ns;
};

/* Converts the times of a clock that has timers, relative or absolute. Returns 0 or -EINVAL. */
int timer_setting_from(struct timer_setting *setting, const struct itimerspec64 *spec, int clock,
		       bool absolute, u64 now_ns);
/* Returns the time left until the next expiry; 0 after the last one. */
struct itimerspec64 timer_setting_left(const struct timer_setting *setting, u64 now_ns);
/*
 * Returns the number of expiries so far, at least 1, because it is called after an expiry, and
 * advances the timer by them. Turns it off after the last one.
 */
u64 timer_setting_advance(struct timer_setting *setting, u64 now_ns);

/* Converts a CLOCK_REALTIME time to the monotonic clock; 0 if it is before boot. */
u64 realtime_to_monotonic_ns(u64 ns);

struct timeval {
	s64 tv_sec;
	s64 tv_usec;
};

/* Returns the time on the monotonic clock in ns nanoseconds; TIME_NEVER_NS if out of range. */
u64 time_after_ns(u64 ns);

/*
 * Sleeps until clock_monotonic_ns() reaches the deadline. Returns 0, or -EINTR if a signal came
 * first.
 */
int sleep_until_ns(u64 deadline_ns);

#endif
