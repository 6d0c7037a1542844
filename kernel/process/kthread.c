// SPDX-License-Identifier: BSD-2-Clause
/* Creates tasks without clone(): kernel threads, and the first thread of init. */

#include <lego/sched.h>

#include "process.h"
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/exec.h>
#include <lego/fs.h>
#include <profile/syscall.h>
#include <lego/slab.h>

#define NR_EXECVE 59 /* in arch/x86/entry/syscalls.tbl */

struct kthread_start {
	int (*fn)(void *arg);
	void *arg;
};

static int kthread_main(void *arg)
{
	struct kthread_start start = *(struct kthread_start *)arg;

	kfree(arg);
	task_exit(start.fn(start.arg));
}

struct task *kthread_create(int (*fn)(void *arg), void *arg, const char *name)
{
	struct kthread_start *start = kmalloc(sizeof(*start));
	struct task *task;

	if (!start)
		return ERR_PTR(-ENOMEM);
	task = task_alloc(name, NULL);
	if (IS_ERR(task)) {
		kfree(start);
		return task;
	}
	profile_task_init(task);
	start->fn = fn;
	start->arg = arg;
	thread_setup_kernel(task, kthread_main, start);
	return task;
}

struct init_start {
	const char *const *argv;
	const char *const *envp;
	int error;
	bool done;
	struct wait_queue wq;
};

/*
 * The main function of init's first thread. Its execve is an ordinary system call for the profiler.
 */
static int init_main(void *arg)
{
	struct init_start *start = arg;
	int error;

	cputime_begin_call();
	profile_syscall_enter(NR_EXECVE);
	error = do_execve(start->argv[0], start->argv, start->envp, task_pt_regs(current));
	profile_syscall_exit(error);
	start->error = error;
	/*
	 * When the waiter has seen `done`, `start` is gone. But it reads `done` with the queue's
	 * lock held, so wake_up_all() has finished by then.
	 */
	smp_store_release(&start->done, true);
	wake_up_all(&start->wq);
	if (!error)
		return 0;
	for (;;) {
		WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
		schedule();
	}
}

/* A failure ends the boot, so nothing is freed. */
int process_start_init(const char *const *argv, const char *const *envp)
{
	static struct init_start start;
	struct process *proc;
	struct task *task;

	start = (struct init_start){ .argv = argv, .envp = envp };
	wait_queue_init(&start.wq);
	proc = process_alloc("init");
	if (!proc)
		return -ENOMEM;
	process_init_limits(proc);
	user_charge_init(proc);
	proc->files = files_alloc();
	proc->fs = fs_info_alloc();
	if (!proc->files || !proc->fs)
		return -ENOMEM;
	task = task_alloc("init", proc);
	if (IS_ERR(task) || thread_fpu_alloc(task))
		return -ENOMEM;
	task->files = proc->files;
	BUG_ON(family_add(proc, task, NULL, false));
	BUG_ON(proc->pid != INIT_PID);
	profile_process_init(proc);
	profile_task_init(task);
	thread_setup_kernel(task, init_main, &start);
	task_wake(task);
	wait_event(&start.wq, smp_load_acquire(&start.done));
	return start.error;
}
