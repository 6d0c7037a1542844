// SPDX-License-Identifier: BSD-2-Clause
/*
 * fork, vfork and clone. The result is a new thread of the process, or a process that starts as a
 * copy of the current one. Memory, files and working directory of a process are its own or shared;
 * a thread shares all of them. Namespaces, pidfds, and signal actions shared by two processes are
 * not supported.
 */

#include <lego/sched.h>

#include "process.h"
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define CSIGNAL		     0x000000ff
#define CLONE_VM	     0x00000100
#define CLONE_FS	     0x00000200
#define CLONE_FILES	     0x00000400
#define CLONE_SIGHAND	     0x00000800
#define CLONE_PIDFD	     0x00001000
#define CLONE_VFORK	     0x00004000
#define CLONE_PARENT	     0x00008000
#define CLONE_THREAD	     0x00010000
#define CLONE_SYSVSEM	     0x00040000
#define CLONE_SETTLS	     0x00080000
#define CLONE_PARENT_SETTID  0x00100000
#define CLONE_CHILD_CLEARTID 0x00200000
#define CLONE_DETACHED	     0x00400000
#define CLONE_CHILD_SETTID   0x01000000
#define CLONE_IO	     0x80000000	    /* shares the I/O context: there are no disks */
#define CLONE_CLEAR_SIGHAND  0x100000000ULL /* clone3 only */

/* A thread shares all of this with its process. */
#define CLONE_SHARED (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

#define CLONE_SUPPORTED                                                               \
	(CLONE_SHARED | CLONE_VFORK | CLONE_PARENT | CLONE_SYSVSEM | CLONE_SETTLS |   \
	 CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | CLONE_IO | \
	 CLONE_CLEAR_SIGHAND)

/* Times creation of a thread, from the system call until the new thread is runnable. */
DEFINE_PROFILE_POINT_SLEEPS(thread_create)

/* The same for a process; with vfork, until the child has left the memory. */
DEFINE_PROFILE_POINT_SLEEPS(fork)

/* Linux's layout; its versions differ in length. */
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

/* All defined flags. CLEAR_SIGHAND and INTO_CGROUP are above the 32 bits of clone(). */
#define CLONE3_FLAGS 0x3ffffffffULL

/* Returns 0 or -EINVAL. Flags that Linux supports and this kernel does not are logged once. */
static int check_flags(u64 flags)
{
	static bool logged;

	if ((flags & CLONE_THREAD) && !(flags & CLONE_SIGHAND))
		return -EINVAL;
	if ((flags & CLONE_SIGHAND) && !(flags & CLONE_VM))
		return -EINVAL;
	if ((flags & CLONE_SIGHAND) && (flags & CLONE_CLEAR_SIGHAND))
		return -EINVAL;
	/* No process would wait for the siblings of init. */
	if ((flags & CLONE_PARENT) && current->proc->pid == INIT_PID)
		return -EINVAL;
	if (!(flags & ~CLONE_SUPPORTED) &&
	    (flags & CLONE_THREAD ? (flags & (CLONE_SHARED | CLONE_VFORK)) == CLONE_SHARED :
				    !(flags & CLONE_SIGHAND)))
		return 0;
	if (!logged)
		printk("clone: %pE[%d]: flags %llx are not supported\n", current->comm,
		       current->pid, (unsigned long long)flags);
	logged = true;
	return -EINVAL;
}

/* Runs first in a new thread. A bad address of a tid is no error, as in Linux. */
static int thread_main(void *arg)
{
	struct task *task = current;

	(void)arg;
	if (task->set_child_tid && put_user((u32)task->pid, task->set_child_tid))
		task->set_child_tid = NULL;
	return 0;
}

