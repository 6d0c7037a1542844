// SPDX-License-Identifier: BSD-2-Clause
/*
 * The machine: a serial console, the PIT's periodic tick through the PIC, boot parameters, and
 * the end of QEMU.
 */

#include "task.h"

#include <batteries/symbols.h>

#define COM1	      0x3f8
#define DEBUG_EXIT    0xf4
#define PIC1	      0x20
#define PIC2	      0xa0
#define PIC_EOI	      0x20
#define PIT_CHANNEL0  0x40
#define PIT_COMMAND   0x43
#define PIT_PERIODIC  0x34 /* channel 0, low byte then high byte, mode 2 */
#define PIT_HZ	      1193182
#define TIMER_VECTOR  32
#define NR_VECTORS    33
#define CODE_SELECTOR 8
#define GATE_PRESENT  0x8e00 /* an interrupt gate */
#define CLOCK_TICKS   50     /* the TSC's frequency is measured for so long */

volatile u64 nr_ticks;
u64 cycles_per_second = 1000000000; /* until it has been measured */
bool panicking;

struct gate {
	u16 offset_low, selector, flags, offset_middle;
	u32 offset_high, reserved;
};

extern const char vectors[];
extern const struct boot_param boot_params_begin[], boot_params_end[];
extern u64 boot_info;

static void put_line(const char *line)
{
	for (; *line; line++)
		outb(COM1, *line); /* QEMU takes each byte at once */
}

int vprintk(const char *fmt, va_list args)
{
	static char line[1024];
	u64 us = cycles_to_ns(read_cycles()) / 1000, flags = irq_save();
	int len = snprintf(line, sizeof(line), "[%5lu.%06lu] ", us / 1000000, us % 1000000);

	len += vsnprintf(line + len, sizeof(line) - len, fmt, args);
	put_line(line);
	irq_restore(flags);
	return len;
}

int printk(const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vprintk(fmt, args);
	va_end(args);
	return len;
}

void exit_qemu(u32 status)
{
	for (;;)
		outb(DEBUG_EXIT, status);
}

/* Called by boot.S for each exception and interrupt, with interrupts off. */
void interrupt(struct pt_regs *regs);
void interrupt(struct pt_regs *regs)
{
	u64 start;

	if (regs->vector == TIMER_VECTOR) {
		profile_tick(regs, os_cycles());
		nr_ticks++;
		outb(PIC1, PIC_EOI);
		return;
	}
	panicking = true;
	printk("Kernel panic: exception %lu at %lx (%s)\n", regs->vector, regs->rip,
	       battery_symbol(regs->rip, &start) ?: "?");
	profile_report("panic");
	exit_qemu(1);
}

static void init_vectors(void)
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
}

/* Moves the PICs' vectors behind the exceptions (ICW1 to ICW4), and masks all but the PIT. */
static void init_timer(void)
{
	static const u8 commands[][2] = { { 0x11, 0x11 },
					  { TIMER_VECTOR, TIMER_VECTOR + 8 },
					  { 4, 2 },
					  { 1, 1 },
					  { 0xfe, 0xff } };

	for (u32 i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		outb(PIC1 + (i > 0), commands[i][0]);
		outb(PIC2 + (i > 0), commands[i][1]);
	}
	outb(PIT_COMMAND, PIT_PERIODIC);
	outb(PIT_CHANNEL0, (PIT_HZ / TICK_HZ) & 0xff);
	outb(PIT_CHANNEL0, (PIT_HZ / TICK_HZ) >> 8);
}

static u64 cycles_at_tick(u64 tick)
{
	while (nr_ticks < tick)
		wait_for_interrupt();
	return read_cycles();
}

void cpu_init(void)
{
	u64 start;

	init_vectors();
	init_timer();
	irq_restore(FLAGS_INTERRUPTS);
	start = cycles_at_tick(1);
	cycles_per_second = (cycles_at_tick(1 + CLOCK_TICKS) - start) * TICK_HZ / CLOCK_TICKS;
}

static void set_boot_param(char *word)
{
	for (const struct boot_param *param = boot_params_begin; param < boot_params_end; param++) {
		size_t len = strlen(param->name);

		if (!memcmp(word, param->name, len) && word[len] == '=' &&
		    param->set(word + len + 1))
			printk("boot parameter: %s is not valid\n", word);
	}
}

/* Parses "name=value" words, separated by spaces. Unknown ones are ignored. */
void parse_boot_params(void)
{
	static char words[1024];
	const char *line = (const char *)*(u64 *)(boot_info + 24); /* hvm_start_info.cmdline */
	size_t len = strlen(line);
	char *word = words, *end;

	if (len >= sizeof(words))
		return;
	memcpy(words, line, len + 1);
	for (; *word; word = end) {
		for (end = word; *end && *end != ' '; end++)
			;
		if (*end)
			*end++ = '\0';
		set_boot_param(word);
	}
}
