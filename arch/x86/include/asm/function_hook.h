/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_FUNCTION_HOOK_H
#define ASM_FUNCTION_HOOK_H

/*
 * Hooks in C that places call directly, without function_call(). Such a hook does one cheap thing
 * inline, and leaves all other cases to function_enter_saving(). It takes no arguments and saves
 * all registers that it uses. The function that called it has no frame yet. So the stack has, from
 * the hook's frame pointer on: the caller's frame pointer, the address behind the place, and the
 * function's return address (the slot). stacktrace.c follows that.
 */
#include <asm/function_call.h>
#include <asm/saving_call.h>
#include <asm/text_patch.h>
#include <lego/irq.h>
#include <lego/sched.h>

#define __function_hook __saves_registers __section(".entry.hooks")

/* In a hook: returns the slot of the function's return address. */
#define function_hook_slot() ((u64 *)__builtin_frame_address(0) + 2)

/* In a hook: the function that called it, and the return address. Each reads the stack again. */
#define function_hooked()      (READ_ONCE(function_hook_slot()[-1]) - TEXT_PATCH_BYTES)
#define function_hook_caller() READ_ONCE(*function_hook_slot())

/* In a hook: does the same as the general hook. */
#define function_hook_leave() saving_call(function_enter_saving, "D"(function_hook_slot()))

static __always_inline bool function_stack_is_full(const struct function_stack *stack)
{
	return stack->top == &stack->frames[FUNCTION_STACK_DEPTH];
}

/* Returns the task's stack of return addresses. NULL: it has none, it is full, or in an NMI. */
static __always_inline struct function_stack *function_hook_stack(void)
{
	struct function_stack *stack = current->thread.functions;

	if (unlikely(!stack) || unlikely(function_stack_is_full(stack)) || unlikely(in_nmi()))
		return NULL;
	return stack;
}

/* Pushes a call. Its frame is filled in later, so that frames of interrupts come above it. */
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

/* Makes the function return to `to`, which is function_return() or another one of its kind. */
static __always_inline void function_tell_end(struct function_frame *frame, u64 *slot, u64 to)
{
	frame->ret = *slot;
	/* In an NMI, function_true_return() must find ret as soon as the slot has changed. */
	WRITE_ONCE(frame->slot, slot);
	barrier();
	WRITE_ONCE(*slot, to);
}

/*
 * Called when a function has returned. Puts its true return address back into the slot, and returns
 * its frame. Frames above that one belong to functions that never return.
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
