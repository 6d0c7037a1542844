// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends NMIs to all CPUs, one in each period: the interrupt of a timer goes through the IOAPIC,
 * delivered as NMI to physical destination 0xff, all CPUs. The timer is the HPET's first comparator
 * (IA-PC HPET specification 1.0a, 2.3.9.2); the boot CPU's handler sets it for each next NMI.
 * Without an HPET it is the PIT's channel 0 (8254, mode 2), which needs no code in the handler.
 * Nothing else uses the HPET once the clocks are calibrated.
 *
 * The comparator's periodic mode is not used: under icount, QEMU's HPET fires a second time 10 ns
 * after each tick, and a handler cannot distinguish such an NMI from one that is due.
 */
#include <asm/nmi_sampler.h>

#include <asm/acpi.h>
#include <asm/apic.h>
#include <asm/hpet.h>
#include <asm/io.h>
#include <asm/irqflags.h>
#include <asm/processor.h>
#include <lego/kernel.h>
#include <lego/math64.h>
#include <lego/smp.h>
#include <lego/time.h>

#define HPET_CONFIGURATION 0x010
#define HPET_COUNTER	   0x0f0
#define HPET_T0_CONFIG	   0x100
#define HPET_T0_ROUTES	   0x104
#define HPET_T0_COMPARATOR 0x108

#define HPET_ENABLE	  BIT(0)
#define HPET_T0_INTERRUPT BIT(2)
#define HPET_T0_HAS_64	  BIT(5) /* it has 64 bits */
#define HPET_T0_PIN_SHIFT 9

/* Pins of a PC below this have an ISA interrupt, perhaps. */
#define FIRST_FREE_PIN 16
#define LAST_PIN       31

#define FS_PER_SECOND	1000000000000000ULL
#define MIN_HPET_COUNTS 100
#define MAX_HPET_COUNTS (1u << 29) /* so that the next is in the future of 32 bits */

#define PIT_HZ	      1193182
#define PIT_CHANNEL_0 0x40
#define PIT_COMMAND   0x43
#define PIT_RATE      0x34 /* channel 0, both bytes, mode 2 */
#define PIT_LATCH     0x00 /* its count */
#define MAX_PIT_READS 1000

static int nmi_gsi = -1; /* the pin that sends them; -1: none */

/*
 * The HPET's slots: each is one period long and has one NMI. Written by the boot CPU's handler, and
 * before NMIs come.
 */
static struct {
	u64 period;	 /* in counts, times 2^32 */
	u32 fraction;	 /* fraction of a count by which the slot begins after `slot`, times 2^32 */
	u64 slot;	 /* start of the next NMI's slot, in counts */
	u64 next;	 /* time of the next NMI, in counts */
	u32 jitter;	 /* the NMI comes within so many counts of the slot's start */
	u32 least;	 /* the least number of counts between two NMIs */
	bool is_64_bits; /* the comparator */
} hpet;

static u32 pit_counts_of_period;
static u64 pit_start_cycles;

static void hpet_write(unsigned int offset, u32 value)
{
	writel(value, (volatile u8 *)hpet_registers + offset);
}

static u32 hpet_read(unsigned int offset)
{
	return readl((volatile u8 *)hpet_registers + offset);
}

/*
 * Returns the last pin that the comparator can be routed to, because the first ones are more likely
 * shared.
 */
static int find_hpet_pin(void)
{
	u32 routes = hpet_read(HPET_T0_ROUTES);

	for (int pin = LAST_PIN; pin >= FIRST_FREE_PIN; pin--)
		if (routes >> pin & 1 && !ioapic_write_entry(pin, IOAPIC_MASKED))
			return pin;
	return -1;
}

static void stop_hpet(void)
{
	hpet_write(HPET_CONFIGURATION, hpet_read(HPET_CONFIGURATION) & ~(u32)HPET_ENABLE);
	hpet_write(HPET_T0_CONFIG, 0);
}

static u64 hpet_read_64(void)
{
	u32 high, low;

	do {
		high = hpet_read(HPET_COUNTER + 4);
		low = hpet_read(HPET_COUNTER);
	} while (hpet_read(HPET_COUNTER + 4) != high);
	return (u64)high << 32 | low;
}

static void set_comparator(u64 at)
{
	/*
	 * The high half changes, so it is set first: the comparator is in the far future until the
	 * low half is set.
	 */
	if (unlikely((hpet.next ^ at) >> 32) && hpet.is_64_bits)
		hpet_write(HPET_T0_COMPARATOR + 4, at >> 32);
	hpet.next = at;
	hpet_write(HPET_T0_COMPARATOR, at);
}

