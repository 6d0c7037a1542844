// SPDX-License-Identifier: BSD-2-Clause
/*
 * IOAPICs: all pins are masked at boot, then unmasked one by one. A pin is named by its global
 * system interrupt number; ISA interrupts have the number of their pin unless the MADT says
 * otherwise. Register access is an index and a data window, so one at a time.
 */
#include <asm/apic.h>

#include <asm/acpi.h>
#include <asm/io.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/spinlock.h>
#include <lego/vmap.h>

#define REGISTER_SELECT	 0x00
#define REGISTER_WINDOW	 0x10
#define REGISTER_VERSION 0x01
#define REGISTER_ENTRIES 0x10

#define ENTRY_ACTIVE_LOW BIT(13)
#define ENTRY_LEVEL	 BIT(15)
#define ENTRY_MASKED	 BIT(16)

static struct ioapic {
	volatile u8 *registers; /* NULL: could not be mapped */
	u32 gsi_base;
	u32 nr_pins;
} ioapics[MAX_IOAPICS];

static spinlock_t ioapic_lock = SPINLOCK_INIT;

static u32 ioapic_read(const struct ioapic *ioapic, u32 reg)
{
	writel(reg, ioapic->registers + REGISTER_SELECT);
	return readl(ioapic->registers + REGISTER_WINDOW);
}

static void ioapic_write(const struct ioapic *ioapic, u32 reg, u32 value)
{
	writel(reg, ioapic->registers + REGISTER_SELECT);
	writel(value, ioapic->registers + REGISTER_WINDOW);
}

/* Writes an entry. The pin is masked while its halves are inconsistent. */
static void write_pin(const struct ioapic *ioapic, u32 pin, u64 entry)
{
	unsigned long flags = spin_lock_irqsave(&ioapic_lock);

	ioapic_write(ioapic, REGISTER_ENTRIES + 2 * pin, ENTRY_MASKED);
	ioapic_write(ioapic, REGISTER_ENTRIES + 2 * pin + 1, entry >> 32);
	ioapic_write(ioapic, REGISTER_ENTRIES + 2 * pin, (u32)entry);
	spin_unlock_irqrestore(&ioapic_lock, flags);
}

void ioapic_init(void)
{
	for (unsigned int i = 0; i < acpi_info.nr_ioapics; i++) {
		struct ioapic *ioapic = &ioapics[i];

		ioapic->registers = ioremap(acpi_info.ioapics[i].address, 32);
		if (!ioapic->registers) {
			printk("ioapic: no memory to map IOAPIC %u\n", i);
			continue;
		}
		ioapic->gsi_base = acpi_info.ioapics[i].gsi_base;
		ioapic->nr_pins = (ioapic_read(ioapic, REGISTER_VERSION) >> 16 & 0xff) + 1;
		for (u32 pin = 0; pin < ioapic->nr_pins; pin++)
			write_pin(ioapic, pin, ENTRY_MASKED);
	}
}

int ioapic_write_entry(unsigned int gsi, u64 entry)
{
	for (unsigned int i = 0; i < acpi_info.nr_ioapics; i++) {
		const struct ioapic *ioapic = &ioapics[i];

		if (ioapic->registers && gsi >= ioapic->gsi_base &&
		    gsi - ioapic->gsi_base < ioapic->nr_pins) {
			write_pin(ioapic, gsi - ioapic->gsi_base, entry);
			return 0;
		}
	}
	return -ENODEV;
}

int ioapic_route_isa(unsigned int irq, unsigned int vector, unsigned int cpu)
{
	const struct acpi_isa_irq *isa = &acpi_info.isa_irqs[irq];
	u64 entry = (u64)acpi_info.apic_id[cpu] << 56 | vector;

	if (isa->active_low)
		entry |= ENTRY_ACTIVE_LOW;
	if (isa->level)
		entry |= ENTRY_LEVEL;
	return ioapic_write_entry(isa->gsi, entry);
}
