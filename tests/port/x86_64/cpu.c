// SPDX-License-Identifier: BSD-2-Clause
/*
 * The PC: CPUs, the local APIC with its timer, the serial console, and the end of QEMU.
 */

#include "../kernel.h"

#define COM1		0x3f8
#define DEBUG_EXIT	0xf4
#define PIC1_DATA	0x21
#define PIC2_DATA	0xa1
#define FW_CFG_SELECT	0x510 /* QEMU tells how many CPUs there are */
#define FW_CFG_DATA	0x511
#define FW_CFG_NR_CPUS	5
#define PIT_CHANNEL2	0x42
#define PIT_COMMAND	0x43
#define PIT_ONE_SHOT	0xb0 /* channel 2, low byte then high byte, mode 0 */
#define PIT_CONTROL	0x61
#define PIT_IS_DONE	0x20
#define PIT_HZ		1193182
#define CLOCK_HZ	20 /* clocks are measured for a 20th of a second */
#define APIC(offset)	(*(volatile u32 *)(0xfee00000ul + (offset)))
#define APIC_EOI	0xb0
#define APIC_SPURIOUS	0xf0
#define APIC_COMMAND	0x300 /* the ICR */
#define APIC_TIMER	0x320
#define APIC_COUNT	0x380
#define APIC_COUNT_LEFT 0x390
#define APIC_DIVIDE	0x3e0
#define APIC_DIVIDE_1	0xb
#define APIC_ENABLE	0x100
#define INIT_OTHERS	0xc4500
#define STARTUP_OTHERS	0xc4600 /* and the page of the trampoline */
#define TRAMPOLINE	0x8000
#define MSR_GS_BASE	0xc0000101
#define TIMER_VECTOR	32
#define SPURIOUS_VECTOR 33
#define NR_VECTORS	34
#define CODE_SELECTOR	8
#define GATE_PRESENT	0x8e00 /* an interrupt gate */

u64 cycles_per_second = 1000000000; /* until it has been measured */
static u64 apic_per_second;
static struct cpu *this_cpus[NR_CPUS]; /* gs leads to an element */

struct gate {
	u16 offset_low, selector, flags, offset_middle;
	u32 offset_high, reserved;
};

extern const char vectors[], trampoline[], trampoline_end[];
extern u64 boot_info;
void boot(void);
void start_numbered_cpu(u32 number);
void interrupt(struct pt_regs *regs);

static void outb(u16 port, u8 value)
{
	asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static u8 inb(u16 port)
{
	u8 value;

	asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

void console_put(char c)
{
	outb(COM1, c); /* QEMU takes each byte at once */
}

void exit_qemu(u32 status)
{
	for (;;)
		outb(DEBUG_EXIT, status);
}

void set_this_cpu(struct cpu *cpu)
{
	u64 base = (u64)&this_cpus[cpu->id];

	this_cpus[cpu->id] = cpu;
	asm volatile("wrmsr" : : "c"(MSR_GS_BASE), "a"((u32)base), "d"((u32)(base >> 32)));
}

static void set_timer(void)
{
	u64 cycles = next_tick() - battery_cycles();

	APIC(APIC_COUNT) = pf_max(cycles * apic_per_second / cycles_per_second, 1ul);
}

/* Measures the TSC and the APIC's timer by the PIT. */
static void measure_clocks(void)
{
	u64 start;

	outb(PIT_CONTROL, 1);
	outb(PIT_COMMAND, PIT_ONE_SHOT);
	outb(PIT_CHANNEL2, PIT_HZ / CLOCK_HZ & 0xff);
	outb(PIT_CHANNEL2, PIT_HZ / CLOCK_HZ >> 8);
	APIC(APIC_COUNT) = ~0u;
	start = battery_cycles();
	while (!(inb(PIT_CONTROL) & PIT_IS_DONE))
		;
	cycles_per_second = (battery_cycles() - start) * CLOCK_HZ;
	apic_per_second = (u64)(~0u - APIC(APIC_COUNT_LEFT)) * CLOCK_HZ;
}

void cpu_init(void)
{
	static struct gate gates[NR_VECTORS];
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) table = { sizeof(gates) - 1, (u64)gates };

	for (u64 i = 0; i < NR_VECTORS; i++) {
		u64 entry = (u64)vectors + 16 * i;

		gates[i] = (struct gate){ entry,       CODE_SELECTOR, GATE_PRESENT,
					  entry >> 16, entry >> 32,   0 };
	}
	asm volatile("lidt %0" : : "m"(table));
	APIC(APIC_SPURIOUS) = APIC_ENABLE | SPURIOUS_VECTOR;
	APIC(APIC_DIVIDE) = APIC_DIVIDE_1;
	APIC(APIC_TIMER) = TIMER_VECTOR;
	if (!apic_per_second)
		measure_clocks();
	set_timer();
}

void start_cpus(void)
{
	u32 nr;

	outb(FW_CFG_SELECT, FW_CFG_NR_CPUS);
	outb(FW_CFG_SELECT + 1, 0);
	nr = pf_min((u32)inb(FW_CFG_DATA), (u32)NR_CPUS);
	memcpy((void *)TRAMPOLINE, trampoline, trampoline_end - trampoline);
	APIC(APIC_COMMAND) = INIT_OTHERS;
	APIC(APIC_COMMAND) = STARTUP_OTHERS | TRAMPOLINE >> 12;
	while (pf_load_acquire(&nr_cpus_up) < nr)
		battery_relax();
}

/* CPUs start all at once, but have to come to start_cpu() one after the other. */
void start_numbered_cpu(u32 number)
{
	while (number >= NR_CPUS || pf_load_acquire(&nr_cpus_up) != number)
		battery_relax();
	start_cpu();
}

void boot(void)
{
	outb(PIC1_DATA, 0xff); /* no interrupts from devices */
	outb(PIC2_DATA, 0xff);
	start_kernel((const char *)*(u64 *)(boot_info + 24)); /* hvm_start_info.cmdline */
}

/* Called by boot.S for each exception and interrupt, with interrupts off. */
void interrupt(struct pt_regs *regs)
{
	u64 now = battery_cycles();

	if (regs->vector < TIMER_VECTOR)
		panic(regs, regs->vector);
	if (regs->vector == TIMER_VECTOR) {
		APIC(APIC_EOI) = 0;
		set_timer();
		tick(regs, now);
	}
}
