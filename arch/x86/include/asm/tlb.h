/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TLB_H
#define ASM_TLB_H

#include <lego/percpu.h>
#include <lego/types.h>

struct mm;

/*
 * Counts, from 1, the flushes of user memory in this CPU's TLB. While it is unchanged, each
 * page of the loaded table keeps its place.
 */
DECLARE_PER_CPU(u64, tlb_generation);

/*
 * Flushes [start, end) of mm from every CPU's TLB before it returns. Process context, interrupts
 * on.
 */
void flush_tlb_mm_range(struct mm *mm, u64 start, u64 end);

/*
 * Unloads a dying mm from CPUs that still have it loaded, but run none of its tasks. Process
 * context, interrupts on.
 */
void tlb_leave_mm(struct mm *mm);

/* Boot, once. */
void tlb_init(void);

#endif
