/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_FUNCTION_HOOK_H
#define ASM_FUNCTION_HOOK_H

/*
 * Hooks in C that places call directly, for what is cheap enough to be inline: a way around
 * function_call(), which does the rest. A hook takes no arguments and saves all registers. The
 * function that called it has no frame yet, so the hook's frame is followed by one word more: above
 * the address behind the place is the function's return address.
 */
#include <asm/function_call.h>
#include <asm/saving_call.h>
#include <asm/text_patch.h>
#include <lego/irq.h>
#include <lego/sched.h>

#define __function_hook __saves_registers __section(".entry.hooks")

/* In a hook: where the function's return address is. */
#define function_hook_slot() ((u64 *)__builtin_frame_address(0) + 2)

/* The start of the function that called the hook, and its caller. Each reads the stack again. */
#define function_hooked()      (READ_ONCE(function_hook_slot()[-1]) - TEXT_PATCH_BYTES)
#define function_hook_caller() READ_ONCE(*function_hook_slot())

/* What the hook does not do itself: as if the place had called function_call(). */
#define function_hook_leave() saving_call(function_enter_saving, "D"(function_hook_slot()))

static __always_inline bool function_stack_is_full(const struct function_stack *stack)
{
	return stack->top == &stack->frames[FUNCTION_STACK_DEPTH];
}

/* Returns the stack of return addresses if a call can be put there, or NULL; also in an NMI. */
static __always_inline struct function_stack *function_hook_stack(void)
{
	struct function_stack *stack = current->thread.functions;

	if (unlikely(!stack) || unlikely(function_stack_is_full(stack)) || unlikely(in_nmi()))
		return NULL;
	return stack;
}

/* Puts a call there: first, so that frames of an interrupt come above. */
static __always_inline struct function_frame *function_stack_push(struct function_stack *stack)
{
	struct function_frame *frame = stack->top + 1;

	WRITE_ONCE(stack->top, frame);
	barrier();
	return frame;
}

static __always_inline void function_stack_pop(struct function_stack *stack)
{
	barrier();
	stack->top--;
}

/* Lets the function return to function_return(), or another one of its kind. */
static __always_inline void function_tell_end(struct function_frame *frame, u64 *slot, u64 to)
{
	frame->ret = *slot;
	/* Before the slot changes, so that an NMI finds the true address. */
	WRITE_ONCE(frame->slot, slot);
	barrier();
	WRITE_ONCE(*slot, to);
}

/*
 * Called when a function has returned; slot has the address that function_tell_end() has put there.
 * Puts the true one back. Frames above the returned one are of functions that never returned.
 */
static __always_inline struct function_frame *function_end(struct function_stack *stack, u64 *slot)
{
	struct function_frame *frame = stack->top;

	if (unlikely(frame->slot != slot)) {
		do
			frame--;
		while (frame->slot != slot);
		WRITE_ONCE(stack->top, frame);
	}
	WRITE_ONCE(*slot, frame->ret);
	barrier();
	WRITE_ONCE(frame->slot, NULL);
	return frame;
}

#endif
