// SPDX-License-Identifier: BSD-2-Clause
/* The first C code: sets up console and traps, then reads the loader's information. */
#include <lego/boot.h>

#include <asm/desc.h>
#include <asm/setup.h>
#include <asm/uart.h>
#include <lego/sched.h>

void setup_arch(void)
{
	percpu_save_initial();
	idt_init();
	cpu_init(0);
	sched_idle_task(0)->kernel_stack = boot_stack;
	uart_early_init();
	boot_info_init();
}
