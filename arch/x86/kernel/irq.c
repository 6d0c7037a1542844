// SPDX-License-Identifier: BSD-2-Clause
/* Dispatches external interrupts: the vectors above the exceptions, with one handler each. */
#include <lego/irq.h>

#include <asm/apic.h>
#include <asm/traps.h>
#include <asm/vectors.h>
#include <lego/bug.h>
#include <lego/printk.h>

DEFINE_PER_CPU(unsigned int, irq_context);

static DEFINE_PER_CPU(u64[NR_VECTORS], nr_handled);
static void (*handlers[NR_VECTORS])(struct pt_regs *regs);

void irq_set_handler(unsigned int vector, void (*fn)(struct pt_regs *regs))
{
	BUG_ON(vector < NR_EXCEPTIONS || vector >= NR_VECTORS || handlers[vector]);
	handlers[vector] = fn;
}

static void unexpected(unsigned int vector)
{
	static bool logged[NR_VECTORS];

	if (!logged[vector]) {
		logged[vector] = true;
		printk("irq: nobody handles vector %u\n", vector);
	}
	if (vector != VECTOR_SPURIOUS)
		apic_eoi();
}

u64 irq_nr_handled(unsigned int cpu, unsigned int vector)
{
	return READ_ONCE(per_cpu(nr_handled, cpu)[vector]);
}

void do_irq(struct pt_regs *regs, unsigned int vector)
{
	this_cpu_add(irq_context, HARDIRQ_OFFSET);
	this_cpu_inc(nr_handled[vector]);
	if (likely(handlers[vector]))
		handlers[vector](regs);
	else
		unexpected(vector);
	this_cpu_add(irq_context, -HARDIRQ_OFFSET);
}
