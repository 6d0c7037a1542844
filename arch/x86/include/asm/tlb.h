/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TLB_H
#define ASM_TLB_H

#include <lego/percpu.h>
#include <lego/types.h>

struct mm;

/*
 * The generation of the page table that this CPU has loaded: while it is the same, each page keeps
 * its place. An mm gets a new generation, which no mm ever had, at each flush. So a CPU that
 * returns to an mm knows whether its pages are where they were.
 */
DECLARE_PER_CPU(u64, tlb_generation);
#define TLB_NO_MM 1 /* the generation of a CPU without an mm; none is 0 */

/*
 * The generations of an mm have the same low bits, its color, which differs from that of the mm
 * that was made before it on the same CPU.
 */
#define TLB_NR_COLORS 4

/* Gives a new mm its color and its first generation. Process context. */
void tlb_mm_init(struct mm *mm);

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
