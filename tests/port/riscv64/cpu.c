// SPDX-License-Identifier: BSD-2-Clause
/* QEMU's machine `virt` with OpenSBI: harts, their timers, the console. */

#include "../kernel.h"
#include "../virt/fdt.h"

#define UART	       ((volatile u8 *)0x10000000)
#define TEST_DEVICE    (*(volatile u32 *)0x100000) /* ends QEMU with a status */
#define TEST_FAIL      0x3333
#define SBI_SET_TIMER  0x54494d45 /* extensions; of each, the first function is called */
#define SBI_HART_START 0x48534d
#define CAUSE_TIMER    (1ul << 63 | 5)
#define IRQ_TIMER      (1ul << 5) /* in the register sie */

u64 cycles_per_second = 10000000; /* until the device tree has said it */

extern const char trap_entry[], hart_entry[];
void boot(u64 hart, const void *device_tree);
void trap(struct pt_regs *regs, u64 cause);

static long sbi_call(u64 extension, u64 arg0, u64 arg1, u64 arg2)
{
	register u64 a0 asm("a0") = arg0;
	register u64 a1 asm("a1") = arg1;
	register u64 a2 asm("a2") = arg2;
	register u64 a6 asm("a6") = 0;
	register u64 a7 asm("a7") = extension;

	asm volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a6), "r"(a7) : "memory");
	return a0;
}

void console_put(char c)
{
	*UART = c; /* QEMU takes each byte at once */
}

void exit_qemu(u32 status)
{
	for (;;)
		TEST_DEVICE = status << 16 | TEST_FAIL;
}

static void set_timer(void)
{
	sbi_call(SBI_SET_TIMER, next_tick(), 0, 0);
}

void cpu_init(void)
{
	asm volatile("csrw stvec, %0" : : "r"(trap_entry));
	asm volatile("csrw sie, %0" : : "r"(IRQ_TIMER));
	set_timer();
}

void start_cpus(void)
{
	for (u64 hart = 0; hart < NR_CPUS; hart++) {
		u32 nr_before = nr_cpus_up;
		u64 stack = (u64)battery_zalloc(STACK_BYTES) + STACK_BYTES;

		/* Fails for the hart that runs this, and for those that there are not. */
		if (sbi_call(SBI_HART_START, hart, (u64)hart_entry, stack))
			continue;
		while (pf_load_acquire(&nr_cpus_up) == nr_before)
			battery_relax();
	}
}

void boot(u64 hart, const void *device_tree)
{
	const void *rate = fdt_property(device_tree, "timebase-frequency");

	if (rate)
		cycles_per_second = fdt_word(rate);
	start_kernel(fdt_property(device_tree, "bootargs") ?: "");
}

void trap(struct pt_regs *regs, u64 cause)
{
	u64 now = battery_cycles();

	if (cause != CAUSE_TIMER)
		panic(regs, cause);
	set_timer();
	tick(regs, now);
}
