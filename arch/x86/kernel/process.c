// SPDX-License-Identifier: BSD-2-Clause
/* Switches between tasks, and starts new ones. */
#include <asm/processor.h>

#include <asm/desc.h>
#include <asm/fpu.h>
#include <asm/function_call.h>
#include <asm/irqflags.h>
#include <asm/msr.h>
#include <asm/setup.h>
#include <lego/percpu.h>
#include <lego/sched.h>
#include <lego/string.h>

#define RFLAGS_FIXED BIT(1)

/* The words that switch_stack() pops. A new task "returns" to thread_entry. */
struct switch_frame {
	u64 r15, r14, r13, r12, rbx, rbp;
	u64 ret;
};

void switch_stack(u64 *prev_sp, u64 next_sp, struct task *next);
void thread_entry(void);

DECLARE_PER_CPU(struct tss, cpu_tss);

/* For the system call entry: where a user thread's kernel stack starts, and a place for its rsp. */
DECLARE_PER_CPU(u64, kernel_stack_top);
DECLARE_PER_CPU(u64, user_rsp);
DEFINE_PER_CPU(u64, kernel_stack_top);
DEFINE_PER_CPU(u64, user_rsp);

/* Kernel threads keep the values of the last user thread, because they do not use them. */
static void switch_segment_bases(const struct thread_struct *next)
{
	wrmsr(MSR_FS_BASE, next->fs_base);
	wrmsr(MSR_KERNEL_GS_BASE, next->gs_base);
}

void switch_to(struct task *prev, struct task *next)
{
	u64 top = (u64)next->kernel_stack + KERNEL_STACK_SIZE;

	this_cpu_write(kernel_stack_top, top);
	this_cpu_write(cpu_tss.rsp[0], top);
	fpu_switch(prev, next);
	if (next->thread.fpu)
		switch_segment_bases(&next->thread);
	function_stack_leave(prev);
	switch_stack(&prev->thread.sp, next->thread.sp, next);
	function_stack_return(prev);
}

static void setup_frame(struct task *task, u64 fn, u64 arg)
{
	struct switch_frame *frame = (struct switch_frame *)task_pt_regs(task) - 1;

	*frame = (struct switch_frame){
		.rbx = fn,
		.r12 = arg,
		.ret = (u64)thread_entry,
	};
	task->thread.sp = (u64)frame;
}

void thread_setup_kernel(struct task *task, int (*fn)(void *arg), void *arg)
{
	memset(task_pt_regs(task), 0, sizeof(struct pt_regs));
	setup_frame(task, (u64)fn, (u64)arg);
}

void thread_setup_user(struct task *task, const struct pt_regs *regs, u64 user_stack,
		       int (*fn)(void *arg), void *arg)
{
	struct pt_regs *child = task_pt_regs(task);

	*child = *regs;
	child->rax = 0;
	if (user_stack)
		child->rsp = user_stack;
	setup_frame(task, (u64)fn, (u64)arg);
}

void thread_start_user(struct pt_regs *regs, u64 entry, u64 user_stack)
{
	*regs = (struct pt_regs){
		.orig_rax = ~0ULL,
		.rip = entry,
		.cs = USER_CS,
		.rflags = RFLAGS_IF | RFLAGS_FIXED,
		.rsp = user_stack,
		.ss = USER_DS,
	};
	thread_set_fs_base(current, 0);
	thread_set_gs_base(current, 0);
	fpu_reset();
}

/*
 * The task's copy and the register change together; otherwise a switch in between could lose the
 * new value.
 */
static void set_base(struct task *task, u64 *copy, u32 msr, u64 base)
{
	unsigned long flags = local_irq_save();

	*copy = base;
	if (task == current)
		wrmsr(msr, base);
	local_irq_restore(flags);
}

void thread_set_fs_base(struct task *task, u64 base)
{
	set_base(task, &task->thread.fs_base, MSR_FS_BASE, base);
}

void thread_set_gs_base(struct task *task, u64 base)
{
	set_base(task, &task->thread.gs_base, MSR_KERNEL_GS_BASE, base);
}
