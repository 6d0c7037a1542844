/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_VECTORS_H
#define ASM_VECTORS_H

/* Interrupt vectors above the 32 exceptions, and their handlers. */

#define VECTOR_UART	  0x34 /* COM1 through the IOAPIC */
#define VECTOR_TIMER	  0xec /* each local APIC's timer */
#define VECTOR_CALL	  0xfb /* smp_call_mask() */
#define VECTOR_TLB	  0xfc /* flush_tlb_others() */
#define VECTOR_RESCHEDULE 0xfd
#define VECTOR_ERROR	  0xfe /* local APIC error */
#define VECTOR_SPURIOUS	  0xff /* no EOI (SDM vol. 3, 10.9) */

#ifndef __ASSEMBLY__
#include <asm/ptrace.h>

/*
 * Makes fn the handler of an external vector (32..255) on every CPU. It runs with interrupts off
 * and irq_depth raised, and must call apic_eoi(). Boot only. A vector without a handler is logged
 * once and gets an EOI.
 */
void irq_set_handler(unsigned int vector, void (*fn)(struct pt_regs *regs));

/* Returns how many interrupts with that vector a CPU has had. */
u64 irq_nr_handled(unsigned int cpu, unsigned int vector);
#endif

#endif
