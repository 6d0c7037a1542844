/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_FUNCTION_CALL_H
#define ASM_FUNCTION_CALL_H

/*
 * Calls at the start of functions, and when they return (CONFIG_PROFILE_FUNCTIONS). Each function
 * begins with a place of TEXT_PATCH_BYTES: a NOP, or a call of a hook. The general hook is
 * function_call() in function_call.S, which calls function_enter(). That may replace the function's
 * return address by function_return(), which calls function_exit(). Until then each task has the
 * true return addresses in a stack of its own. Other hooks: <asm/function_hook.h>.
 *
 * Functions without a place (notrace) are those that this runs through: scripts/function-places
 * checks it. Calls in an NMI are not seen: nothing of an NMI is on a task's stack of return
 * addresses, so an NMI may come at any moment.
 */

#include <asm/saving_call.h>
#include <asm/tsc.h>
#include <lego/kernel.h>
#include <lego/function_profile.h>

struct task;

/* 64 bytes, so that an index of it is a shift. */
struct function_frame {
	const u64 *slot; /* where on the stack the return address was; NULL: nothing yet */
	u64 ret;
	struct profile_function_call call;
} __aligned(64);

#define FUNCTION_STACK_DEPTH 62 /* so that a stack fits into a page */

/* scripts/function-places checks that no two places are in one such unit of the text. */
#define FUNCTION_ALIGN 16

/* Each task has one. Interrupts put their functions on top of the task's. An NMI only reads it. */
struct function_stack {
	struct function_frame *top; /* frames[0] is what is around all calls */
	struct profile_function_thread thread;
	struct function_frame frames[1 + FUNCTION_STACK_DEPTH];
};

/* A hook saves all registers: clang has this in the type. */
typedef __attribute__((no_caller_saved_registers)) void function_hook_t(void);

/* The hook for all purposes, and the C half of it for other hooks; slot: of the return address. */
function_hook_t function_call;
void function_enter_saving(u64 *slot) __saves_registers;

/*
 * Lets each place call the hook that hook_of() returns; NULL: none. Each task is given a stack
 * before; without one (no memory) the returns of a task's functions are not seen. While a hook is
 * replaced by another one, a call may see neither. Returns 0 or -ENOMEM. Process context; may
 * sleep.
 */
int function_calls_set(function_hook_t *(*hook_of)(u32 place));

/* Calls in NMIs of this CPU. */
DECLARE_PER_CPU(u64, function_calls_in_nmi);

/* Number of functions that have a place, and where place i is: the start of its function. */
u32 function_nr_places(void);
u64 function_place(u32 i);

/* Returns whether a function begins at addr, with a place. Any context. */
bool function_is_place(u64 addr);

/*
 * The true return address of what has function_return() at slot; 0: it is not known. Any context,
 * also if the task runs.
 */
u64 function_true_return(const struct task *task, const u64 *slot);

/* An instruction of function_call.S outside of which a frame is complete. */
struct function_frameless {
	u64 pc;
	s32 word; /* of the stack: where the first return address is */
	u32 nr;	  /* return addresses there: of the place and of its function, or only the latter */
};

/* Between entry code and text: function_call.S, and then the hooks in C. */
extern char function_calls_start[], function_hooks_start[], function_calls_end[];
/* What replaces return addresses. */
extern char function_return[], function_graph_return[];

static __always_inline bool is_function_return(u64 addr)
{
	return addr == (u64)function_return ||
	       (IS_ENABLED(CONFIG_PROFILE_TRACE) && addr == (u64)function_graph_return);
}

#ifdef CONFIG_PROFILE_FUNCTIONS
/* For a new task, with task_list_lock held, and for one that is freed. */
void function_stack_alloc(struct task *task);
void function_stack_free(struct task *task);

/* Around the switch from a task to another one, and back. */
#define function_stack_leave(task)  function_stack_add_off(task, -rdtsc())
#define function_stack_return(task) function_stack_add_off(task, rdtsc())
#define function_stack_add_off(task, cycles)                                     \
	do {                                                                     \
		if (unlikely((task)->thread.functions))                          \
			(task)->thread.functions->thread.off_cycles += (cycles); \
	} while (0)
#else
static inline void function_stack_alloc(struct task *task)
{
}
static inline void function_stack_free(struct task *task)
{
}
#define function_stack_leave(task)  ((void)0)
#define function_stack_return(task) ((void)0)
#endif

#endif
