// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sched.h>

#include "process.h"
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/vmap.h>

/*
 * Memory of tasks and processes. A task's first reference is its own: the scheduler drops it
 * when the dead task has left its stack. A process lives as long as it has threads.
 */

/* Numbers of user threads, and of kernel threads, which users never see. */
#define PID_MAX		  4194304
#define KTHREAD_PID_FIRST 1000000000

static pid_t last_pid, last_kthread_pid = KTHREAD_PID_FIRST - 1;
static bool pid_wrapped;

/* With task_list_lock held. */
static bool pid_in_use(pid_t pid)
{
	struct task *task;

	list_for_each_entry(task, &task_list, all_node) {
		if (task->pid == pid)
			return true;
	}
	return false;
}

pid_t pid_alloc(void)
{
	unsigned long flags = spin_lock_irqsave(&task_list_lock);
	pid_t pid;

	do {
		if (++last_pid >= PID_MAX) {
			last_pid = 1;
			pid_wrapped = true;
		}
		pid = last_pid;
	} while (pid_wrapped && pid_in_use(pid));
	spin_unlock_irqrestore(&task_list_lock, flags);
	return pid;
}

struct task *task_alloc(const char *comm, struct process *proc)
{
	struct task *task = kzalloc(sizeof(*task));
	unsigned long flags;

	if (!task)
		return NULL;
	task->kernel_stack = kernel_stack_alloc();
	if (!task->kernel_stack) {
		kfree(task);
		return NULL;
	}
	strscpy(task->comm, comm, sizeof(task->comm));
	atomic_set(&task->refs, 1);
	task->state = TASK_UNINTERRUPTIBLE;
	task->cpu = smp_processor_id();
	task->cpus_allowed = ~0ULL;
	task->proc = proc;
	list_init(&task->thread_node);
	list_init(&task->run_node);
	if (proc)
		task->pid = pid_alloc();
	flags = spin_lock_irqsave(&task_list_lock);
	if (!proc)
		task->pid = ++last_kthread_pid;
	list_add_tail(&task->all_node, &task_list);
	spin_unlock_irqrestore(&task_list_lock, flags);
	return task;
}

void task_get(struct task *task)
{
	atomic_inc(&task->refs);
}

void task_put(struct task *task)
{
	unsigned long flags;

	if (!atomic_dec_and_test(&task->refs))
		return;
	flags = spin_lock_irqsave(&task_list_lock);
	list_del(&task->all_node);
	spin_unlock_irqrestore(&task_list_lock, flags);
	thread_fpu_free(task);
	kernel_stack_free(task->kernel_stack);
	kfree(task);
}

struct process *process_alloc(const char *comm)
{
	struct process *proc = kzalloc(sizeof(*proc));

	if (!proc)
		return NULL;
	proc->files = files_alloc();
	if (!proc->files) {
		kfree(proc);
		return NULL;
	}
	strscpy(proc->comm, comm, sizeof(proc->comm));
	atomic_set(&proc->refs, 1);
	spin_lock_init(&proc->lock);
	list_init(&proc->threads);
	wait_queue_init(&proc->exit_wait);
	process_init_limits(proc);
	profile_process_init(proc);
	return proc;
}

void process_put(struct process *proc)
{
	if (!atomic_dec_and_test(&proc->refs))
		return;
	kfree(proc->exe_path);
	kfree(proc);
}

int process_add_thread(struct process *proc, struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	int error = 0;

	/* Who makes threads leave marks them under this lock: no new one escapes. */
	if (proc->exiting || current->killed) {
		error = -EAGAIN;
	} else {
		list_add_tail(&task->thread_node, &proc->threads);
		proc->nr_threads++;
		atomic_inc(&proc->refs);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return error;
}

struct task *process_find_thread(struct process *proc, pid_t tid)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct task *task, *found = NULL;

	list_for_each_entry(task, &proc->threads, thread_node) {
		if (task->pid == tid) {
			found = task;
			task_get(found);
			break;
		}
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return found;
}

struct task *task_find(pid_t tid)
{
	return process_find_thread(current->proc, tid ? tid : current->pid);
}
