// SPDX-License-Identifier: BSD-2-Clause
/*
 * The monotonic clock is the TSC. The time of day is the monotonic clock plus an offset set from
 * the RTC.
 */

#include <lego/time.h>

#include <asm/processor.h>
#include <asm/rtc.h>
#include <lego/atomic.h>

static u64 realtime_offset_ns;

/* cycles = q * khz + r, so q is milliseconds and only r is rounded. */
u64 cycles_to_ns(u64 cycles)
{
	u64 khz = tsc_khz;

	if (unlikely(!khz))
		return 0;
	return cycles / khz * NSEC_PER_MSEC + (cycles % khz * NSEC_PER_MSEC + khz / 2) / khz;
}

u64 ns_to_cycles_up(u64 ns)
{
	u64 ms = ns / NSEC_PER_MSEC, left_ns = ns % NSEC_PER_MSEC, cycles;

	/* Only the milliseconds can overflow: the product below has 20 bits more than tsc_khz. */
	if (__builtin_mul_overflow(ms, tsc_khz, &cycles))
		return ~0ULL;
	left_ns = (left_ns * tsc_khz + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return __builtin_add_overflow(cycles, left_ns, &cycles) ? ~0ULL : cycles;
}

u64 clock_monotonic_ns(void)
{
	return cycles_to_ns(rdtsc_end());
}

/*
 * Returns the time of day. The RTC is read once; if several callers race, the first sets the offset
 * for all.
 */
u64 clock_realtime_ns(void)
{
	if (unlikely(!READ_ONCE(realtime_offset_ns)))
		cmpxchg(&realtime_offset_ns, 0ULL,
			rtc_read_seconds() * NSEC_PER_SEC - clock_monotonic_ns());
	return READ_ONCE(realtime_offset_ns) + clock_monotonic_ns();
}

void udelay(u64 microseconds)
{
	u64 cycles = microseconds * tsc_khz / 1000;
	u64 start = rdtsc();

	while (rdtsc() - start < cycles)
		cpu_relax();
}
