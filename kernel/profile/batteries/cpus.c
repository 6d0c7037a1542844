// SPDX-License-Identifier: BSD-2-Clause
/* The caller writes down a function and the CPUs that owe a call of it. Each clears its bit. */

#include "cpus.h"

#include "cpu.h"

#include <stddef.h>

static pf_flag_t is_busy;
static void (*function)(void *arg);
static unsigned long owing; /* CPUs that have not called it yet */

void battery_run_on_cpus(void (*fn)(void *arg), unsigned long cpus)
{
	while (pf_xchg(&is_busy, 1))
		battery_relax();
	function = fn;
	/* Pairs with battery_cpu_tick(), which must not see the function before. */
	pf_store_release(&owing, cpus);
	/* Pairs with the end of battery_cpu_tick(): the caller sees what fn has done. */
	while (pf_load_acquire(&owing))
		battery_relax();
	pf_store_release(&is_busy, 0);
}

void battery_cpu_tick(unsigned int cpu)
{
	unsigned long bit = 1ul << cpu;

	if (pf_load_acquire(&owing) & bit) {
		function(NULL);
		__atomic_fetch_and(&owing, ~bit, __ATOMIC_RELEASE);
	}
}
