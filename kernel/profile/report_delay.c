// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes the printing of reports out of the waits of other threads. A parent that waits for its
 * child waits until the child's report is printed, because the child prints it before it ends.
 *
 * Each thread has a delay: how much earlier it would be where it is, if no report had been printed.
 * A thread that prints the report of its process is delayed by that. A thread that wakes another
 * one passes its delay on, as far as reports were printed during the sleep: the sleep counts as
 * shorter by the difference between the delays. So the parent's parent is delayed, too, and so is
 * a reader of a pipe, but not a thread that a timer wakes. If there is only one CPU, a thread that
 * is ready is delayed by all that is printed meanwhile. On several CPUs it is not, because others
 * may have had its CPU. A wait that has not ended is not shortened yet.
 *
 * Until the first report of a process that ends, all this is switched off.
 */

#include "hook_keys.h"
#include "os_stacks.h"
#include "profiler.h"

#ifdef CONFIG_PROFILE_WAITS
os_key_t profile_waits_key, profile_delays_key;

static bool has_one_cpu;

/*
 * How long reports of ended processes have been printed, minus the TSC at the beginning of the
 * report that is being printed: then it is negative. Only the printing thread writes to it.
 */
static u64 printed_cycles;

static u64 printed_at(u64 now)
{
	u64 cycles = pf_read_once(printed_cycles);

	return (s64)cycles < 0 ? cycles + now : cycles;
}

static u64 printed_since(u64 before, u64 now)
{
	u64 cycles = printed_at(now) - before;

	return (s64)cycles < 0 ? 0 : cycles;
}

u64 report_delay(void)
{
	return os_key_is_set(&profile_delays_key) ? os_current_profile()->delay.cycles : 0;
}

void report_delay_begin_task(struct profile_task *pt)
{
	pt->delay.cycles = pt->delay.first_cycles = report_delay();
	pt->delay.printed_cycles = printed_at(os_cycles());
}

u64 report_delay_begin(void)
{
	u32 nr = 0, cpu;

	os_assert_process_context();
	if (!os_key_is_set(&profile_delays_key)) {
		os_for_each_cpu(cpu)
			nr += os_cpu_online(cpu);
		has_one_cpu = nr == 1;
		os_key_set(&profile_delays_key, true);
		/* A switch of waits to off may have begun before. */
		hook_key_set(&profile_waits_key, true);
	}
	return os_cycles();
}

void report_delay_start_printing(void)
{
	pf_write_once(printed_cycles, printed_cycles - os_cycles());
}

void report_delay_stop_printing(void)
{
	pf_write_once(printed_cycles, printed_cycles + os_cycles());
}

void report_delay_end(u64 begin_cycles)
{
	os_current_profile()->delay.cycles += os_cycles() - begin_cycles;
}

void profile_report_delay_switch_out(struct profile_task *pt)
{
	pt->delay.printed_cycles = printed_at(pt->waits.out_cycles);
}

void report_delay_wake(struct profile_task *pt)
{
	u64 now = os_cycles(), delay = os_irq_depth() ? 0 : os_current_profile()->delay.cycles;

	if (delay > pt->delay.cycles)
		pt->delay.sleep_cycles = pf_min(delay - pt->delay.cycles,
						printed_since(pt->delay.printed_cycles, now));
	pt->delay.printed_cycles = printed_at(now);
}

void report_delay_switch_in(struct profile_task *pt, u64 now)
{
	u64 ready = has_one_cpu ? printed_since(pt->delay.printed_cycles, now) : 0;
	u64 cycles = pt->delay.sleep_cycles + ready;

	if (!cycles)
		return;
	pt->delay.sleep_cycles = 0;
	pt->delay.cycles += cycles;
	pt->waits.out_cycles += cycles;
	if (pt->waits.woken_cycles)
		pt->waits.woken_cycles += ready;
	report_shorten_wait(pt, cycles);
}
#endif
