// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hooks at the start and the end of functions: the C half of function_call.S, and the patching.
 *
 * Each task has a stack of true return addresses. Only the task writes it, and interrupts on top of
 * the task, which leave it as it was. NMIs and other CPUs may read it at any moment. They look an
 * address up by its slot on the kernel stack, which only one call uses at a time.
 */
#include <asm/function_hook.h>

#include <asm/stacktrace.h>
#include <asm/text_patch.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/irq.h>
#include <lego/mutex.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/smp.h>

#define OPCODE_CALL 0xe8

void function_enter(u64 *slot, u64 behind_place);
void function_exit(u64 *slot);

/* Sorted by scripts/function_places.py. */
extern u8 *const __start___patchable_function_entries[],
	*const __stop___patchable_function_entries[];
#define places __start___patchable_function_entries

static DEFINE_MUTEX(calls_mutex); /* guards calls */
static bool stacks_needed;	  /* new tasks get a stack of return addresses */

/*
 * For each place, the lower half of the address of the hook that it calls, and of the one that it
 * is about to call. NULL: no place calls any.
 */
static struct call {
	u32 is, shall; /* 0: a NOP */
} * calls;

notrace u32 function_nr_places(void)
{
	return __stop___patchable_function_entries - places;
}

notrace u64 function_place(u32 i)
{
	return (u64)places[i];
}

/* Called at the start of a function. slot: of its return address. Any context. */
notrace void function_enter(u64 *slot, u64 behind_place)
{
	struct function_stack *stack = current->thread.functions;
	u64 function = behind_place - TEXT_PATCH_BYTES;
	struct function_frame *frame;
	bool ends;

	if (unlikely(in_nmi())) {
		profile_function_in_nmi();
		return;
	}
	if (unlikely(!stack) || unlikely(function_stack_is_full(stack))) {
		profile_function_enter(function, *slot, NULL, stack ? &stack->thread : NULL);
		return;
	}
	frame = function_stack_push(stack);
	ends = profile_function_enter(function, *slot, &frame->call, &stack->thread);
	/* Read again rather than kept in a register. Interrupts leave it as it was. */
	stack = current->thread.functions;
	if (ends)
		function_tell_end(stack->top, slot, (u64)function_return);
	else
		function_stack_pop(stack);
}

void function_enter_saving(u64 *slot)
{
	function_enter(slot, slot[-1]);
}

/* Called when a function has returned; slot has the address of function_return(). */
notrace void function_exit(u64 *slot)
{
	struct function_stack *stack = current->thread.functions;
	struct function_frame *frame = function_end(stack, slot);

	profile_function_exit(&frame->call, &frame[-1].call, &stack->thread);
	/* Read again rather than kept in a register. Interrupts leave it as it was. */
	function_stack_pop(current->thread.functions);
}

/* function_call() copies the return address, for a frame: so many words below the original. */
#define FUNCTION_CALL_COPY 2

u64 function_true_return(const struct task *task, const u64 *slot)
{
	const struct function_stack *stack = READ_ONCE(task->thread.functions);
	const struct function_frame *frame = stack ? READ_ONCE(stack->top) : NULL;

	for (; frame && frame != stack->frames; frame--) {
		const u64 *at = READ_ONCE(frame->slot);

		if (at == slot || at == slot + FUNCTION_CALL_COPY)
			return frame->ret;
	}
	return 0;
}

unsigned long current_return_address(const void *frame)
{
	return stack_return_address(current, &((const struct stack_frame *)frame)->ret);
}

void function_stack_alloc(struct task *task)
{
	struct function_stack *stack;

	if (!READ_ONCE(stacks_needed) || task->thread.functions)
		return;
	stack = kzalloc(sizeof(*stack));
	if (stack)
		stack->top = stack->frames;
	WRITE_ONCE(task->thread.functions, stack);
}

void function_stack_free(struct task *task)
{
	kfree(task->thread.functions);
}

/* Gives all tasks a stack. A task that is created meanwhile has one already or is in the list. */
static void alloc_stacks(void)
{
	unsigned int cpu;

	WRITE_ONCE(stacks_needed, true);
	task_for_each(function_stack_alloc);
	for_each_possible_cpu(cpu)
		function_stack_alloc(sched_idle_task(cpu));
}

static notrace u8 *switched_place(u32 i, struct text_insn *insn)
{
	u32 shall = calls[i].shall;

	if (calls[i].is == shall)
		return NULL;
	*insn = shall ? text_branch(OPCODE_CALL, places[i], shall) : TEXT_NOP;
	return places[i];
}

notrace bool function_is_place(u64 addr)
{
	u32 low = 0, high = __stop___patchable_function_entries - places;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		*((u64)places[middle] <= addr ? &low : &high) = middle;
	}
	return (u64)places[low] == addr;
}

/* Skips the place, as if it were a NOP: a call may see no hook while places are being patched. */
static notrace u64 function_resume(u64 addr)
{
	return function_is_place(addr) ? addr + TEXT_PATCH_BYTES : 0;
}

/* Stores what each place is to call. Returns whether any calls a hook, and how many change. */
static bool choose(function_hook_t *(*hook_of)(u32 place), u32 *nr_changes)
{
	bool any = false;

	for (u32 i = 0; i < function_nr_places(); i++) {
		calls[i].shall = (u32)(u64)hook_of(i);
		*nr_changes += calls[i].is != calls[i].shall;
		any |= calls[i].shall != 0;
	}
	return any;
}

int function_calls_set(function_hook_t *(*hook_of)(u32 place))
{
	const struct text_patch patch = {
		.nr = function_nr_places(),
		.site = switched_place,
		.resume = function_resume,
	};
	u32 nr_changes = 0;
	int error = 0;

	mutex_lock(&calls_mutex);
	if (!calls)
		calls = kzalloc(patch.nr * sizeof(*calls));
	if (!calls) {
		error = -ENOMEM;
		goto out;
	}
	if (choose(hook_of, &nr_changes))
		alloc_stacks();
	if (nr_changes)
		text_patch_apply(&patch);
	for (u32 i = 0; i < patch.nr; i++)
		calls[i].is = calls[i].shall;
out:
	mutex_unlock(&calls_mutex);
	return error;
}