/* Copies the current thread's state to a new thread, of this or another process. */
static int setup_thread(struct task *task, const struct clone_args *args)
{
	struct task *parent = current;
	u64 flags = args->flags;
	int error;

	if ((flags & CLONE_SETTLS) && args->tls >= TASK_SIZE)
		return -EPERM;
	task->cpus_allowed = parent->cpus_allowed;
	sched_inherit_policy(task, parent);
	task->blocked_signals = parent->blocked_signals;
	task->slack_ns = task->default_slack_ns = parent->slack_ns;
	task->personality = parent->personality;
	if (!(flags & CLONE_VM) || (flags & CLONE_VFORK))
		task->altstack = parent->altstack;
	else
		task->altstack.flags = SS_DISABLE;
	if (!(flags & CLONE_VM))
		rseq_copy(task, parent);
	error = thread_fpu_copy(task);
	if (error)
		return error;
	task->thread.fs_base = parent->thread.fs_base;
	task->thread.gs_base = parent->thread.gs_base;
	if (flags & CLONE_SETTLS)
		thread_set_fs_base(task, args->tls);
	if (flags & CLONE_CHILD_CLEARTID)
		task->clear_child_tid = (u32 __user *)args->child_tid;
	if (flags & CLONE_CHILD_SETTID)
		task->set_child_tid = (u32 __user *)args->child_tid;
	thread_setup_user(task, task_pt_regs(parent), args->stack + args->stack_size, thread_main,
			  NULL);
	return 0;
}

static void store_parent_tid(const struct clone_args *args, pid_t tid)
{
	if ((args->flags & CLONE_PARENT_SETTID) && put_user(tid, (pid_t __user *)args->parent_tid))
		return; /* a bad address is no error, as in Linux */
}

static long clone_thread(const struct clone_args *args)
{
	struct task *task;
	int error;
	pid_t tid;
	PROFILE_SCOPE(thread_create);

	error = user_charge_thread(current->proc);
	if (error)
		return error;
	task = task_alloc(current->comm, current->proc);
	if (IS_ERR(task)) {
		error = PTR_ERR(task);
		goto out_uncharge;
	}
	profile_task_init(task);
	tid = task->pid;
	task->mm = current->mm;
	task_share_files(task);
	error = setup_thread(task, args);
	if (error)
		goto out_put;
	store_parent_tid(args, tid);
	error = process_add_thread(current->proc, task);
	if (error)
		goto out_put;
	profile_trace(sched_process_fork, current, task);
	task_wake(task);
	return tid;
out_put:
	profile_task_exit(task);
	task_put_own_files(task);
	task_put(task);
out_uncharge:
	user_uncharge_thread(current->proc);
	return error;
}

static int copy_resources(struct process *proc, struct process *parent, u64 flags)
{
	might_sleep();
	DEBUG_ASSERT(parent == current->proc);
	if (flags & CLONE_VM) {
		proc->mm = parent->mm;
		mm_get(proc->mm);
	} else {
		proc->mm = mm_copy(parent->mm);
	}
	if (flags & CLONE_FILES) {
		/*
		 * Set before either process can exec, which uses it to decide whether to copy the
		 * table.
		 */
		WRITE_ONCE(parent->shares_files, true);
		proc->shares_files = true;
		proc->files = files_get(current->files);
	} else {
		proc->files = files_copy(current->files);
	}
	proc->fs = flags & CLONE_FS ? fs_info_get(parent->fs) : fs_info_copy(parent->fs);
	proc->exe_path = kstrdup(parent->exe_path);
	return proc->mm && proc->files && proc->fs && proc->exe_path ? 0 : -ENOMEM;
}

static void copy_attributes(struct process *proc, struct process *parent, u64 flags)
{
	unsigned long irq_flags = spin_lock_irqsave(&parent->lock);

	memcpy(proc->rlimits, parent->rlimits, sizeof(proc->rlimits));
	proc->nice = current->reset_on_fork ? max(parent->nice, 0) : parent->nice;
	proc->no_new_privs = parent->no_new_privs;
	proc->keeps_caps = parent->keeps_caps;
	proc->no_large_pages = parent->no_large_pages;
	proc->not_dumpable = parent->not_dumpable;
	spin_unlock_irqrestore(&parent->lock, irq_flags);
	signal_copy_actions(proc, parent, flags & CLONE_CLEAR_SIGHAND);
}

