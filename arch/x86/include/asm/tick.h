/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TICK_H
#define ASM_TICK_H

/* The timer interrupt of each CPU: the tick, kernel timers and the samples of the profiler. */

#include <lego/percpu.h>

/* The TSC value for which this CPU's timer is set. */
DECLARE_PER_CPU(u64, timer_deadline);

/* Sets this CPU's timer to the earliest deadline, after one of them has changed. Interrupts off. */
void timer_rearm(void);

/*
 * Makes the interrupt come at `deadline` (TSC) or earlier on this CPU, for timer_run(). Interrupts
 * off.
 */
void tick_interrupt_by(u64 deadline);

/*
 * Called at the end of an NMI's handler, which began at begin_cycles, if CPUs take turns: hands the
 * time back to the CPU that owns it.
 */
void tick_leave_nmi(u64 begin_cycles);

/* Sets the handler of the interrupt; from interrupt_init() of the boot CPU. */
void tick_init(void);

#endif
