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
 * A duration in TSC cycles to nanoseconds, rounded to nearest; exact to 1 ns for up to 2^63 ns.
 * 0 before clock_init().
 */
u64 cycles_to_ns(u64 cycles);

/*
 * Converts a time to TSC cycles, rounding up: when the TSC has reached the result,
 * clock_monotonic_ns() has reached ns. After clock_init(). Returns ~0 if the result does not fit.
 */
u64 ns_to_cycles_up(u64 ns);

/* Nanoseconds since the TSC was zero at boot (never goes back on one CPU). */
u64 clock_monotonic_ns(void);

/* Nanoseconds since 1970, from the RTC read once at boot plus the monotonic clock. */
u64 clock_realtime_ns(void);

/* Busy wait; interrupts may be on or off. Needs clock_init(). */
void udelay(u64 microseconds);

/* A time that never comes. */
#define TIME_NEVER_NS (~0ULL)

struct timespec64 {
	s64 tv_sec;
	s64 tv_nsec;
};

/* 0 or -EINVAL for a negative or denormal time; TIME_NEVER_NS for what does not fit. */
int timespec_to_ns(const struct timespec64 *ts, u64 *ns);

/* A CLOCK_REALTIME time on the monotonic clock; 0 when before boot. */
u64 realtime_to_monotonic_ns(u64 ns);

struct timeval {
	s64 tv_sec;
	s64 tv_usec;
};

/* The time that is ns from now on the monotonic clock; TIME_NEVER_NS when out of range. */
u64 time_after_ns(u64 ns);

/* Sleep until clock_monotonic_ns() reaches it: 0, or -EINTR when a signal came first. */
int sleep_until_ns(u64 deadline_ns);

#endif