/* Copies or shares everything. After an error proc has a part of it, which the caller drops. */
static int copy_process(struct process *proc, const struct clone_args *args)
{
	struct process *parent = current->proc;

	copy_attributes(proc, parent, args->flags);
	proc->exit_signal = args->flags & CLONE_PARENT ? parent->exit_signal : args->exit_signal;
	return copy_resources(proc, parent, args->flags);
}

/*
 * Waits until the child no longer uses the parent's memory. If the parent is killed, the child goes
 * on.
 */
static void wait_vfork(struct process *proc)
{
	if (wait_event_killable(&proc->exit_wait, READ_ONCE(proc->vfork_done)))
		return;
}

/*
 * Creates a process. Every step that may fail comes first: once the child is in the family it runs.
 * The profiler also knows it only from then on, so a failure leaves no report.
 */
static long clone_process(const struct clone_args *args)
{
	struct process *proc;
	struct task *task;
	long ret;
	PROFILE_SCOPE(fork);

	proc = process_alloc(current->comm);
	if (!proc)
		return -ENOMEM;
	ret = user_charge_process(proc, current->proc);
	if (ret)
		goto out_proc;
	/* First, because it fails if no pid is free, and copying memory takes long. */
	task = task_alloc(current->comm, proc);
	if (IS_ERR(task)) {
		ret = PTR_ERR(task);
		goto out_proc;
	}
	ret = copy_process(proc, args);
	task->mm = proc->mm;
	task->files = proc->files;
	if (!ret)
		ret = setup_thread(task, args);
	if (!ret)
		ret = family_add(proc, task, current->proc, args->flags & CLONE_PARENT);
	if (ret)
		goto out_task;
	profile_process_init(proc);
	profile_task_init(task);
	ret = proc->pid;
	process_get(proc);
	store_parent_tid(args, proc->pid);
	profile_trace(sched_process_fork, current, task);
	task_wake(task);
	if (args->flags & CLONE_VFORK)
		wait_vfork(proc);
	process_put(proc);
	return ret;
out_task:
	task->mm = NULL;
	task_put(task);
out_proc:
	process_drop_files(proc);
	process_drop_mm(proc);
	user_uncharge_process(proc);
	process_put(proc);
	return ret;
}

static long clone_any(const struct clone_args *args)
{
	int error = check_flags(args->flags);

	if (error)
		return error;
	return args->flags & CLONE_THREAD ? clone_thread(args) : clone_process(args);
}

SYSCALL_DEFINE0(fork)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return clone_any(&args);
}

SYSCALL_DEFINE0(vfork)
{
	struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD };

	return clone_any(&args);
}

SYSCALL_DEFINE5(clone, u64, flags, u64, stack, u64, parent_tid, u64, child_tid, u64, tls)
{
	struct clone_args args = {
		/* DETACHED has no effect, as in Linux. */
		.flags = (u32)flags & ~(u64)(CSIGNAL | CLONE_DETACHED),
		.exit_signal = flags & CSIGNAL,
		.stack = stack,
		.parent_tid = parent_tid,
		.child_tid = child_tid,
		.tls = tls,
	};

	if ((flags & CLONE_PIDFD) && (flags & (CLONE_DETACHED | CLONE_PARENT_SETTID)))
		return -EINVAL;
	return clone_any(&args);
}

int check_zero_user(const u8 __user *rest, size_t n)
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
		error = check_zero_user((u8 __user *)uargs + sizeof(args), size - sizeof(args));
		if (error)
			return error;
	}
	if (args.flags & (CLONE_DETACHED | CSIGNAL | ~CLONE3_FLAGS))
		return -EINVAL;
	if (args.exit_signal &&
	    (args.flags & (CLONE_THREAD | CLONE_PARENT) || args.exit_signal > NR_SIGNALS))
		return -EINVAL;
	if (!args.stack != !args.stack_size || args.set_tid || args.set_tid_size)
		return -EINVAL;
	if (args.stack && !access_ok((void __user *)args.stack, args.stack_size))
		return -EINVAL;
	return clone_any(&args);
}
