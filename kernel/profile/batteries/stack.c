// SPDX-License-Identifier: BSD-2-Clause
/*
 * Follows frame pointers from the innermost frame outwards. Each frame must be in the given part of
 * the stack and above the one before, so a walk ends and reads only this stack.
 */

#include "stack.h"

static bool is_frame(const struct battery_stack *stack, u64 fp)
{
	u64 lowest = fp + (BATTERY_FRAME_CALLER < 0 ? BATTERY_FRAME_CALLER : 0);

	return fp % 8 == 0 && lowest >= stack->low && lowest <= stack->high - 16;
}

struct profile_stack_walk battery_stack_walk(const struct battery_stack *stack, u64 *pcs, u32 max)
{
	enum profile_stack_truncation truncated = PROFILE_STACK_WHOLE;
	struct profile_stack_walk walk = { 0 };
	u64 pc = stack->pc, fp = stack->fp, below = 0;
	u32 nr = 0;

	/* A frame pointer or a return address of 0 marks the outermost frame. */
	while (pc) {
		if (nr == max) {
			truncated = PROFILE_STACK_TRUNCATED_DEPTH;
			break;
		}
		pcs[nr++] = pc;
		walk.hash = profile_stack_mix(walk.hash, pc);
		if (!fp)
			break;
		if (fp <= below || !is_frame(stack, fp)) {
			truncated = PROFILE_STACK_TRUNCATED_STACK;
			break;
		}
		below = fp;
		pc = BATTERY_FRAME_WORD(fp, BATTERY_FRAME_RETURN);
		fp = BATTERY_FRAME_WORD(fp, BATTERY_FRAME_CALLER);
		/*
		 * On riscv64, a function without calls saves only its caller's frame pointer. Its
		 * return address is in a register. If it is not the innermost function, because an
		 * interrupt's frames are further in, its caller is left out.
		 */
		if (BATTERY_FRAME_CALLER < 0 && is_frame(stack, pc)) {
			fp = pc;
			pc = stack->link;
			if (nr > 1) {
				pc = BATTERY_FRAME_WORD(fp, BATTERY_FRAME_RETURN);
				fp = BATTERY_FRAME_WORD(fp, BATTERY_FRAME_CALLER);
			}
		}
	}
	walk.counts = PROFILE_STACK_COUNTS(nr, 0, truncated, PROFILE_STACK_NOT_REPLAYABLE);
	return walk;
}
