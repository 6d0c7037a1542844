// SPDX-License-Identifier: BSD-2-Clause
/*
 * The HPET's main counter, as a reference to calibrate the TSC and the APIC timer by (IA-PC
 * HPET specification 1.0a). Comparators and interrupt routing are left alone.
 */
#include <asm/hpet.h>

#include <asm/acpi.h>
#include <asm/io.h>
#include <asm/processor.h>
#include <lego/printk.h>
#include <lego/vmap.h>

#define HPET_CAPABILITIES  0x000
#define HPET_CONFIGURATION 0x010
#define HPET_COUNTER	   0x0f0
#define HPET_BYTES	   1024

#define CONFIGURATION_ENABLE BIT(0)
#define CONFIGURATION_LEGACY BIT(1)

/* The specification's limit: 100 ns. A period below 0.1 ns is not plausible, either. */
#define MAX_PERIOD_FS 100000000
#define MIN_PERIOD_FS 100000

u64 hpet_period_fs;
volatile void *hpet_registers;

static u32 hpet_read(unsigned int offset)
{
	return readl((volatile u8 *)hpet_registers + offset);
}

u32 hpet_read_counter(void)
{
	return hpet_read(HPET_COUNTER);
}

bool hpet_init(void)
{
	u32 period_fs, configuration, start;

	if (!acpi_info.hpet_address)
		return false;
	hpet_registers = ioremap(acpi_info.hpet_address, HPET_BYTES);
	if (!hpet_registers)
		return false;
	period_fs = hpet_read(HPET_CAPABILITIES + 4);
	if (period_fs < MIN_PERIOD_FS || period_fs > MAX_PERIOD_FS) {
		printk("hpet: a period of %u fs: not used\n", period_fs);
		goto out_unusable;
	}
	configuration = hpet_read(HPET_CONFIGURATION);
	configuration = (configuration & ~CONFIGURATION_LEGACY) | CONFIGURATION_ENABLE;
	writel(configuration, (volatile u8 *)hpet_registers + HPET_CONFIGURATION);
	start = hpet_read_counter();
	for (int i = 0; i < 10000; i++) {
		if (hpet_read_counter() != start) {
			hpet_period_fs = period_fs;
			return true;
		}
		cpu_relax();
	}
	printk("hpet: the counter stands still: not used\n");
out_unusable:
	hpet_registers = NULL;
	return false;
}
