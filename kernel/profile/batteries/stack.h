/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_STACK_H
#define PROFILE_BATTERIES_STACK_H

/*
 * Call chains of kernel code by frame pointers, for x86-64, aarch64 and riscv64. Compile the kernel
 * with -fno-omit-frame-pointer, for aarch64 also with -mno-omit-leaf-frame-pointer. A function that
 * is interrupted before it has its frame lacks its caller in the chain. So does, on x86-64, one
 * that calls no other: GCC gives it no frame.
 */

#include <profile/stack_walk.h>

struct battery_stack {
	u64 pc, fp;
	u64 link;      /* the register `ra` of riscv64 */
	u64 low, high; /* the part of the stack that frames may be in: from the stack pointer on */
};

/* Where a frame has its caller's frame pointer and its return address, from the frame pointer. */
#ifdef __riscv
#define BATTERY_FRAME_CALLER (-16)
#define BATTERY_FRAME_RETURN (-8)
#else
#define BATTERY_FRAME_CALLER 0
#define BATTERY_FRAME_RETURN 8
#endif
#define BATTERY_FRAME_WORD(fp, offset) (*(const u64 *)((fp) + (offset)))

/* For os_stack_walk(): the kernel's chain. Any context, NMI included. */
struct profile_stack_walk battery_stack_walk(const struct battery_stack *stack, u64 *pcs, u32 max);

/* The same for user code: the interrupted instruction alone. */
static inline struct profile_stack_walk battery_stack_user(u64 pc, u64 *pcs)
{
	struct profile_stack_walk walk;

	pcs[0] = pc;
	walk.hash = profile_stack_mix(0, pc);
	walk.counts = PROFILE_STACK_COUNTS(0, 1, PROFILE_STACK_WHOLE, PROFILE_STACK_NOT_REPLAYABLE);
	return walk;
}

/* For os_regs_here(): the pc and fp of the caller of the function that uses this macro. */
#define battery_caller(pc, fp)                                            \
	do {                                                              \
		u64 _frame = (u64)__builtin_frame_address(0);             \
                                                                          \
		*(pc) = BATTERY_FRAME_WORD(_frame, BATTERY_FRAME_RETURN); \
		*(fp) = BATTERY_FRAME_WORD(_frame, BATTERY_FRAME_CALLER); \
	} while (0)

#endif
