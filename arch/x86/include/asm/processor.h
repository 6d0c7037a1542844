/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PROCESSOR_H
#define ASM_PROCESSOR_H

/* The CPU, and the arch's part of a task. */

#include <lego/kernel.h>

struct task;
struct pt_regs;

struct thread_struct {
	u64 sp;		      /* kernel stack pointer while switched out */
	u64 fs_base, gs_base; /* of user mode */
	void *fpu;	      /* XSAVE area, 64-byte aligned; NULL for kernel threads */
	u64 trap_nr, error_code, fault_addr; /* of the last exception that became a signal */
#ifdef CONFIG_PROFILE_FUNCTIONS
	struct function_stack *functions; /* see <asm/function_call.h>; NULL: none */
#endif
};

/* Called in every spin loop: yields to the sibling thread, and under icount lets other CPUs run. */
static inline void cpu_relax(void)
{
	asm volatile("pause" ::: "memory");
}

/* Waits for an interrupt. Called with interrupts off, returns with interrupts on. */
static inline void cpu_wait_for_interrupt(void)
{
	asm volatile("sti; hlt" ::: "memory");
}

/*
 * Switches the stack, `current` and the CPU state of a task. Returns on next's stack, later, when
 * next is switched to.
 */
void switch_to(struct task *prev, struct task *next);

/*
 * Prepares the first run of a kernel thread: schedule_tail(), then fn(arg). If fn returns, the
 * thread enters user mode with task_pt_regs().
 */
void thread_setup_kernel(struct task *task, int (*fn)(void *arg), void *arg);

/*
 * Prepares the first run of a cloned thread: schedule_tail(), fn(arg), then user mode with *regs,
 * except that rax is 0 and the stack is user_stack if that is not 0.
 */
void thread_setup_user(struct task *task, const struct pt_regs *regs, u64 user_stack,
		       int (*fn)(void *arg), void *arg);

/* Allocates an FPU area, reset or copied from the current task for clone. 0 or -ENOMEM. */
int thread_fpu_alloc(struct task *task);
int thread_fpu_copy(struct task *task);
void thread_fpu_free(struct task *task);

/* Enters a new program: registers and FPU reset, FS and GS 0. */
void thread_start_user(struct pt_regs *regs, u64 entry, u64 user_stack);

/* Sets the FS base of a new task, for CLONE_SETTLS. It takes effect when the task first runs. */
void thread_set_fs_base(struct task *task, u64 base);
void thread_set_gs_base(struct task *task, u64 base);

#endif
