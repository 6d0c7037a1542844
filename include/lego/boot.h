/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_BOOT_H
#define LEGO_BOOT_H

/*
 * The boot information, in the same form for all loaders and protocols. Filled in by setup_arch().
 */

#include <lego/kernel.h>

#define MAX_BOOT_REGIONS 128
#define MAX_CMDLINE	 2048

struct boot_region {
	phys_addr_t start;
	u64 size_bytes;
	bool usable; /* RAM that the kernel can use, including its image and the initramfs */
};

struct boot_info {
	char cmdline[MAX_CMDLINE]; /* a copy; a longer one is truncated with a warning */
	struct boot_region regions[MAX_BOOT_REGIONS];
	unsigned int nr_regions;
	phys_addr_t initrd_start; /* 0 size: none */
	u64 initrd_size_bytes;
	phys_addr_t rsdp; /* 0: search */
};

extern struct boot_info boot_info;

/* Entered by the boot CPU in long mode on its idle stack, interrupts off. */
void start_kernel(void) __noreturn;

/* Entered by every other CPU the same way, once its per-CPU area, GDT, IDT and APIC work. */
void start_secondary(void) __noreturn;

/* The arch's part of the boot list in kernel/main.c, in this order. */
void setup_arch(void);	     /* console, traps, boot_info; per-CPU of the boot CPU */
void paging_init(void);	     /* direct map, kernel protections; needs early page allocation */
void percpu_init(void);	     /* an area for every CPU; needs acpi_init() for nr_cpus, page_alloc */
void acpi_init(void);	     /* nr_cpus, APIC ids, IOAPIC, HPET, PM timer, power off; needs vmap */
void interrupt_init(void);   /* LAPIC and IOAPIC of the boot CPU */
void clock_init(void);	     /* TSC and APIC timer calibration */
void clock_start_tick(void); /* the running CPU's tick, by its APIC timer */

/* Logs the status and powers off with it (see qemu_exit= in kernel/parameters.md). Any context. */
void machine_power_off(int status) __noreturn;

/* Does the same without the log line, for panic(), which has written its own. */
void machine_exit(int status) __noreturn;

/* Writes text to QEMU's isa-debugcon; does nothing without one. For verdict.c. Any context. */
void machine_tell(const char *text, size_t len);

/* Stops this CPU for ever, with interrupts off. */
void machine_halt(void) __noreturn;

#endif
