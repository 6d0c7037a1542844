/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SMP_H
#define ASM_SMP_H

#include <lego/percpu.h>

/*
 * The CPU's TSC less the boot CPU's, as measured when it came up, right to
 * +-tsc_offset_error_cycles. Both are 0 on the boot CPU.
 */
DECLARE_PER_CPU(s64, tsc_offset_cycles);
DECLARE_PER_CPU(u64, tsc_offset_error_cycles);

/*
 * Wait until other CPUs' interrupt handlers have made *word zero; whoever did so calls
 * smp_wake_waiter() with the waiting CPU. A long wait halts: where there are fewer real CPUs than
 * ours, those waited for need them. Process context, interrupts on; handlers run meanwhile.
 */
void smp_wait_zero(const u64 *word);
void smp_wake_waiter(unsigned int cpu);

/*
 * From the NMI handler: does not return when smp_stop_others() asked this CPU to stop. True: some
 * CPU is stopping the others, so the NMI is no riddle.
 */
bool smp_handle_nmi(void);

/* First C code of a secondary CPU, on its idle stack; called by trampoline.S. */
void secondary_start(unsigned int cpu) __attribute__((noreturn));

/* Handlers of VECTOR_CALL and VECTOR_RESCHEDULE; interrupt_init() of the boot CPU. */
void smp_init_vectors(void);

/*
 * One TSC comparison. The boot CPU prepares before the other starts, then calls the second
 * (false: the other did not answer within a second); the other CPU calls the third.
 * Interrupts are off in both.
 */
void tsc_compare_prepare(void);
bool tsc_compare_with(unsigned int cpu);
void tsc_compare_answer(void);

#endif
