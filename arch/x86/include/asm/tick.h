/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TICK_H
#define ASM_TICK_H

/* The timer interrupt of each CPU: the tick, kernel timers and the samples of the profiler. */

#include <lego/percpu.h>

/* The TSC for which this CPU's timer is set: the interrupt that comes is for this one. */
DECLARE_PER_CPU(u64, timer_deadline);

/*
 * Set this CPU's timer again, to the earliest of all deadlines, one of which has changed.
 * Interrupts off.
 */
void timer_rearm(void);

/* Makes the interrupt come by `deadline` (TSC) on this CPU, for timer_run(). Interrupts off. */
void tick_interrupt_by(u64 deadline);

/* The interrupt's handler; interrupt_init() of the boot CPU. */
void tick_init(void);

#endif
