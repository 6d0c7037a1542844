/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_POINT_CLOCK_H
#define ASM_POINT_CLOCK_H

/*
 * The clock of profile points: the TSC, ordered by fences that point_clock_drop_fences() can
 * replace by NOPs. An LFENCE before RDTSC waits for all earlier instructions; one after it keeps
 * later ones from starting (SDM vol. 2, RDTSC).
 */

#include <asm/saving_call.h>
#include <lego/kernel.h>

/* An LFENCE, with a record of its place in section point_fences, relative to the record. */
#define POINT_FENCE                            \
	"1: lfence\n\t"                        \
	".pushsection point_fences, \"a\"\n\t" \
	".balign 8\n\t"                        \
	".quad 1b - .\n\t"                     \
	".popsection\n\t"

/* Starts a section: no instruction of the section runs before the read. Returns cycles. */
static __always_inline u64 point_clock_begin(void)
{
	u64 low, high; /* RDTSC clears the upper halves of both registers */

	asm volatile("rdtsc\n\t" POINT_FENCE : "=a"(low), "=d"(high)::"memory");
	return high << 32 | low;
}

/* Ends a section: all instructions of the section are done before the read. Returns cycles. */
static __always_inline u64 point_clock_end(void)
{
	u64 low, high; /* RDTSC clears the upper halves of both registers */

	asm volatile(POINT_FENCE "rdtsc" : "=a"(low), "=d"(high)::"memory");
	return high << 32 | low;
}

/*
 * Adds to memory that only this CPU writes, in one instruction, so that interrupts and NMIs cannot
 * split it.
 */
#define point_add(var, value) asm volatile("addq %1, %0" : "+m"(var) : "er"((u64)(value)) : "cc")

/* Calls a function at the end of a point. The function saves all registers. */
#define point_call(fn, a, b, c, d) \
	saving_call(fn, "D"(a), "S"((u64)(b)), "d"((u64)(c)), "c"((u64)(d)))

/* n instructions, each depending on the one before: a section of known length, for calibration. */
#define POINT_CLOCK_BODY(n)                                                          \
	do {                                                                         \
		u64 _value = 3;                                                      \
                                                                                     \
		asm volatile(".rept " #n "\n\timul %0, %0\n\t.endr" : "+r"(_value)); \
	} while (0)

/* Replaces the fences by NOPs, for ever. Process context, interrupts on, while no point is on. */
void point_clock_drop_fences(void);

#endif
