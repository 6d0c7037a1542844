// SPDX-License-Identifier: BSD-2-Clause
/*
 * The idle loop. It checks need_resched with interrupts off; sti; hlt turns them on atomically with
 * the halt, so an interrupt that sets need_resched after the check ends the hlt. Samples of an idle
 * CPU hit this function.
 */

#include <lego/sched.h>

#include <asm/irqflags.h>

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
