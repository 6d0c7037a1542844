// SPDX-License-Identifier: BSD-2-Clause
/*
 * The local APIC in xAPIC mode: the registers are in an uncached page, in which every CPU sees its
 * own (SDM vol. 3, chapter 10). An interrupt command is two writes, high half first, so interrupts
 * are off in between; an NMI in between that sends too would redirect the first command, which is
 * why only a dying machine sends from NMI.
 */
#include <asm/apic.h>

#include <asm/acpi.h>
#include <asm/cpufeature.h>
#include <asm/io.h>
#include <asm/irqflags.h>
#include <asm/msr.h>
#include <asm/smp.h>
#include <asm/tick.h>
#include <asm/vectors.h>
#include <asm/processor.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/printk.h>
#include <lego/vmap.h>

#define APIC_BASE_X2APIC BIT(10)
#define APIC_BASE_ENABLE BIT(11)
#define APIC_BASE_PAGE	 0x000ffffffffff000ULL

enum apic_register {
	APIC_TPR = 0x80,
	APIC_SPURIOUS = 0xf0,
	APIC_ESR = 0x280,
	APIC_ICR_LOW = 0x300,
	APIC_ICR_HIGH = 0x310,
	APIC_LVT_TIMER = 0x320,
	APIC_LVT_THERMAL = 0x330,
	APIC_LVT_PERF = 0x340,
	APIC_LVT_LINT0 = 0x350,
	APIC_LVT_LINT1 = 0x360,
	APIC_LVT_ERROR = 0x370,
	APIC_TIMER_CURRENT = 0x390,
	APIC_TIMER_DIVIDE = 0x3e0,
	APIC_VERSION = 0x30,
};

#define SPURIOUS_ENABLE BIT(8)
#define LVT_MASKED	BIT(16)
#define MODE_NMI	(4u << 8)
#define MODE_INIT	(5u << 8)
#define MODE_STARTUP	(6u << 8)
#define ICR_PENDING	BIT(12)
#define ICR_ASSERT	BIT(14)
#define ICR_LEVEL	BIT(15)
#define ICR_OTHERS	(3u << 18) /* to all CPUs but this one */
#define DIVIDE_BY_1	0xb

/*
 * A command is accepted within microseconds. The bound is for a local APIC that never accepts it.
 */
#define MAX_ICR_POLLS 1000000

u64 apic_timer_hz;

volatile u8 *apic_registers;
static u32 nr_error_interrupts;

static u32 apic_read(enum apic_register reg)
{
	return readl(apic_registers + reg);
}

static void apic_write(enum apic_register reg, u32 value)
{
	writel(value, apic_registers + reg);
}

static void send_command(u32 apic_id, u32 command)
{
	unsigned long flags = local_irq_save();

	for (int i = 0; i < MAX_ICR_POLLS && (apic_read(APIC_ICR_LOW) & ICR_PENDING); i++)
		cpu_relax();
	apic_write(APIC_ICR_HIGH, apic_id << 24);
	apic_write(APIC_ICR_LOW, command);
	for (int i = 0; i < MAX_ICR_POLLS && (apic_read(APIC_ICR_LOW) & ICR_PENDING); i++)
		cpu_relax();
	local_irq_restore(flags);
}

void apic_send_ipi(unsigned int cpu, unsigned int vector)
{
	send_command(acpi_info.apic_id[cpu], ICR_ASSERT | vector);
}

void apic_send_nmi(unsigned int cpu)
{
	send_command(acpi_info.apic_id[cpu], ICR_ASSERT | MODE_NMI);
}

void apic_send_init(u32 apic_id)
{
	send_command(apic_id, ICR_LEVEL | ICR_ASSERT | MODE_INIT);
	send_command(apic_id, ICR_LEVEL | MODE_INIT);
}

/* Edge-triggered: with this destination, there is no level (SDM vol. 3, table 10-3). */
void apic_send_init_others(void)
{
	send_command(0, ICR_OTHERS | ICR_ASSERT | MODE_INIT);
}

void apic_send_startup(u32 apic_id, unsigned int page)
{
	send_command(apic_id, ICR_ASSERT | MODE_STARTUP | page);
}

