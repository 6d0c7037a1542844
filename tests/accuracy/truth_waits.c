// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts the waits of threads, by the chain that was active when switch_stack() was called. The
 * stack address of that call's return address identifies the thread. A wait lasts from the time
 * that schedule() read before the call to the time that it read before the return. Time before the
 * window's first reading of the clock does not count.
 *
 * The clock is the number of executed instructions, as the guest sees it with -icount. A CPU that
 * halts executes none although time passes, so the CPU must never be idle.
 */
#include "truth_count.h"

static bool awaits_since;
static uint64_t since;

void waits_clock(struct cpu *cpu, int function, uint64_t time)
{
	if (awaits_since)
		since = time;
	awaits_since = false;
	if (function == function_at(args.schedule))
		cpu->schedule_clock = time;
}

void waits_begin_window(void)
{
	awaits_since = true;
}

void waits_begin(const struct cpu *cpu, struct out *out, uint64_t time)
{
	*out = (struct out){ true, cpu->schedule_clock, time };
}

static uint64_t length(uint64_t start, uint64_t end)
{
	return end - (start > since ? start : since);
}

void waits_end(const struct cpu *cpu, struct out *out, struct node *node, uint64_t time)
{
	if (out->is_out && node) {
		node->waits.nr++;
		node->waits.cycles += length(out->clock, cpu->schedule_clock);
		node->waits.switch_cycles += length(out->time, time);
	}
	out->is_out = false;
}
