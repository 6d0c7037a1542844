// SPDX-License-Identifier: BSD-2-Clause
/*
 * Selects the descriptor table of a thread. A process has a table, proc->files, which its threads
 * use without references of their own. close_range(CLOSE_RANGE_UNSHARE) gives a thread a copy, with
 * its own reference; threads that it creates share the copy.
 *
 * The last thread drops the process's table after the process's report. If all threads have other
 * tables, the process's table is dropped at once, because no thread could close its files.
 */

#include <lego/process.h>

#include "process.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/sched.h>

/* Returns the process's table, for the caller to drop, if none of nr threads uses it; else NULL. */
static struct files *take_unused(struct process *proc, unsigned int nr)
{
	struct files *files = proc->files;

	ASSERT_HELD(&proc->lock);
	if (proc->nr_own_files < nr)
		return NULL;
	proc->files = NULL;
	return files;
}

static void put_files(struct files *files)
{
	if (files)
		files_put(files);
}

void task_share_files(struct task *task)
{
	task->files = current->files;
	task->has_own_files = current->has_own_files;
	if (task->has_own_files)
		files_get(task->files);
}

void task_put_own_files(struct task *task)
{
	DEBUG_ASSERT(list_empty(&task->thread_node));
	if (task->has_own_files)
		files_put(task->files);
}

void task_leave_files(struct task *task)
{
	struct process *proc = task->proc;
	struct files *own = NULL, *unused = NULL;
	unsigned long flags;

	might_sleep();
	if (!READ_ONCE(proc->nr_own_files))
		return;
	flags = spin_lock_irqsave(&proc->lock);
	if (task->has_own_files) {
		own = task->files;
		task->has_own_files = false;
		proc->nr_own_files--;
	} else if (proc->nr_threads > 1) {
		unused = take_unused(proc, proc->nr_threads - 1);
	}
	task->files = NULL;
	spin_unlock_irqrestore(&proc->lock, flags);
	put_files(own);
	put_files(unused);
}

int task_unshare_files(void)
{
	struct task *task = current;
	struct process *proc = task->proc;
	struct files *copy, *old = task->files;
	bool alone = READ_ONCE(proc->nr_threads) == 1;
	unsigned long flags;

	if (alone && !READ_ONCE(proc->shares_files))
		return 0;
	copy = files_copy(old);
	if (!copy)
		return -ENOMEM;
	if (alone) {
		process_replace_files(proc, copy);
		return 0;
	}
	flags = spin_lock_irqsave(&proc->lock);
	if (!task->has_own_files) {
		task->has_own_files = true;
		proc->nr_own_files++;
		old = take_unused(proc, proc->nr_threads);
	}
	task->files = copy;
	spin_unlock_irqrestore(&proc->lock, flags);
	put_files(old);
	return 0;
}

void process_replace_files(struct process *proc, struct files *files)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct files *old = proc->files, *own = current->has_own_files ? current->files : NULL;

	DEBUG_ASSERT(proc == current->proc && proc->nr_threads == 1);
	proc->files = current->files = files;
	current->has_own_files = proc->shares_files = false;
	proc->nr_own_files = 0;
	spin_unlock_irqrestore(&proc->lock, flags);
	put_files(own);
	put_files(old);
}

struct files *process_get_files(struct process *proc, pid_t tid)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct task *task = proc->nr_own_files ? process_thread(proc, tid) : NULL;
	struct files *files = proc->files;

	if (task && task->has_own_files)
		files = task->files;
	if (files)
		files_get(files);
	spin_unlock_irqrestore(&proc->lock, flags);
	return files;
}

/*
 * Returns the thread after `task`, with a reference; after NULL, the first. NULL: `task` was the
 * last, or is gone.
 */
static struct task *next_thread(struct process *proc, struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct list_head *next = task ? task->thread_node.next : proc->threads.next;
	struct task *found = NULL;

	if (next != &proc->threads && (!task || !list_empty(&task->thread_node))) {
		found = list_entry(next, struct task, thread_node);
		task_get(found);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return found;
}

static u64 count_own(struct process *proc, struct task *task, u32 count)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct files *files = task->has_own_files ? files_get(task->files) : NULL;
	u64 bytes = 0;

	spin_unlock_irqrestore(&proc->lock, flags);
	if (files) {
		bytes = files_held_bytes(files, count);
		files_put(files);
	}
	return bytes;
}

u64 process_files_held_bytes(struct process *proc, u32 count)
{
	struct files *files = process_get_files(proc, 0);
	struct task *task = NULL, *next;
	u64 bytes = 0;

	if (files) {
		bytes = files_held_bytes(files, count);
		files_put(files);
	}
	if (!READ_ONCE(proc->nr_own_files))
		return bytes;
	while ((next = next_thread(proc, task))) {
		bytes += count_own(proc, next, count);
		if (task)
			task_put(task);
		task = next;
	}
	if (task)
		task_put(task);
	return bytes;
}
