// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/<pid>. The directories of processes are made when a program reads /proc, and their files
 * when a program reads them. They are removed with the process. A directory identifies its process
 * by number and start time, so it never belongs to a later process with the same number.
 *
 * Each read also sets their owner to the effective user and group of the process. Files of a
 * process that is not dumpable are owned by root.
 */

#include "../mount.h"
#include "internal.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>

struct process_dir {
	pid_t pid;
	u64 start_ns;
	u32 uid, gid; /* effective, when it was listed */
};

static const struct inode_ops process_dir_ops;

static const struct process_dir *dir_of(const struct inode *inode)
{
	while (inode->ops != &process_dir_ops)
		inode = inode->parent;
	return inode->private;
}

static struct process *find_process(const struct process_dir *dir)
{
	struct process *proc = process_find(dir->pid);

	if (proc && proc->start_ns != dir->start_ns) {
		process_put(proc);
		return NULL;
	}
	return proc;
}

struct process *proc_inode_process(const struct inode *inode)
{
	return find_process(dir_of(inode));
}

void proc_own_child(struct inode *child, const struct process *proc)
{
	bool closed = READ_ONCE(proc->not_dumpable);

	child->uid = closed ? 0 : READ_ONCE(proc->creds.euid);
	child->gid = closed ? 0 : READ_ONCE(proc->creds.egid);
}

static void own_children(struct inode *dir, const struct process *proc)
{
	struct inode *child;

	ASSERT_HELD(&tree_lock);
	list_for_each_entry(child, &dir->children, sibling)
		proc_own_child(child, proc);
}

int proc_number_of_name(const char *name, size_t len)
{
	int nr = 0;

	if (!len || len > 9 || (*name == '0' && len > 1))
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (name[i] < '0' || name[i] > '9')
			return -1;
		nr = nr * 10 + name[i] - '0';
	}
	return nr;
}

/* Prints memory of the program, unchanged. */
static int show_memory(struct text *text, struct mm *mm, u64 start, u64 end)
{
	char *buf = kmalloc(PAGE_SIZE);

	while (buf && start < end && !text->failed) {
		ssize_t n = mm_access(mm, start, buf, min(end - start, PAGE_SIZE));

		if (n <= 0)
			break;
		text_append(text, buf, n);
		start += n;
		cond_resched();
	}
	kfree(buf);
	return buf ? 0 : -ENOMEM;
}

/* Prints the arguments, including NULs; nothing for a zombie. */
static int show_cmdline(struct text *text, struct process *proc)
{
	struct mm *mm = process_get_mm(proc);
	int error;

	if (!mm)
		return 0;
	error = show_memory(text, mm, mm->layout.arg_start, mm->layout.arg_end);
	mm_put(mm);
	return error;
}

/* Prints the environment at the program's start, in the same way. */
static int show_environ(struct text *text, struct process *proc)
{
	struct mm *mm = process_get_mm(proc);
	int error;

	if (!mm)
		return 0;
	error = show_memory(text, mm, mm->layout.env_start, mm->layout.env_end);
	mm_put(mm);
	return error;
}

/* Prints the mounts, which are the same for all processes. */
static int show_mounts(struct text *text, struct process *proc)
{
	return mounts_text(text, false);
}

static int show_mountinfo(struct text *text, struct process *proc)
{
	return mounts_text(text, true);
}

static const struct proc_file process_files[] = {
	{ .name = "cmdline", .mode = 0444, .show_process = show_cmdline },
	{ .name = "comm",
	  .mode = 0644,
	  .show_thread = proc_show_comm,
	  .write_thread = proc_write_comm },
	{ .name = "environ", .mode = 0400, .private = true, .show_process = show_environ },
	{ .name = "io", .mode = 0400, .private = true, .show_thread = proc_show_io },
	{ .name = "limits", .mode = 0444, .show_process = proc_show_limits },
	{ .name = "maps", .mode = 0444, .private = true, .show_process = proc_show_maps },
	{ .name = "mountinfo", .mode = 0444, .show_process = show_mountinfo },
	{ .name = "mounts", .mode = 0444, .show_process = show_mounts },
	{ .name = "schedstat", .mode = 0444, .show_thread = proc_show_schedstat },
	{ .name = "smaps", .mode = 0444, .private = true, .show_process = proc_show_smaps },
	{ .name = "smaps_rollup",
	  .mode = 0444,
	  .private = true,
	  .show_process = proc_show_smaps_rollup },
	{ .name = "stat", .mode = 0444, .show_thread = proc_show_stat },
	{ .name = "statm", .mode = 0444, .show_process = proc_show_statm },
	{ .name = "status", .mode = 0444, .show_thread = proc_show_status },
};

