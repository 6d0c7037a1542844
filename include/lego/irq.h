/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_IRQ_H
#define LEGO_IRQ_H

/*
 * Interrupt context. Handlers run with interrupts off and never nest, except that an NMI may
 * interrupt anything. irq_depth counts interrupt (not exception, not system call) frames on this
 * CPU.
 */

#include <asm/ptrace.h>
#include <lego/percpu.h>

DECLARE_PER_CPU(unsigned int, irq_depth);
DECLARE_PER_CPU(unsigned int, nmi_depth);

/* True inside an interrupt handler. */
static inline bool in_irq(void)
{
	return this_cpu_read(irq_depth) != 0;
}

static inline bool in_nmi(void)
{
	return this_cpu_read(nmi_depth) != 0;
}

#endif
