// SPDX-License-Identifier: BSD-2-Clause
/* The interrupt descriptor table (SDM vol. 3, 6.14.1), one for all CPUs. */
#include <asm/desc.h>

#include <asm/traps.h>

#define GATE_INTERRUPT 0x8e /* present, interrupts off on entry */
#define GATE_USER      0x60 /* INT n may use it in user mode */

struct gate {
	u16 offset_low;
	u16 selector;
	u8 ist;
	u8 type;
	u16 offset_middle;
	u32 offset_high;
	u32 reserved;
};

static struct gate idt[NR_VECTORS] __aligned(16);

static void set_gate(unsigned int vector, const void *entry, u8 ist, u8 flags)
{
	u64 offset = (u64)entry;

	idt[vector] = (struct gate){
		.offset_low = offset,
		.selector = KERNEL_CS,
		.ist = ist,
		.type = GATE_INTERRUPT | flags,
		.offset_middle = offset >> 16,
		.offset_high = offset >> 32,
	};
}

void idt_init(void)
{
	for (unsigned int i = 0; i < NR_VECTORS; i++)
		set_gate(i, entry_stubs + i * ENTRY_STUB_SIZE, IST_NONE, 0);
	set_gate(TRAP_BREAKPOINT, entry_stubs + TRAP_BREAKPOINT * ENTRY_STUB_SIZE, IST_NONE,
		 GATE_USER);
	set_gate(TRAP_OVERFLOW, entry_stubs + TRAP_OVERFLOW * ENTRY_STUB_SIZE, IST_NONE, GATE_USER);
	set_gate(TRAP_NMI, nmi_entry, IST_NMI, 0);
	set_gate(TRAP_DOUBLE_FAULT, double_fault_entry, IST_DOUBLE_FAULT, 0);
	set_gate(TRAP_MACHINE_CHECK, machine_check_entry, IST_MACHINE_CHECK, 0);
}

void idt_load(void)
{
	struct desc_ptr ptr = { .limit = sizeof(idt) - 1, .base = (u64)idt };

	asm volatile("lidt %0" ::"m"(ptr));
}
