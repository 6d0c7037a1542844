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

/* Start all other CPUs; returns when each is online or was given up on with a log line. Boot only.
 */
void smp_init(void);

/*
 * Run fn(arg) on every CPU in mask with interrupts off there, and wait until all are done. The
 * calling CPU, if in the mask, runs it last. Process context with interrupts on; fn may not sleep.
 */
void smp_call_mask(cpumask_t mask, void (*fn)(void *arg), void *arg);

/* Ask a CPU to reschedule. Any context but NMI. */
void smp_send_reschedule(unsigned int cpu);

/*
 * Stop all other CPUs by NMI. Called once, by panic(), in any context. Returns how many have not
 * stopped within a second.
 */
unsigned int smp_stop_others(void);

/* Stop for good, as if told to. Any context. */
void smp_stop_self(void) __noreturn;

#endif
