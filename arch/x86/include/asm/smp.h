/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SMP_H
#define ASM_SMP_H

#include <lego/types.h>

/*
 * Waits until interrupt handlers of other CPUs have made *word zero; the last one calls
 * smp_wake_waiter() with the waiting CPU. A long wait halts the CPU, because on a host with fewer
 * CPUs the others need it. Process context, interrupts on; handlers run meanwhile.
 */
void smp_wait_zero(const u64 *word);
void smp_wake_waiter(unsigned int cpu);

/*
 * Called by the NMI handler. Does not return if smp_stop_others() asked this CPU to stop. Returns
 * true if a CPU is stopping the others, which explains the NMI.
 */
bool smp_handle_nmi(void);

/* The first C function of a secondary CPU, on its idle stack; called by trampoline.S. */
void secondary_start(unsigned int cpu) __attribute__((noreturn));

/* Sets the handlers of VECTOR_CALL and VECTOR_RESCHEDULE; from interrupt_init() of the boot CPU. */
void smp_init_vectors(void);

/*
 * Compare two TSCs. The boot CPU calls tsc_compare_prepare() before the other CPU starts, then the
 * second function (false: no answer within 30 s). The other CPU calls the third. Interrupts are
 * off in both.
 */
void tsc_compare_prepare(void);
bool tsc_compare_with(unsigned int cpu);
void tsc_compare_answer(void);

#endif
