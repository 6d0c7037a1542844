/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TLB_H
#define ASM_TLB_H

#include <lego/percpu.h>
#include <lego/types.h>

struct mm;

/*
 * Counts what this CPU's TLB has forgotten of user memory, or all of it: while it stays, so does
 * each page that the loaded table maps, where it is. From 1 on.
 */
DECLARE_PER_CPU(u64, tlb_generation);

/* Drop [start, end) of mm from every CPU's TLB before returning. Process context, interrupts on. */
void flush_tlb_mm_range(struct mm *mm, u64 start, u64 end);

/* Drop kernel mappings [start, end) everywhere. Process context, interrupts on. */
void flush_tlb_kernel_range(u64 start, u64 end);

/*
 * Unload a dying mm from CPUs that run no task of it but kept it. Process context, interrupts
 * on.
 */
void tlb_leave_mm(struct mm *mm);

/* Boot, once. */
void tlb_init(void);

#endif
