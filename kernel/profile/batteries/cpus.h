/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_CPUS_H
#define PROFILE_BATTERIES_CPUS_H

/* Calls functions on other CPUs without interrupts between CPUs: in their next ticks. */

/*
 * Calls fn(NULL) on these CPUs, a bit for each of at most 64, with interrupts off, and waits.
 * Process context, with interrupts on. Each of the CPUs has to call battery_cpu_tick().
 */
void battery_run_on_cpus(void (*fn)(void *arg), unsigned long cpus);

/* Called in each tick of each CPU, idle or not, with interrupts off. */
void battery_cpu_tick(unsigned int cpu);

#endif
