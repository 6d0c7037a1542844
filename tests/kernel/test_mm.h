/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_MM_H
#define TEST_MM_H

/* Shared by the test suites of address spaces. */

#include <asm/irqflags.h>
#include <lego/mm.h>
#include <lego/sched.h>

#define ANON	  (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW	  (PROT_READ | PROT_WRITE)
#define USER_BASE 0x10000000UL

/* Maps anonymous memory at addr. Returns 0 or an error. */
static inline long map_fixed(struct mm *mm, u64 addr, u64 len)
{
	long place = mm_map(mm, addr, len, RW, ANON | MAP_FIXED, NULL, 0);

	return place == (long)addr ? 0 : place;
}

/*
 * Pins the thread to its CPU, so that all per-CPU caches it uses are the same ones. Returns the
 * affinity to restore.
 */
static inline cpumask_t stay_on_cpu(void)
{
	cpumask_t allowed = current->cpus_allowed;

	sched_set_affinity(current, BIT(smp_processor_id()));
	return allowed;
}

/* Gives the current kernel thread an address space; NULL takes it away. */
static inline void set_mm(struct mm *mm)
{
	unsigned long flags = local_irq_save();
	struct mm *old = current->mm;

	mm_switch(old, mm);
	current->mm = mm;
	local_irq_restore(flags);
}

static inline void leave_mm(struct mm *mm)
{
	set_mm(NULL);
	mm_put(mm);
}

#endif