static bool start_hpet(u32 hz, bool jitter)
{
	unsigned long flags;
	u64 period;
	int pin;

	if (!hpet_period_fs)
		return false;
	period = mul_div_u64(FS_PER_SECOND, 1ul << 32, hz * hpet_period_fs);
	pin = find_hpet_pin();
	if (pin < 0 || period >> 32 < MIN_HPET_COUNTS || period >> 32 > MAX_HPET_COUNTS)
		return false;

	flags = local_irq_save();
	stop_hpet();
	hpet_write(HPET_COUNTER, 0);
	hpet_write(HPET_COUNTER + 4, 0);
	hpet.period = period;
	hpet.fraction = 0;
	hpet.slot = 0; /* the first comes in this one */
	hpet.jitter = jitter ? period >> 32 : 0;
	hpet.least = (period >> 32) / 8;
	hpet.is_64_bits = hpet_read(HPET_T0_CONFIG) & HPET_T0_HAS_64;
	ioapic_write_entry(pin, IOAPIC_NMI_TO_ALL);
	hpet_write(HPET_T0_CONFIG, (u32)pin << HPET_T0_PIN_SHIFT | HPET_T0_INTERRUPT);
	if (hpet.is_64_bits)
		hpet_write(HPET_T0_COMPARATOR + 4, 0);
	hpet.next = 0;
	set_comparator((period >> 32) / 2);
	hpet_write(HPET_CONFIGURATION, hpet_read(HPET_CONFIGURATION) | HPET_ENABLE);
	local_irq_restore(flags);
	nmi_gsi = pin;
	return true;
}

/* Moves to the next slot, with its start's fraction of a count. */
static void next_slot(void)
{
	u64 fraction = (u64)hpet.fraction + (u32)hpet.period;

	hpet.fraction = fraction;
	hpet.slot += (hpet.period >> 32) + (fraction >> 32);
}

/*
 * Skips the slots that end too soon: the code that the NMIs interrupt gets as much time as they
 * take, with the time that the host or, with instructions as time, the other CPUs have taken. So
 * NMIs never take all of the time, at no rate.
 */
void nmi_sampler_move(u64 random)
{
	u32 late = hpet_read(HPET_COUNTER) - (u32)hpet.next, counts = hpet.period >> 32, least;
	u64 now = hpet.next + late, at;

	/* An NMI of another source, or of a 32-bit comparator when the counter wraps around. */
	if (unlikely((s32)late < 0))
		return;
	least = max(hpet.least, min(late, MAX_HPET_COUNTS));
	next_slot();
	/* Skips slots that are over: their NMIs did not come. */
	while (unlikely(now + least >= hpet.slot + counts))
		next_slot();
	at = hpet.slot + (random * hpet.jitter >> 32);
	/*
	 * If the time has passed when the comparator is set, the NMI would not come for minutes, so
	 * try again.
	 */
	for (;;) {
		at = max(at, now + least);
		set_comparator(at);
		late = hpet_read(HPET_COUNTER) - (u32)at;
		if (likely((s32)late < 0))
			return;
		now = at + late;
	}
}

static u32 read_pit(void)
{
	u32 count;

	outb(PIT_LATCH, PIT_COMMAND);
	count = inb(PIT_CHANNEL_0);
	return count | (u32)inb(PIT_CHANNEL_0) << 8;
}

/* Returns true if the PIT counts. Without a PIT, reads return a constant. */
static bool pit_counts(void)
{
	u32 count = read_pit();

	for (int i = 0; i < MAX_PIT_READS; i++) {
		if (read_pit() != count)
			return true;
		cpu_relax();
	}
	return false;
}

static bool start_pit(u32 hz)
{
	u32 counts = (PIT_HZ + hz / 2) / hz, gsi = acpi_info.isa_irqs[0].gsi;
	unsigned long flags;
	bool found;

	if (counts > 0xffff || ioapic_write_entry(gsi, IOAPIC_MASKED))
		return false;
	pit_counts_of_period = counts;
	flags = local_irq_save();
	outb(PIT_RATE, PIT_COMMAND);
	outb(counts & 0xff, PIT_CHANNEL_0);
	outb(counts >> 8, PIT_CHANNEL_0);
	pit_start_cycles = rdtsc();
	found = pit_counts();
	if (found) {
		nmi_gsi = gsi;
		ioapic_write_entry(gsi, IOAPIC_NMI_TO_ALL);
	}
	local_irq_restore(flags);
	return found;
}

const char *nmi_sampler_start(u32 hz, bool *jitter, bool *moves)
{
	*moves = true;
	pit_counts_of_period = 0;
	if (start_hpet(hz, *jitter))
		return "HPET";
	*moves = *jitter = false;
	if (start_pit(hz))
		return "PIT";
	return NULL;
}

u64 nmi_sampler_slots(void)
{
	if (pit_counts_of_period)
		return mul_div_u64(rdtsc() - pit_start_cycles, PIT_HZ,
				   tsc_khz * 1000 * pit_counts_of_period);
	return mul_div_u64(hpet_read_64(), 1ul << 32, hpet.period);
}

void nmi_sampler_stop(void)
{
	if (nmi_gsi >= 0)
		ioapic_write_entry(nmi_gsi, IOAPIC_MASKED);
	if (hpet_period_fs)
		stop_hpet();
	nmi_gsi = -1;
}

void nmi_sampler_send(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		if (cpu != smp_processor_id())
			apic_send_nmi(cpu);
	}
}
