/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_APIC_H
#define ASM_APIC_H

/*
 * Local APICs in xAPIC mode (SDM vol. 3, chapter 10) and the IOAPICs. Functions take the index of a
 * CPU. Only the start-up IPIs take an APIC ID, because a CPU has no index before it runs.
 */

#include <asm/io.h>
#include <lego/types.h>

struct pt_regs;

/* The page in which every CPU finds its own registers. Each interrupt needs these two variables. */
extern volatile u8 *apic_registers;
#define APIC_EOI	   0xb0
#define APIC_TIMER_INITIAL 0x380

/*
 * Enables the running CPU's local APIC, with all local vectors masked except LINT NMIs. Interrupts
 * off.
 */
void apic_init_cpu(void);

/* Ends an interrupt. Called once per external interrupt; not for VECTOR_SPURIOUS or an NMI. */
static inline void apic_eoi(void)
{
	writel(0, apic_registers + APIC_EOI);
}

/*
 * Sends an interrupt and returns when the local APIC has accepted the request. Any context but NMI.
 */
void apic_send_ipi(unsigned int cpu, unsigned int vector);

/*
 * Sends an NMI. Any context but NMI, except in a panic: from an NMI it can spoil a send that it
 * interrupted.
 */
void apic_send_nmi(unsigned int cpu);

/*
 * The start-up sequence: asserts and deasserts INIT; starts the CPU in real mode at physical page
 * << 12.
 */
void apic_send_init(u32 apic_id);
void apic_send_startup(u32 apic_id, unsigned int page);

/* Sends INIT to all CPUs but this one, also to those that firmware has not told of. */
void apic_send_init_others(void);

/*
 * apic_timer_count() lets the timer count down from its maximum without interrupts;
 * apic_timer_read() returns the current count.
 */
void apic_timer_count(void);
u32 apic_timer_read(void);

/* Timer ticks per second, set by clock_init(). */
extern u64 apic_timer_hz;

/*
 * apic_timer_set() makes the running CPU's timer interrupt once, at VECTOR_TIMER, after that many
 * timer ticks. It replaces an earlier setting; 0 stops the timer. Call apic_timer_oneshot() first.
 */
void apic_timer_oneshot(void);
static inline void apic_timer_set(u32 ticks)
{
	writel(ticks, apic_registers + APIC_TIMER_INITIAL);
}

/* Masks every pin. Boot only. */
void ioapic_init(void);

/* Delivers an ISA interrupt (through the MADT's overrides) to a vector of a CPU. 0 or -ENODEV. */
int ioapic_route_isa(unsigned int irq, unsigned int vector, unsigned int cpu);

/*
 * Writes the redirection entry of the pin with this global interrupt number. The format is that of
 * the IOAPIC data sheet, high word first. 0 or -ENODEV. Any context but NMI.
 */
int ioapic_write_entry(unsigned int gsi, u64 entry);

/* Entries for a pin that sends NMIs to all CPUs at once, and for a masked pin. */
#define IOAPIC_NMI_TO_ALL (0xffULL << 56 | 4u << 8)
#define IOAPIC_MASKED	  BIT(16)

#endif
