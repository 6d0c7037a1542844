/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_IRQFLAGS_H
#define ASM_IRQFLAGS_H

#include <lego/types.h>

#define RFLAGS_IF (1UL << 9)

static inline unsigned long local_save_flags(void)
{
	unsigned long flags;

	asm volatile("pushfq; popq %0" : "=r"(flags)::"memory");
	return flags;
}

static inline void local_irq_disable(void)
{
	asm volatile("cli" ::: "memory");
}

static inline void local_irq_enable(void)
{
	asm volatile("sti" ::: "memory");
}

static inline bool irqs_disabled_flags(unsigned long flags)
{
	return !(flags & RFLAGS_IF);
}

static inline bool irqs_disabled(void)
{
	unsigned long flags;
	bool disabled;

	asm volatile("pushfq; popq %1; bt %2, %1"
		     : "=@ccnc"(disabled), "=r"(flags)
		     : "i"(__builtin_ctzl(RFLAGS_IF))
		     : "memory");
	return disabled;
}

/* Turns interrupts off and returns the state for local_irq_restore(). */
static inline unsigned long local_irq_save(void)
{
	unsigned long flags = local_save_flags();

	local_irq_disable();
	return flags;
}

static inline void local_irq_restore(unsigned long flags)
{
	if (!irqs_disabled_flags(flags))
		local_irq_enable();
}

#endif
