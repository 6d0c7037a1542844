/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_ACPI_H
#define ASM_ACPI_H

/*
 * The data of the firmware's ACPI tables, checked and copied by acpi_init(). Read-only afterwards.
 */

#include <lego/kernel.h>

#define MAX_IOAPICS	8
#define NR_ISA_IRQS	16
#define NR_APIC_LINT	2
#define MAX_ACPI_MEMORY 64

struct acpi_ioapic {
	u32 id;
	u32 gsi_base;
	phys_addr_t address;
};

struct acpi_isa_irq {
	u32 gsi;
	bool active_low;
	bool level;
};

/* Memory of a NUMA node. */
struct acpi_memory {
	phys_addr_t start;
	u64 size_bytes;
	u32 node; /* its proximity domain */
};

struct acpi_info {
	phys_addr_t lapic_address;  /* 0: the tables do not give it */
	u8 apic_id[CONFIG_NR_CPUS]; /* by CPU index */
	u8 acpi_uid[CONFIG_NR_CPUS];
	u64 lint_nmi[NR_APIC_LINT]; /* CPUs whose LINTn is an NMI */

	struct acpi_ioapic ioapics[MAX_IOAPICS];
	unsigned int nr_ioapics;
	struct acpi_isa_irq isa_irqs[NR_ISA_IRQS];

	phys_addr_t hpet_address; /* 0: none */
	u16 pm_timer_port;	  /* 0: none */

	struct acpi_memory memory[MAX_ACPI_MEMORY];
	unsigned int nr_memory, nr_memory_lost;

	/* Power off (S5): 0 ports are absent. */
	bool s5_valid;
	u16 pm1a_control_port, pm1b_control_port;
	u8 s5_type_a, s5_type_b;
	u16 smi_command_port;
	u8 acpi_enable;

	/* Reset by an I/O port; 0: none. */
	u16 reset_port;
	u8 reset_value;
};

extern struct acpi_info acpi_info;

/* Powers off (state S5). Returns if the machine cannot or does not. Any context. */
void acpi_power_off(void);

#endif