/* Files that other parts of the kernel add to each process. */
static struct proc_file extra_files[8];
static size_t nr_extra_files;

int proc_add_process_file(const char *name, const char *accepts,
			  int (*show)(struct text *text, struct process *proc),
			  int (*write)(const char *text, struct process *proc))
{
	if (nr_extra_files == ARRAY_SIZE(extra_files))
		return -ENOMEM;
	extra_files[nr_extra_files++] = (struct proc_file){
		.name = name,
		.path = name,
		.accepts = accepts,
		.mode = (show ? 0400 : 0) | (write ? 0200 : 0),
		.private = true,
		.show_process = show,
		.write_process = write,
	};
	return 0;
}

/* The entries that are no files. */
static const struct other_entry {
	const char *name;
	u32 mode;
	const struct inode_ops *ops;
	enum proc_link link; /* of a link */
} other_entries[] = {
	{ "cwd", S_IFLNK | 0777, &proc_cwd_ops, PROC_LINK_CWD },
	{ "exe", S_IFLNK | 0777, &proc_link_ops, PROC_LINK_EXE },
	{ "root", S_IFLNK | 0777, &proc_link_ops, PROC_LINK_ROOT },
	{ "fd", S_IFDIR | 0500, &proc_fd_dir_ops },
	{ "task", S_IFDIR | 0555, &proc_task_dir_ops }, /* the last, because no thread has it */
};

/* The entries that are wanted. */
struct wanted {
	const char *name; /* the only one; NULL: all, in order */
	size_t len;	  /* of the name */
	u64 position;	  /* of the entry before */
};

/* Returns whether an entry is wanted and not there yet. */
static bool is_missing(struct inode *dir, const char *name, struct wanted *wanted)
{
	struct inode *inode;

	if (wanted->name && (strncmp(name, wanted->name, wanted->len) || name[wanted->len]))
		return false;
	inode = tree_find(dir, name, strlen(name));
	if (!inode) {
		wanted->position = UINT64_MAX; /* it becomes the last one, so the next ones move */
		return true;
	}
	if (!wanted->name)
		wanted->position = tree_keep_order(inode, wanted->position);
	return false;
}

static void create_files(struct inode *dir, const struct proc_file *files, size_t nr,
			 struct wanted *wanted)
{
	for (size_t i = 0; i < nr; i++) {
		if (is_missing(dir, files[i].name, wanted))
			proc_create_file(dir, &files[i]);
	}
}

static void create_entries(struct inode *dir, const char *name, size_t len)
{
	struct wanted wanted = { name, len, 0 };
	bool is_process = dir->ops == &process_dir_ops;

	create_files(dir, process_files, ARRAY_SIZE(process_files), &wanted);
	if (is_process)
		create_files(dir, extra_files, nr_extra_files, &wanted);
	for (size_t i = 0; i < ARRAY_SIZE(other_entries) - !is_process; i++) {
		const struct other_entry *entry = &other_entries[i];
		struct inode *inode;

		if (!is_missing(dir, entry->name, &wanted))
			continue;
		inode = tree_create(dir, entry->name, entry->mode);
		if (IS_ERR(inode))
			continue;
		inode->ops = entry->ops;
		inode->private = (void *)(u64)entry->link;
	}
}

void proc_populate_process(struct inode *dir)
{
	create_entries(dir, NULL, 0);
	proc_own_children(dir);
}

void proc_populate_process_name(struct inode *dir, const char *name, size_t len)
{
	struct process *proc = proc_inode_process(dir);
	struct inode *inode;

	create_entries(dir, name, len);
	inode = tree_find(dir, name, len);
	if (inode && proc)
		proc_own_child(inode, proc);
	if (proc)
		process_put(proc);
}

void proc_own_children(struct inode *dir)
{
	struct process *proc = proc_inode_process(dir);

	if (!proc)
		return;
	own_children(dir, proc);
	process_put(proc);
}

static void free_process_dir(struct inode *dir)
{
	kfree(dir->private);
}

static const struct inode_ops process_dir_ops = {
	.populate = proc_populate_process,
	.populate_name = proc_populate_process_name,
	.free = free_process_dir,
};

static void own_directory(struct inode *inode, const struct process_dir *dir)
{
	inode->uid = dir->uid;
	inode->gid = dir->gid;
}

static bool is_same(const struct process_dir *a, const struct process_dir *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns;
}

static struct inode *create_process_dir(const char *name, const struct process_dir *from)
{
	struct process_dir *dir = kmalloc(sizeof(*dir));
	struct inode *inode;

