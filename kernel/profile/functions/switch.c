// SPDX-License-Identifier: BSD-2-Clause
/*
 * Decides which hook each function calls. While calls are counted, all functions call the general
 * hook. Otherwise, the functions that the current tracer wants call the hook of the tracer, and all
 * others keep their NOP.
 */

#include "functions.h"

#include "../words.h"
#include "tracers.h"

struct poll_lock functions_lock;
static bool counts; /* counting is on; guarded by the lock */

static os_function_hook_t *hook_of(u32 i)
{
	return counts ? os_function_general_hook : function_tracer_hook(i);
}

int functions_apply(void)
{
	int error;

	function_trace_end();
	error = os_function_calls_set(hook_of);
	if (!error)
		function_trace_begin();
	return error;
}

/* Starts counting, when all functions call the hook. Also marks this moment for tests. */
static pf_noinline void functions_start(void)
{
	u32 cpu;

	os_for_each_cpu(cpu)
		pf_write_once(os_per_cpu(function_counts, cpu), os_per_cpu(function_table, cpu));
}

/* Stops counting. Calls that have begun still add their time when they return. */
static pf_noinline void functions_stop(void)
{
	u32 cpu;

	os_for_each_cpu(cpu)
		pf_write_once(os_per_cpu(function_counts, cpu), NULL);
}

/*
 * Switches counting off. The calls that have led here add their time when they return, so the time
 * of the patching counts as time off the CPU: otherwise these calls were the longest of all.
 */
static int stop_counting(void)
{
	struct profile_function_thread *thread = os_function_self();
	u64 start;
	int error;

	functions_stop();
	counts = false;
	start = os_cycles() - (thread ? thread->off_cycles : 0);
	error = functions_apply();
	if (thread)
		thread->off_cycles += os_cycles() - thread->off_cycles - start;
	return error;
}

static int start_counting(void)
{
	int error = functions_alloc() ? 0 : -OS_ENOMEM;

	if (error)
		return error;
	counts = true;
	error = functions_apply();
	if (error)
		counts = false;
	else
		functions_start();
	functions_used |= counts;
	return error;
}

int functions_count(bool on)
{
	int error;

	poll_lock(&functions_lock);
	error = on ? start_counting() : stop_counting();
	poll_unlock(&functions_lock);
	return error;
}

bool functions_are_counted(void)
{
	return pf_read_once(counts);
}
