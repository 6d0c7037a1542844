/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_APIC_H
#define ASM_APIC_H

/*
 * Local APICs in xAPIC mode (SDM vol. 3, chapter 10) and the IOAPICs. CPUs are named by
 * index; only the start-up IPIs name an APIC id, because their target has no index yet that
 * it knows.
 */

#include <asm/io.h>
#include <lego/types.h>

struct pt_regs;

/* The page in which every CPU finds its own registers. Each interrupt needs these two. */
extern volatile u8 *apic_registers;
#define APIC_EOI	   0xb0
#define APIC_TIMER_INITIAL 0x380

/*
 * Enable the running CPU's local APIC, all local vectors masked but LINT NMIs. Interrupts
 * off.
 */
void apic_init_cpu(void);

/* Id of the running CPU's local APIC. */
u32 apic_read_id(void);

/* End of interrupt: once per external interrupt, not for VECTOR_SPURIOUS, not for NMIs. */
static inline void apic_eoi(void)
{
	writel(0, apic_registers + APIC_EOI);
}

/* Any context but NMI; returns when the local APIC has accepted the request. */
void apic_send_ipi(unsigned int cpu, unsigned int vector);

/*
 * Any context but NMI; from there it spoils the send it may have interrupted: a dying machine only.
 */
void apic_send_nmi(unsigned int cpu);

/* Start-up sequence: assert and deassert INIT; run from physical page << 12 in real mode. */
void apic_send_init(u32 apic_id);
void apic_send_startup(u32 apic_id, unsigned int page);

/*
 * Let the timer count down from the top without interrupting; apic_timer_read() is what is
 * left.
 */
void apic_timer_count(void);
u32 apic_timer_read(void);

/* Timer ticks per second, set by clock_init(). */
extern u64 apic_timer_hz;

/*
 * The running CPU's timer interrupts at VECTOR_TIMER, once, so many timer ticks after
 * apic_timer_set(), which replaces what was set before; 0 stops it. apic_timer_oneshot() first.
 */
void apic_timer_oneshot(void);
static inline void apic_timer_set(u32 ticks)
{
	writel(ticks, apic_registers + APIC_TIMER_INITIAL);
}

/* Mask every pin. Boot only. */
void ioapic_init(void);

/*
 * Deliver an ISA interrupt (through the MADT's overrides) to a vector of a CPU. 0 or -ENODEV.
 */
int ioapic_route_isa(unsigned int irq, unsigned int vector, unsigned int cpu);

/*
 * Write a pin's redirection entry as it stands in the IOAPIC data sheet, high word first; the
 * pin is named by its global interrupt number. 0 or -ENODEV. Any context but NMI.
 */
int ioapic_write_entry(unsigned int gsi, u64 entry);

/* Entries for pins that send NMIs, to all CPUs at once; and that send nothing. */
#define IOAPIC_NMI_TO_ALL (0xffULL << 56 | 4u << 8)
#define IOAPIC_MASKED	  BIT(16)

#endif