	if (!dir)
		return NULL;
	*dir = *from;
	inode = tree_create(proc_root, name, S_IFDIR | 0555);
	if (IS_ERR(inode)) {
		kfree(dir);
		return NULL;
	}
	inode->ops = &process_dir_ops;
	inode->private = dir;
	own_directory(inode, from);
	return inode;
}

static struct inode *find_process_dir(const struct process_dir *dir, char name[16])
{
	return tree_find(proc_root, name, snprintf(name, 16, "%d", dir->pid));
}

/* Returns the directory of a process, or makes it. NULL: no memory. */
static struct inode *find_or_create_process_dir(const struct process_dir *dir)
{
	char name[16];
	struct inode *inode = find_process_dir(dir, name);

	/*
	 * It may be the directory of a process that is gone: proc_forget_process() waits for the
	 * lock.
	 */
	if (inode && !is_same(inode->private, dir)) {
		tree_remove_all(inode);
		inode = NULL;
	}
	if (!inode)
		return create_process_dir(name, dir);
	own_directory(inode, dir);
	return inode;
}

/*
 * Fills in the data of a directory. The process is in the tree of processes, so its end will remove
 * the directory.
 */
static struct process_dir dir_for(struct process *proc)
{
	ASSERT_HELD(&process_tree_lock);
	proc->in_procfs = true;
	return (struct process_dir){
		.pid = proc->pid,
		.start_ns = proc->start_ns,
		.uid = READ_ONCE(proc->creds.euid),
		.gid = READ_ONCE(proc->creds.egid),
	};
}

/* A list of the processes, as many as there is room for. */
struct process_list {
	struct process_dir *dirs;
	unsigned int nr, max;
};

static bool count_process(struct process *proc, void *arg)
{
	ASSERT_HELD(&process_tree_lock);
	(*(unsigned int *)arg)++;
	return true;
}

static bool note_process(struct process *proc, void *arg)
{
	struct process_list *list = arg;

	ASSERT_HELD(&process_tree_lock);
	if (list->nr == list->max)
		return false;
	list->dirs[list->nr++] = dir_for(proc);
	return true;
}

/* Lists the processes. New ones are found by the next read. */
static void list_processes(struct process_list *list)
{
	*list = (struct process_list){ 0 };
	process_for_each(count_process, &list->max);
	list->dirs = kmalloc(list->max * sizeof(*list->dirs));
	if (list->dirs)
		process_for_each(note_process, list);
}

/*
 * Processes and directories are in the order of their creation, so no search is needed. But a
 * directory that proc_populate_root_name() has made may come before those of older processes: it is
 * moved after them.
 */
void proc_populate_root(struct inode *root)
{
	struct inode *child;
	struct process_list list;
	unsigned int nr = 0; /* processes with a directory */
	u64 position = 0;

	list_processes(&list);
	if (!list.dirs)
		return;
	list_for_each_entry(child, &root->children, sibling) {
		if (child->ops == &process_dir_ops && nr < list.nr &&
		    is_same(child->private, &list.dirs[nr])) {
			own_directory(child, &list.dirs[nr++]);
			position = child->position;
		}
	}
	while (nr < list.nr && (child = find_or_create_process_dir(&list.dirs[nr++])))
		position = tree_keep_order(child, position);
	kfree(list.dirs);
}

void proc_populate_root_name(struct inode *root, const char *name, size_t len)
{
	int pid = proc_number_of_name(name, len);
	struct process *proc = pid > 0 ? process_find(pid) : NULL;
	struct process_dir dir = { 0 };
	unsigned long flags;

	if (!proc)
		return;
	flags = spin_lock_irqsave(&process_tree_lock);
	if (!list_empty(&proc->all_node))
		dir = dir_for(proc);
	spin_unlock_irqrestore(&process_tree_lock, flags);
	process_put(proc);
	if (dir.pid)
		find_or_create_process_dir(&dir);
}

/* Returns the directory of the process, if it has one. */
static struct inode *find_own_dir(const struct process *proc)
{
	struct process_dir dir = { .pid = proc->pid, .start_ns = proc->start_ns };
	char name[16];
	struct inode *inode = find_process_dir(&dir, name);

	return inode && is_same(inode->private, &dir) ? inode : NULL;
}

void proc_forget_process(const struct process *proc)
{
	struct inode *inode;

	tree_lock_write();
	inode = find_own_dir(proc);
	if (inode)
		tree_remove_all(inode);
	tree_unlock();
}

u64 proc_process_held_bytes(const struct process *proc)
{
	u64 nr;

	tree_lock_write();
	nr = tree_count(find_own_dir(proc));
	tree_unlock();
	return nr * (sizeof(struct inode) + 16); /* with a short name */
}
