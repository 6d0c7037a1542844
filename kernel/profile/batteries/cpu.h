/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_CPU_H
#define PROFILE_BATTERIES_CPU_H

/*
 * The clock, the interrupt switch and a lock for x86-64, aarch64 and riscv64 (in supervisor mode).
 * The header of your task structure may include this one.
 */

#include "../base.h"

/*
 * Returns the time of a counter that always runs: the TSC, CNTVCT_EL0 or `time`. Only aarch64 can
 * tell its rate by itself, in CNTFRQ_EL0.
 */
static inline unsigned long battery_cycles(void)
{
#if defined(__x86_64__)
	unsigned int low, high;

	asm volatile("rdtsc" : "=a"(low), "=d"(high));
	return (unsigned long)high << 32 | low;
#elif defined(__aarch64__)
	unsigned long cycles;

	asm volatile("mrs %0, cntvct_el0" : "=r"(cycles));
	return cycles;
#elif defined(__riscv)
	unsigned long cycles;

	asm volatile("rdtime %0" : "=r"(cycles));
	return cycles;
#else
#error "profile: batteries/cpu.h knows x86-64, aarch64 and riscv64: define os_cycles() yourself"
#endif
}

/* Converts to nanoseconds, rounded to nearest. per_second is not 0, and below 18 GHz. */
static inline unsigned long battery_cycles_to_ns(unsigned long cycles, unsigned long per_second)
{
	unsigned long rest = cycles % per_second;

	return cycles / per_second * 1000000000 + (rest * 1000000000 + per_second / 2) / per_second;
}

/* Turns interrupts off. Returns the flags for battery_irq_restore(). */
static inline unsigned long battery_irq_save(void)
{
	unsigned long flags;

#if defined(__x86_64__)
	asm volatile("pushfq; popq %0; cli" : "=r"(flags) : : "memory");
#elif defined(__aarch64__)
	asm volatile("mrs %0, daif; msr daifset, #3" : "=r"(flags) : : "memory");
#elif defined(__riscv)
	asm volatile("csrrci %0, sstatus, 2" : "=r"(flags) : : "memory");
#endif
	return flags;
}

static inline void battery_irq_restore(unsigned long flags)
{
#if defined(__x86_64__)
	if (flags & 0x200)
		asm volatile("sti" : : : "memory");
#elif defined(__aarch64__)
	asm volatile("msr daif, %0" : : "r"(flags) : "memory");
#elif defined(__riscv)
	asm volatile("csrs sstatus, %0" : : "r"(flags & 2) : "memory");
#endif
}

static inline void battery_relax(void)
{
#if defined(__x86_64__)
	asm volatile("pause" : : : "memory");
#elif defined(__aarch64__)
	asm volatile("yield" : : : "memory");
#else
	pf_barrier();
#endif
}

/* A spinlock whose holder has interrupts off. Not fair: it is for short, rare sections. */
struct battery_lock {
	pf_flag_t is_held;
};

static inline unsigned long battery_lock(struct battery_lock *lock)
{
	unsigned long flags = battery_irq_save();

	while (pf_xchg(&lock->is_held, 1))
		battery_relax();
	return flags;
}

/* Pairs with the pf_xchg() of the next holder, which sees all that this one has done. */
static inline void battery_unlock(struct battery_lock *lock, unsigned long flags)
{
	pf_store_release(&lock->is_held, 0);
	battery_irq_restore(flags);
}

#endif
