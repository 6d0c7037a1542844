/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SMP_H
#define LEGO_SMP_H

/* CPUs and calls across them. CPU indexes are dense, 0 is the boot CPU. */

#include <lego/kernel.h>
#include <lego/percpu.h>

extern unsigned int nr_cpus; /* CPUs found in the MADT, at most CONFIG_NR_CPUS */
extern cpumask_t cpu_online_mask;

#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < nr_cpus; (cpu)++)
#define for_each_cpu_in(cpu, mask)                \
	for ((cpu) = 0; (cpu) < nr_cpus; (cpu)++) \
		if (!((mask) >> (cpu)&1)) {       \
		} else
#define for_each_online_cpu(cpu) for_each_cpu_in(cpu, READ_ONCE(cpu_online_mask))

static inline bool cpu_online(unsigned int cpu)
{
	return READ_ONCE(cpu_online_mask) >> cpu & 1;
}

/*
 * Starts all other CPUs. Returns when each one is online, or has failed with a log line. Boot only.
 */
void smp_init(void);

/*
 * Runs fn(arg) on every CPU in mask, with interrupts off there, and waits until all have finished.
 * The calling CPU, if it is in the mask, runs it last. Process context with interrupts on; fn must
 * not sleep.
 */
void smp_call_mask(cpumask_t mask, void (*fn)(void *arg), void *arg);

/* Makes a CPU reschedule. Any context but NMI. */
void smp_send_reschedule(unsigned int cpu);

/*
 * Stops all other CPUs by NMI. Called once, by panic(), in any context. Returns how many have not
 * stopped within a second.
 */
unsigned int smp_stop_others(void);

/* Stops this CPU for ever, in the same way. Any context. */
void smp_stop_self(void) __noreturn;

#endif