void apic_timer_count(void)
{
	apic_write(APIC_LVT_TIMER, LVT_MASKED | VECTOR_TIMER);
	apic_write(APIC_TIMER_DIVIDE, DIVIDE_BY_1);
	apic_write(APIC_TIMER_INITIAL, ~0u);
}

u32 apic_timer_read(void)
{
	return apic_read(APIC_TIMER_CURRENT);
}

void apic_timer_oneshot(void)
{
	apic_write(APIC_LVT_TIMER, VECTOR_TIMER);
	apic_write(APIC_TIMER_DIVIDE, DIVIDE_BY_1);
}

static void error_interrupt(struct pt_regs *regs)
{
	u32 status;

	/* A write makes the APIC report the errors since the last write. */
	apic_write(APIC_ESR, 0);
	status = apic_read(APIC_ESR);
	apic_eoi();
	if (__atomic_fetch_add(&nr_error_interrupts, 1, __ATOMIC_RELAXED) < 10)
		printk("apic: CPU%u: error status %#x\n", smp_processor_id(), status);
}

static void spurious_interrupt(struct pt_regs *regs)
{
}

/* Leaves x2APIC mode, which firmware may have enabled: in it, the register page does not work. */
static void enable_xapic(void)
{
	u64 base = rdmsr(MSR_APIC_BASE);

	if (base & APIC_BASE_X2APIC) {
		base &= ~(APIC_BASE_X2APIC | APIC_BASE_ENABLE);
		wrmsr(MSR_APIC_BASE, base);
	}
	if (!(base & APIC_BASE_ENABLE))
		wrmsr(MSR_APIC_BASE, base | APIC_BASE_ENABLE);
}

static u32 lint_entry(unsigned int lint)
{
	return acpi_info.lint_nmi[lint] >> smp_processor_id() & 1 ? MODE_NMI : LVT_MASKED;
}

void apic_init_cpu(void)
{
	u32 nr_lvt;

	enable_xapic();
	nr_lvt = (apic_read(APIC_VERSION) >> 16 & 0xff) + 1;
	apic_write(APIC_SPURIOUS, SPURIOUS_ENABLE | VECTOR_SPURIOUS);
	apic_write(APIC_TPR, 0);
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
	if (nr_lvt > 4)
		apic_write(APIC_LVT_PERF, LVT_MASKED);
	if (nr_lvt > 5)
		apic_write(APIC_LVT_THERMAL, LVT_MASKED);
	apic_write(APIC_LVT_LINT0, lint_entry(0));
	apic_write(APIC_LVT_LINT1, lint_entry(1));
	apic_write(APIC_ESR, 0);
	apic_write(APIC_LVT_ERROR, VECTOR_ERROR);
	/* An interrupt that a loader left in service would block all of its priority and below. */
	for (int i = 0; i < 256; i++)
		apic_eoi();
}

/* Moves the legacy controllers' vectors away from the exceptions, then masks all pins. */
static void disable_pics(void)
{
	static const struct {
		u8 port, value;
	} sequence[] = {
		{ 0x20, 0x11 }, { 0xa0, 0x11 }, { 0x21, 0x20 }, { 0xa1, 0x28 }, { 0x21, 0x04 },
		{ 0xa1, 0x02 }, { 0x21, 0x01 }, { 0xa1, 0x01 }, { 0x21, 0xff }, { 0xa1, 0xff },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sequence); i++)
		outb(sequence[i].value, sequence[i].port);
}

void interrupt_init(void)
{
	phys_addr_t base = rdmsr(MSR_APIC_BASE) & APIC_BASE_PAGE;

	if (!(cpuid(1).edx & BIT(9)))
		panic("this CPU has no local APIC");
	if (acpi_info.lapic_address && acpi_info.lapic_address != base)
		printk("apic: the MADT says %#llx, the CPU %#llx: using the CPU's\n",
		       (unsigned long long)acpi_info.lapic_address, (unsigned long long)base);
	apic_registers = ioremap(base, 4096);
	if (!apic_registers)
		panic("no memory to map the local APIC");

	disable_pics();
	irq_set_handler(VECTOR_ERROR, error_interrupt);
	irq_set_handler(VECTOR_SPURIOUS, spurious_interrupt);
	tick_init();
	smp_init_vectors();
	apic_init_cpu();
	ioapic_init();
}
