// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the instructions of a function's hooks, from its start to its return: switched off,
 * while calls are counted, and with each of the tracers. Needs profile.function_calls=on, because
 * the memory that it allocates is never freed.
 */
#include <lego/selftest.h>

#include "../../kernel/profile/functions/functions.h"
#include "../../kernel/profile/trace/trace.h"
#include <asm/irqflags.h>
#include <asm/tsc.h>
#include <lego/printk.h>

#define NR_CALLS 10000

static noinline void hooked(void)
{
	asm volatile("");
}

static notrace noinline void not_hooked(void)
{
	asm volatile("");
}

static notrace __always_inline u64 time_of(void (*function)(void))
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc(), cycles;

	for (int i = 0; i < NR_CALLS; i++)
		function();
	cycles = rdtsc() - start;
	local_irq_restore(flags);
	return cycles;
}

static notrace noinline void time_calls(const char *name)
{
	u64 none = time_of(not_hooked);

	printk("bench: function_%s %llu %d\n", name, (unsigned long long)(time_of(hooked) - none),
	       NR_CALLS);
}

SELFTEST(bench, functions)
{
	if (!functions_used) /* with all suites; tests/bench/run would miss the lines */
		return;
	time_calls("count");
	EXPECT_EQ(functions_count(false), 0);
	time_calls("off");
	EXPECT_EQ(trace_select_tracer("function"), 0);
	time_calls("trace");
	EXPECT_EQ(trace_select_tracer("function_graph"), 0);
	time_calls("graph");
	EXPECT_EQ(trace_select_tracer("nop"), 0);
	EXPECT_EQ(trace_resize_rings(0), 0);
}
