// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/<pid>/task: a directory for each thread, updated when a program reads it. It has the same
 * files as the process's own directory; some show only the thread.
 */

#include "internal.h"

#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/slab.h>

/* inode->private is the thread's number. */
static const struct inode_ops thread_dir_ops = {
	.populate = proc_populate_process,
	.populate_name = proc_populate_process_name,
};

pid_t proc_inode_tid(const struct inode *inode)
{
	while (inode && inode->ops != &thread_dir_ops)
		inode = inode->parent;
	return inode ? (pid_t)(u64)inode->private : 0;
}

struct thread_list {
	pid_t *tids;
	unsigned int nr, max;
};

static void add_thread(struct task *task, void *arg)
{
	struct thread_list *list = arg;

	if (list->nr < list->max)
		list->tids[list->nr++] = task->pid;
}

/* Returns the numbers of a process's threads, in the order of their creation; kfree() it. */
static pid_t *list_threads(struct process *proc, unsigned int *nr)
{
	struct thread_list list = { .max = READ_ONCE(proc->nr_threads) };

	list.tids = kmalloc(list.max * sizeof(*list.tids));
	if (list.tids)
		process_for_each_thread(proc, 512, add_thread, &list);
	*nr = list.nr;
	return list.tids;
}

static void create_thread_dir(struct inode *dir, pid_t tid)
{
	struct inode *inode;
	char name[16];

	snprintf(name, sizeof(name), "%d", tid);
	inode = tree_create(dir, name, S_IFDIR | 0555);
	if (IS_ERR(inode))
		return;
	inode->ops = &thread_dir_ops;
	inode->private = (void *)(u64)tid;
}

/* Works like proc_populate_root(). */
static void populate_threads(struct inode *dir)
{
	struct process *proc = proc_inode_process(dir);
	unsigned int nr_threads = 0, nr = 0; /* nr: that have a directory */
	pid_t *tids = proc ? list_threads(proc, &nr_threads) : NULL;
	struct inode *child, *next;

	list_for_each_entry_safe(child, next, &dir->children, sibling) {
		if (nr < nr_threads && (pid_t)(u64)child->private == tids[nr])
			nr++;
		else
			tree_remove_all(child);
	}
	for (; nr < nr_threads; nr++)
		create_thread_dir(dir, tids[nr]);
	kfree(tids);
	if (!proc)
		return;
	proc_own_children(dir);
	process_put(proc);
}

const struct inode_ops proc_task_dir_ops = { .populate = populate_threads };
