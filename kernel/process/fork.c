// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sched.h>

#include "process.h"
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/exec.h>
#include <lego/fs.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/*
 * Making threads: kernel threads, the first thread of init's process, and clone. There is one
 * process; clone makes threads of it and refuses what would make another (-ENOSYS).
 */

#define CSIGNAL		     0x000000ff
#define CLONE_VM	     0x00000100
#define CLONE_FS	     0x00000200
#define CLONE_FILES	     0x00000400
#define CLONE_SIGHAND	     0x00000800
#define CLONE_PIDFD	     0x00001000
#define CLONE_THREAD	     0x00010000
#define CLONE_NEWNS	     0x00020000
#define CLONE_SYSVSEM	     0x00040000
#define CLONE_SETTLS	     0x00080000
#define CLONE_PARENT_SETTID  0x00100000
#define CLONE_CHILD_CLEARTID 0x00200000
#define CLONE_DETACHED	     0x00400000
#define CLONE_CHILD_SETTID   0x01000000
#define CLONE_NEWUSER	     0x10000000
#define CLONE_NEWPID	     0x20000000

/* What a thread shares with its process, all of it. */
#define CLONE_SHARED (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

#define CLONE_SUPPORTED                                                      \
	(CLONE_SHARED | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | \
	 CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)

/* From the system call until the new thread is runnable. */
DEFINE_PROFILE_POINT_SLEEPS(thread_create)

/* Linux's layout; versions differ in length. */
struct clone_args {
	u64 flags;
	u64 pidfd;
	u64 child_tid;
	u64 parent_tid;
	u64 exit_signal;
	u64 stack;
	u64 stack_size;
	u64 tls;
	u64 set_tid;
	u64 set_tid_size;
	u64 cgroup;
};

#define CLONE_ARGS_SIZE_VER0 64

/* All that have a meaning: CLEAR_SIGHAND and INTO_CGROUP are above the 32 bits of clone(). */
#define CLONE3_FLAGS 0x3ffffffffULL

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
	if (!task) {
		kfree(start);
		return ERR_PTR(-ENOMEM);
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

/* Init's first thread: its execve is a system call like any other to the profiler. */
static int init_main(void *arg)
{
	struct init_start *start = arg;
	int error;

	profile_syscall_enter(NR_EXECVE);
	error = do_execve(start->argv[0], start->argv, start->envp, task_pt_regs(current));
	profile_syscall_exit(error);
	start->error = error;
	/* Once done is seen, start is gone; the waiter reads it under the queue's lock only. */
	smp_store_release(&start->done, true);
	wake_up_all(&start->wq);
	if (!error)
		return 0;
	for (;;) {
		WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
		schedule();
	}
}

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
	task = task_alloc("init", proc);
	if (!task || thread_fpu_alloc(task))
		return -ENOMEM;
	proc->pid = task->pid;
	profile_task_init(task);
	BUG_ON(process_add_thread(proc, task));
	process_put(proc);
	thread_setup_kernel(task, init_main, &start);
	task_wake(task);
	wait_event(&start.wq, smp_load_acquire(&start.done));
	return start.error;
}

/* What Linux calls invalid is so here; what it could do and we cannot is named once in the log. */
static int check_flags(u64 flags)
{
	static bool logged;

	if ((flags & CLONE_THREAD) && !(flags & CLONE_SIGHAND))
		return -EINVAL;
	if ((flags & CLONE_SIGHAND) && !(flags & CLONE_VM))
		return -EINVAL;
	if ((flags & CLONE_FS) && (flags & (CLONE_NEWNS | CLONE_NEWUSER)))
		return -EINVAL;
	if ((flags & CLONE_THREAD) && (flags & (CLONE_NEWUSER | CLONE_NEWPID | CLONE_PIDFD)))
		return -EINVAL;
	if ((flags & CLONE_SHARED) == CLONE_SHARED && !(flags & ~(u64)CLONE_SUPPORTED))
		return 0;
	if (!logged)
		printk("clone: flags %llx: only threads can be made\n", (unsigned long long)flags);
	logged = true;
	return -ENOSYS;
}

