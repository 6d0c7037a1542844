// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sched.h>

#include <asm/irqflags.h>

/*
 * need_resched is looked at with interrupts off, and hlt enables them in the same step: an
 * interrupt that sets it in between ends the hlt. Samples of an idle CPU land in this function.
 */
void cpu_idle(void)
{
	for (;;) {
		local_irq_disable();
		if (need_resched())
			schedule();
		else
			cpu_wait_for_interrupt();
	}
}
