/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_IRQ_H
#define LEGO_IRQ_H

/*
 * Interrupt context. Handlers run with interrupts off and never nest, except that an NMI may
 * interrupt anything. irq_context counts the frames of this CPU: of interrupts (not exceptions, not
 * system calls) in bits 3 to 5, of NMIs from bit 6 on. With a depth of 1 these are the bits of
 * Linux's trace flags.
 */
#define HARDIRQ_OFFSET 0x08
#define NMI_OFFSET     0x40

#include <asm/ptrace.h>
#include <lego/percpu.h>

DECLARE_PER_CPU(unsigned int, irq_context);

/* Returns how many interrupts the running code is in: 0 or 1. */
static inline unsigned int irq_depth(void)
{
	return this_cpu_read(irq_context) % NMI_OFFSET / HARDIRQ_OFFSET;
}

/* True inside an interrupt handler. */
static inline bool in_irq(void)
{
	return irq_depth() != 0;
}

static inline bool in_nmi(void)
{
	return this_cpu_at_least(irq_context, NMI_OFFSET);
}

#endif