static int setup_thread(struct task *task, const struct clone_args *args)
{
	u64 flags = args->flags;
	int error;

	task->mm = current->mm;
	task->cpus_allowed = current->cpus_allowed;
	task->blocked_signals = current->blocked_signals;
	error = thread_fpu_copy(task);
	if (error)
		return error;
	task->thread.fs_base = current->thread.fs_base;
	task->thread.gs_base = current->thread.gs_base;
	if (flags & CLONE_SETTLS)
		thread_set_fs_base(task, args->tls);
	if (flags & CLONE_CHILD_CLEARTID)
		task->clear_child_tid = (u32 __user *)args->child_tid;
	thread_setup_user(task, task_pt_regs(current), args->stack + args->stack_size);
	return 0;
}

/* A bad address of a tid is no error, as in Linux. Parent and child share the memory. */
static void store_tids(const struct clone_args *args, pid_t tid)
{
	if ((args->flags & CLONE_PARENT_SETTID) && put_user(tid, (pid_t __user *)args->parent_tid))
		return;
	if ((args->flags & CLONE_CHILD_SETTID) && put_user(tid, (pid_t __user *)args->child_tid))
		return;
}

static long clone_thread(const struct clone_args *args)
{
	struct task *task;
	int error = check_flags(args->flags);
	pid_t tid;
	PROFILE_SCOPE(thread_create);

	if (error)
		return error;
	if ((args->flags & CLONE_SETTLS) && args->tls >= TASK_SIZE)
		return -EPERM;
	task = task_alloc(current->comm, current->proc);
	if (!task)
		return -ENOMEM;
	profile_task_init(task);
	tid = task->pid;
	error = setup_thread(task, args);
	if (error)
		goto out_put;
	store_tids(args, tid);
	error = process_add_thread(current->proc, task);
	if (error)
		goto out_put;
	task_wake(task);
	return tid;
out_put:
	profile_task_exit(task);
	task_put(task);
	return error;
}

SYSCALL_DEFINE5(clone, u64, flags, u64, stack, u64, parent_tid, u64, child_tid, u64, tls)
{
	struct clone_args args = {
		/* The signal at exit means nothing for a thread; DETACHED has never meant much. */
		.flags = (u32)flags & ~(u64)(CSIGNAL | CLONE_DETACHED),
		.stack = stack,
		.parent_tid = parent_tid,
		.child_tid = child_tid,
		.tls = tls,
	};

	if ((flags & CLONE_PIDFD) && (flags & (CLONE_DETACHED | CLONE_PARENT_SETTID)))
		return -EINVAL;
	return clone_thread(&args);
}

/* A longer struct than ours is accepted when what we do not know is zero. */
static int check_rest(const u8 __user *rest, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		u8 byte;

		if (get_user(byte, rest + i))
			return -EFAULT;
		if (byte)
			return -E2BIG;
	}
	return 0;
}

SYSCALL_DEFINE2(clone3, void __user *, uargs, size_t, size)
{
	struct clone_args args = { 0 };
	int error;

	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < CLONE_ARGS_SIZE_VER0)
		return -EINVAL;
	if (copy_from_user(&args, uargs, min(size, sizeof(args))))
		return -EFAULT;
	if (size > sizeof(args)) {
		error = check_rest((u8 __user *)uargs + sizeof(args), size - sizeof(args));
		if (error)
			return error;
	}
	if (args.flags & (CLONE_DETACHED | CSIGNAL | ~CLONE3_FLAGS))
		return -EINVAL;
	if (args.exit_signal && (args.flags & CLONE_THREAD || args.exit_signal > NR_SIGNALS))
		return -EINVAL;
	if (!args.stack != !args.stack_size || args.set_tid || args.set_tid_size)
		return -EINVAL;
	if (args.stack && !access_ok((void __user *)args.stack, args.stack_size))
		return -EINVAL;
	return clone_thread(&args);
}
