// SPDX-License-Identifier: BSD-2-Clause
/*
 * A periodic NMI for all CPUs: a timer's interrupt through the IOAPIC, delivered as NMI to physical
 * destination 0xff, which is everyone. The timer is the HPET's first comparator in periodic mode
 * (IA-PC HPET specification 1.0a, 2.3.9.2), else the PIT's channel 0 (8254, mode 2). Neither needs
 * anything in the handler. The HPET has no interrupt of its own before, and nothing else uses it
 * once the clocks are calibrated.
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

#define HPET_ENABLE	   BIT(0)
#define HPET_T0_INTERRUPT  BIT(2)
#define HPET_T0_PERIODIC   BIT(3)
#define HPET_T0_CAN_REPEAT BIT(4)
#define HPET_T0_SET_PERIOD BIT(6) /* the next write to the comparator; clears itself */
#define HPET_T0_32_BITS	   BIT(8) /* compare only these */
#define HPET_T0_PIN_SHIFT  9

/* Pins of a PC below this have an ISA interrupt, perhaps. */
#define FIRST_FREE_PIN 16
#define LAST_PIN       31

#define FS_PER_SECOND	 1000000000000000ULL
#define MIN_HPET_COUNTS	 100
#define MAX_MOVED_COUNTS (1u << 29) /* so that the next is in the future of 32 bits */

#define PIT_HZ	      1193182
#define PIT_CHANNEL_0 0x40
#define PIT_COMMAND   0x43
#define PIT_RATE      0x34 /* channel 0, both bytes, mode 2 */
#define PIT_LATCH     0x00 /* its count */
#define MAX_PIT_READS 1000

static int nmi_gsi = -1; /* the pin that sends them; -1: none */

/*
 * Of the HPET: counts of a period, and of what of it leaves an eighth; where the period of the next
 * NMI begins; what sets the comparator.
 */
static u32 hpet_counts, hpet_most_counts, hpet_slot, hpet_set_comparator;

static void hpet_write(unsigned int offset, u32 value)
{
	writel(value, (volatile u8 *)hpet_registers + offset);
}

static u32 hpet_read(unsigned int offset)
{
	return readl((volatile u8 *)hpet_registers + offset);
}

/* Of those the comparator can be routed to, the last one: the first are more likely shared. */
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

/*
 * The comparator first takes where the first interrupt comes, then the period. Its high half is all
 * ones after a reset: left so, it would be in the past. With jitter 32 bits are compared, so that
 * one write says where the next interrupt comes.
 */
static bool start_hpet(u32 hz, bool *jitter, u64 *period, u64 *start)
{
	unsigned long flags;
	u64 counts;
	u32 config;
	int pin;

	if (!hpet_period_fs || !(hpet_read(HPET_T0_CONFIG) & HPET_T0_CAN_REPEAT))
		return false;
	counts = (FS_PER_SECOND / hz + hpet_period_fs / 2) / hpet_period_fs;
	pin = find_hpet_pin();
	if (pin < 0 || counts < MIN_HPET_COUNTS || counts > ~0u)
		return false;
	if (counts > MAX_MOVED_COUNTS)
		*jitter = false;
	*period = mul_div_u64(counts * hpet_period_fs, tsc_khz << 16, FS_PER_SECOND / 1000);

	flags = local_irq_save();
	stop_hpet();
	hpet_write(HPET_COUNTER, 0);
	hpet_write(HPET_COUNTER + 4, 0);
	ioapic_write_entry(pin, IOAPIC_NMI_TO_ALL);
	config = (u32)pin << HPET_T0_PIN_SHIFT | HPET_T0_SET_PERIOD | HPET_T0_PERIODIC |
		 HPET_T0_INTERRUPT | (*jitter ? HPET_T0_32_BITS : 0);
	hpet_counts = counts;
	hpet_most_counts = counts - counts / 8;
	hpet_slot = 0; /* the first comes in this one */
	hpet_set_comparator = config;
	hpet_write(HPET_T0_CONFIG, config);
	hpet_write(HPET_T0_COMPARATOR, *jitter ? counts / 2 : counts);
	hpet_write(HPET_T0_CONFIG, config);
	hpet_write(HPET_T0_COMPARATOR + 4, 0);
	hpet_write(HPET_T0_CONFIG, config);
	hpet_write(HPET_T0_COMPARATOR, counts);
	hpet_write(HPET_CONFIGURATION, hpet_read(HPET_CONFIGURATION) | HPET_ENABLE);
	*start = rdtsc();
	local_irq_restore(flags);
	nmi_gsi = pin;
	return true;
}

void nmi_sampler_move(u64 random)
{
	/* Each read once: not again behind each access to the device. */
	volatile u8 *hpet = hpet_registers;
	u32 now = readl(hpet + HPET_COUNTER), counts = hpet_counts, slot = hpet_slot;
	u32 passed = now - slot, at;

	slot += counts;
	at = slot + (random * counts >> 32);
	if (unlikely(passed > hpet_most_counts)) {
		/* Somebody else's NMI, before it is time. */
		if ((s32)passed < 0)
			return;
		/* Those of NMIs that did not come are left out; this one's may be just over. */
		if (passed >= 2 * counts) {
			slot += passed / counts * counts;
			at += passed / counts * counts;
		}
		if ((s32)(at - now) < (s32)(counts / 8))
			at = now + counts / 8;
	}
	hpet_slot = slot;
	/* The second write is the period, should there be no move next time. */
	writel(hpet_set_comparator, hpet + HPET_T0_CONFIG);
	writel(at, hpet + HPET_T0_COMPARATOR);
	writel(counts, hpet + HPET_T0_COMPARATOR);
}

static u32 read_pit(void)
{
	u32 count;

	outb(PIT_LATCH, PIT_COMMAND);
	count = inb(PIT_CHANNEL_0);
	return count | (u32)inb(PIT_CHANNEL_0) << 8;
}

/* Machines without one read as some constant. */
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

static bool start_pit(u32 hz, u64 *period, u64 *start)
{
	u32 counts = (PIT_HZ + hz / 2) / hz, gsi = acpi_info.isa_irqs[0].gsi;
	unsigned long flags;
	bool found;

	if (counts > 0xffff || ioapic_write_entry(gsi, IOAPIC_MASKED))
		return false;
	*period = mul_div_u64(counts, (tsc_khz * 1000) << 16, PIT_HZ);
	flags = local_irq_save();
	outb(PIT_RATE, PIT_COMMAND);
	outb(counts & 0xff, PIT_CHANNEL_0);
	outb(counts >> 8, PIT_CHANNEL_0);
	*start = rdtsc();
	found = pit_counts();
	if (found) {
		nmi_gsi = gsi;
		ioapic_write_entry(gsi, IOAPIC_NMI_TO_ALL);
	}
	local_irq_restore(flags);
	return found;
}

const char *nmi_sampler_start(u32 hz, bool *jitter, u64 *period, u64 *start)
{
	if (start_hpet(hz, jitter, period, start))
		return "HPET";
	*jitter = false;
	if (start_pit(hz, period, start))
		return "PIT";
	return NULL;
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
