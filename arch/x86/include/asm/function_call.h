/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_FUNCTION_CALL_H
#define ASM_FUNCTION_CALL_H

/*
 * Hooks at the start and at the end of functions (CONFIG_PROFILE_FUNCTIONS). Each function begins
 * with a place of TEXT_PATCH_BYTES: a NOP, or a call of a hook. The general hook is function_call()
 * in function_call.S, which calls function_enter(). That may replace the function's return address
 * by function_return(), which calls function_exit(). Each task keeps the true return addresses in a
 * stack of its own. Other hooks: <asm/function_hook.h>.
 *
 * Functions that the hooks run through have no place (notrace); scripts/function_places.py checks
 * that. Calls in an NMI are not reported. So an NMI puts nothing on a task's stack of return
 * addresses, and may come at any moment.
 */

#include <asm/saving_call.h>
#include <asm/tsc.h>
#include <lego/kernel.h>
#include <profile/functions.h>

struct task;

/* A call whose end will be reported. 64 bytes, so that all of a stack fits in a page. */
struct function_frame {
	const u64 *slot; /* where on the kernel stack ret belongs; NULL: not set yet */
	u64 ret;
	struct profile_function_call call;
} __aligned(64);

#define FUNCTION_STACK_DEPTH 62 /* a stack takes one page */

/* scripts/function_places.py checks that no two places are in one such unit of the text. */
#define FUNCTION_ALIGN 16

/* A task's. Interrupts put their functions on top of those of the task. An NMI only reads it. */
struct function_stack {
	struct function_frame *top; /* frames[0] stands for the caller of the outermost call */
	struct profile_function_thread thread;
	struct function_frame frames[1 + FUNCTION_STACK_DEPTH];
};

/* A hook saves all registers. With clang, this is part of the type. */
typedef __attribute__((no_caller_saved_registers)) void function_hook_t(void);

/* The general hook, and its C half for other hooks. slot: of the function's return address. */
function_hook_t function_call;
void function_enter_saving(u64 *slot) __saves_registers;

/*
 * Patches each place to call the hook that hook_of() returns, or none if that is NULL. Before that,
 * gives each task a stack; without memory for it, the ends of the task's calls are not reported.
 * While one hook replaces another one, a call may reach neither. Returns 0 or -ENOMEM. Process
 * context; may sleep.
 */
int function_calls_set(function_hook_t *(*hook_of)(u32 place));

/* Return the number of places, and the address of place i, where its function begins. */
u32 function_nr_places(void);
u64 function_place(u32 i);

/* Returns whether there is a place at addr. Any context. */
bool function_is_place(u64 addr);

/*
 * Returns the true return address of a slot that has been replaced, or 0 if it is not known. The
 * task may be running. Any context.
 */
u64 function_true_return(const struct task *task, const u64 *slot);

/* An instruction of function_call.S at which its frames are not complete. */
struct function_frameless {
	u64 pc;
	s32 word; /* index, from rsp on, of the first return address on the stack */
	u32 nr;	  /* of return addresses: 2 with that behind the place, 1 without */
};

/* Between entry code and text lie the code of function_call.S, and then the hooks in C. */
extern char function_calls_start[], function_hooks_start[], function_calls_end[];
/* The addresses that replace return addresses. */
extern char function_return[], function_graph_return[];

static __always_inline bool is_function_return(u64 addr)
{
	return addr == (u64)function_return ||
	       (IS_ENABLED(CONFIG_PROFILE_TRACE) && addr == (u64)function_graph_return);
}

#ifdef CONFIG_PROFILE_FUNCTIONS
/* Called for a new task, with task_list_lock held, and when a task is freed. */
void function_stack_alloc(struct task *task);
void function_stack_free(struct task *task);

/* Called before a task leaves its CPU, and when it is back: keep its time off the CPU. */
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
