/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_OS_H
#define PROFILE_BATTERIES_OS_H

/*
 * Contracts by batteries. Include this at the end of your os.h: it defines what you have not
 * defined. You supply os_vprintk and os_cycles_per_second, call battery_heap_init() before
 * profile_init(), and, with more than one CPU, battery_cpu_tick() in each tick.
 */

#include "cpu.h"
#include "cpus.h"
#include "heap.h"
#include "printf.h"
#ifdef CONFIG_PROFILE_HEATMAP
#include "symbols.h"
#endif

#ifndef os_vsnprintf
#define os_vsnprintf(buf, size, fmt, args) battery_vsnprintf(buf, size, fmt, args)
#endif
#ifndef os_cycles_to_ns
#define os_cycles_to_ns(cycles) battery_cycles_to_ns(cycles, os_cycles_per_second())
#endif
#ifndef os_zalloc
#define os_zalloc(size) battery_zalloc(size)
#define os_free(ptr)	battery_free(ptr)
#endif
#ifndef os_irq_save
#define os_irq_save()	      battery_irq_save()
#define os_irq_restore(flags) battery_irq_restore(flags)
#endif
#ifndef os_lock
typedef struct battery_lock os_lock_t;
#define OS_LOCK_INIT \
	{            \
		0    \
	}
#define os_lock(lock)	       battery_lock(lock)
#define os_unlock(lock, flags) battery_unlock(lock, flags)
#endif
#ifndef os_cpu_relax
#define os_cpu_relax() battery_relax()
#endif
#if !defined(os_run_on_all_cpus) && OS_NR_CPUS > 1
/* Those that are online: the others would never call it. */
#define os_run_on_all_cpus(fn)                        \
	do {                                          \
		unsigned long _cpus = 0;              \
		u32 _cpu;                             \
                                                      \
		os_for_each_cpu(_cpu)                 \
			if (os_cpu_online(_cpu))      \
				_cpus |= 1ul << _cpu; \
		battery_run_on_cpus(fn, _cpus);       \
	} while (0)
#define os_run_on_boot_cpu(fn) battery_run_on_cpus(fn, 1)
#endif
#if !defined(os_symbol_lookup) && defined(CONFIG_PROFILE_HEATMAP)
#define os_symbol_lookup(addr, start, name, size) battery_symbol_lookup(addr, start, name, size)
#endif

#ifdef CONFIG_PROFILE_CALLCHAIN
#include "stack.h"
/*
 * You supply os_regs_fp(regs), the frame pointer, and os_stack_end(regs), the first address behind
 * the stack that the registers belong to; on riscv64 also os_regs_link(regs), register ra.
 * os_regs_here() below needs os_regs_fp(), os_regs_pc() and os_regs_sp() that can be assigned to.
 */
#if !defined(os_regs_link) && !defined(__riscv)
#define os_regs_link(regs) 0ul
#endif
#ifndef os_stack_walk
static inline struct profile_stack_walk os_stack_walk(const os_regs_t *regs, u64 *pcs, u32 max)
{
	struct battery_stack stack = { os_regs_pc(regs), os_regs_fp(regs), os_regs_link(regs),
				       os_regs_sp(regs), os_stack_end(regs) };

	if (os_regs_user(regs))
		return battery_stack_user(os_regs_pc(regs), pcs);
	return battery_stack_walk(&stack, pcs, max);
}
#define os_stack_walk os_stack_walk
#endif
#ifndef os_regs_here
#define os_regs_here(regs)                                            \
	do {                                                          \
		memset(regs, 0, sizeof(*(regs)));                     \
		battery_caller(&os_regs_pc(regs), &os_regs_fp(regs)); \
		os_regs_sp(regs) = (u64)__builtin_frame_address(0);   \
	} while (0)
#endif
#endif

#endif
