// SPDX-License-Identifier: BSD-2-Clause
/*
 * QEMU's machine `virt`: CPUs by PSCI, the GICv2 interrupt controller, the virtual timer, the
 * console.
 */

#include "../kernel.h"
#include "../virt/fdt.h"

#define DEVICE_TREE	 ((const void *)0x40000000) /* QEMU puts it at the start of memory */
#define UART		 (*(volatile u32 *)0x09000000)
#define GIC(offset)	 (*(volatile u32 *)(0x08000000ul + (offset))) /* the distributor */
#define GIC_CPU(offset)	 (*(volatile u32 *)(0x08010000ul + (offset))) /* this CPU's interface */
#define GIC_ENABLE	 0x000					      /* of both */
#define GIC_SET_ENABLE	 0x100
#define GIC_PRIORITIES	 0x004
#define GIC_ACKNOWLEDGE	 0x00c
#define GIC_END		 0x010
#define IRQ_TIMER	 27
#define IRQ_SPURIOUS	 1023
#define PSCI_CPU_ON	 0xc4000003
#define SEMIHOSTING_EXIT 0x18
#define EXIT_BY_PROGRAM	 0x20026

u64 cycles_per_second;

extern const char vectors[], cpu_entry[];
void boot(void);
void exception(struct pt_regs *regs, u64 is_interrupt);

void console_put(char c)
{
	UART = c; /* QEMU takes each byte at once */
}

void exit_qemu(u32 status)
{
	u64 reason[] = { EXIT_BY_PROGRAM, status };

	for (;;) {
		register u64 x0 asm("x0") = SEMIHOSTING_EXIT;
		register u64 *x1 asm("x1") = reason;

		asm volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
	}
}

static void set_timer(void)
{
	asm volatile("msr cntv_cval_el0, %0" : : "r"(next_tick()));
}

void cpu_init(void)
{
	asm volatile("msr vbar_el1, %0; isb" : : "r"(vectors));
	GIC(GIC_ENABLE) = 1;
	GIC(GIC_SET_ENABLE) = 1u << IRQ_TIMER;
	GIC_CPU(GIC_PRIORITIES) = 0xff;
	GIC_CPU(GIC_ENABLE) = 1;
	set_timer();
	asm volatile("msr cntv_ctl_el0, %0" : : "r"(1ul));
}

static long psci_cpu_on(u64 cpu, u64 entry, u64 arg)
{
	register u64 x0 asm("x0") = PSCI_CPU_ON;
	register u64 x1 asm("x1") = cpu;
	register u64 x2 asm("x2") = entry;
	register u64 x3 asm("x3") = arg;

	asm volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
	return x0;
}

void start_cpus(void)
{
	for (u64 cpu = 1; cpu < NR_CPUS; cpu++) {
		u64 stack = (u64)battery_zalloc(STACK_BYTES) + STACK_BYTES;

		if (psci_cpu_on(cpu, (u64)cpu_entry, stack))
			break; /* there is no such CPU */
		while (pf_load_acquire(&nr_cpus_up) == cpu)
			battery_relax();
	}
}

void boot(void)
{
	asm volatile("mrs %0, cntfrq_el0" : "=r"(cycles_per_second));
	start_kernel(fdt_property(DEVICE_TREE, "bootargs") ?: "");
}

void exception(struct pt_regs *regs, u64 is_interrupt)
{
	u64 now = battery_cycles(), syndrome;
	u32 irq;

	if (!is_interrupt) {
		asm volatile("mrs %0, esr_el1" : "=r"(syndrome));
		panic(regs, syndrome);
	}
	irq = GIC_CPU(GIC_ACKNOWLEDGE);
	if ((irq & 0x3ff) != IRQ_SPURIOUS)
		GIC_CPU(GIC_END) = irq;
	if ((irq & 0x3ff) == IRQ_TIMER) {
		set_timer();
		tick(regs, now);
	}
}
