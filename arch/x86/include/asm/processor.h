/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PROCESSOR_H
#define ASM_PROCESSOR_H

/* The CPU and what the arch keeps of a task. */

#include <lego/kernel.h>

struct task;
struct pt_regs;

struct thread_struct {
	u64 sp;		      /* kernel stack pointer while switched out */
	u64 fs_base, gs_base; /* the user's */
	void *fpu;	      /* XSAVE area, 64-byte aligned; NULL for kernel threads */
	u64 trap_nr, error_code, fault_addr; /* of the last exception that became a signal */
#ifdef CONFIG_PROFILE_FUNCTIONS
	struct function_stack *functions; /* see <asm/function_call.h>; NULL: none */
#endif
};

/* In every spin loop: frees the sibling thread, and under icount lets other CPUs run. */
static inline void cpu_relax(void)
{
	asm volatile("pause" ::: "memory");
}

/* Wait for an interrupt; called with interrupts off, returns with interrupts on. */
static inline void cpu_wait_for_interrupt(void)
{
	asm volatile("sti; hlt" ::: "memory");
}

/*
 * Switch stacks, current and per-task CPU state; returns on next's stack, later, when next is
 * switched to.
 */
void switch_to(struct task *prev, struct task *next);

/* First run of a kernel thread: schedule_tail(), then fn(arg); when fn returns, user mode by
 * task_pt_regs(). */
void thread_setup_kernel(struct task *task, int (*fn)(void *arg), void *arg);

/* First run of a cloned thread: schedule_tail(), fn(arg), then user mode with *regs but rax 0 and,
 * if not 0, the stack. */
void thread_setup_user(struct task *task, const struct pt_regs *regs, u64 user_stack,
		       int (*fn)(void *arg), void *arg);

/* FPU area: allocated clean, or copied from the current task for clone. 0 or -ENOMEM. */
int thread_fpu_alloc(struct task *task);
int thread_fpu_copy(struct task *task);
void thread_fpu_free(struct task *task);

/* Enter a new program: clean registers and FPU, FS and GS 0. */
void thread_start_user(struct pt_regs *regs, u64 entry, u64 user_stack);

/* The current task's FS base, from clone's CLONE_SETTLS: takes effect in the new task. */
void thread_set_fs_base(struct task *task, u64 base);
void thread_set_gs_base(struct task *task, u64 base);

#endif
