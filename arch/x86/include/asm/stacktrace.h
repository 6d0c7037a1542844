/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_STACKTRACE_H
#define ASM_STACKTRACE_H

/*
 * Call chains by frame pointer (CONFIG_PROFILE_CALLCHAIN), out of whatever was interrupted: nothing
 * here takes a lock or touches memory that could fault, and each walk is bounded.
 */

#include <asm/function_call.h>
#include <lego/sched.h>
#include <profile/stack_walk.h>

/* Once, before the first walk: makes room for paths of user code. Process context. */
void stack_walk_init(void);

/*
 * What an interrupt, exception or NMI hit: its own address and its callers', across interrupt
 * frames, and on into the user's. At most max, 1 to PROFILE_STACK_MAX_DEPTH, go to pcs. Interrupts
 * off, on the CPU that was hit.
 */
struct profile_stack_walk stack_walk(const struct pt_regs *regs, u64 *pcs, u32 max);

/* A frame: what a function's frame pointer points to. */
struct stack_frame {
	u64 caller; /* its frame pointer */
	u64 ret;    /* the return address into it */
};

/*
 * Where the frame lies of what entry code calls, below an empty word and struct pt_regs; also that
 * of a thread's first function.
 */
static __always_inline u64 outermost_frame(const struct task *task)
{
	return (u64)task_pt_regs(task) - sizeof(u64) - sizeof(struct stack_frame);
}

/*
 * Places in entry.S: the end of its code, which begins at _stext, and two return addresses. Calls
 * of functions (function_call.S) lie between that code and text_end.
 */
extern const struct entry_marks {
	u64 text_end;
	u64 syscall_return; /* of do_syscall_64() */
	u64 vector_return;  /* of do_vector(), called for what came out of kernel mode */
#ifdef CONFIG_PROFILE_FUNCTIONS
	u64 entry_end;
#else
#define entry_end text_end
#endif
} entry_marks;

extern char _text[], _stext[], _etext[];

#define MAX_TEXT (1UL << 20) /* from _text to _etext, with CONFIG_PROFILE_FUNCTIONS */

/* Entry code, before its frame is complete or after it is gone. */
static inline bool pc_in_entry(u64 pc)
{
	return pc - (u64)_stext < entry_marks.entry_end - (u64)_stext;
}

/* The text behind the entry code. */
static __always_inline bool pc_in_text(u64 pc)
{
	return pc - entry_marks.text_end < (u64)_etext - entry_marks.text_end;
}

#ifdef CONFIG_PROFILE_FUNCTIONS
/* In function_call.S, or a hook. */
static __always_inline bool pc_in_function_call(u64 pc)
{
	return pc - (u64)function_calls_start < (u64)(function_calls_end - function_calls_start);
}

/* In a hook in C (<asm/function_hook.h>): one word of the stack follows the hook's frame. */
static __always_inline bool pc_in_function_hook(u64 pc)
{
	return pc - (u64)function_hooks_start < (u64)(function_calls_end - function_hooks_start);
}

/* The return address at slot, on a task's stack; function_return() if it is not known. */
static __always_inline u64 stack_return_address(const struct task *task, const u64 *slot)
{
	u64 ret = READ_ONCE(*slot);

	if (unlikely(is_function_return(ret)))
		ret = function_true_return(task, slot) ?: ret;
	return ret;
}
#else
static __always_inline bool pc_in_function_call(u64 pc)
{
	return false;
}

static __always_inline bool pc_in_function_hook(u64 pc)
{
	return false;
}

#define stack_return_address(task, slot) (*(slot))
#endif

#define NO_SYSCALL 0xffff

/*
 * The system call that the current task is in, by the return address that its entry has left at
 * the top of the stack; NO_SYSCALL outside. A kernel thread has another address there, from its
 * start on. regs: what was interrupted, in the kernel.
 */
static __always_inline u32 task_syscall(const struct task *task, const struct pt_regs *regs)
{
	const struct pt_regs *entry = task_pt_regs(task);
	u32 nr = NO_SYSCALL;

	if (((const u64 *)entry)[-2] == entry_marks.syscall_return &&
	    regs->rip >= entry_marks.entry_end && (u32)entry->orig_rax < nr)
		nr = entry->orig_rax;
	return nr;
}

/* The same of a task that is off its CPU. */
static inline u32 sleeper_syscall(const struct task *task)
{
	struct pt_regs regs = { .rip = entry_marks.text_end };

	return task_syscall(task, &regs);
}

/*
 * The kernel's part of the call chain of a task that is off its CPU, up to an interrupt. Returns
 * the number of pcs. Should the task run meanwhile, they may be of no one chain.
 */
u32 stack_walk_sleeper(const struct task *task, u64 *pcs, u32 max);

static __always_inline bool same_words(const u64 *a, const u64 *b, u64 nr)
{
	bool same;

	/* nr is not 0, so the flags are those of the last comparison. */
	asm("repe cmpsq" : "=@cce"(same), "+S"(a), "+D"(b), "+c"(nr) : : "memory");
	return same;
}

#endif
