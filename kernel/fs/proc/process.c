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

/* The links of a process's directory, in inode->private. */
enum process_link {
	LINK_CWD,
	LINK_EXE,
	LINK_ROOT,
};

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

static struct fs_info *get_fs(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct fs_info *fs = proc->fs ? fs_info_get(proc->fs) : NULL;

	spin_unlock_irqrestore(&proc->lock, flags);
	return fs;
}

static char *get_exe_path(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	char *path = proc->exe_path ? kstrdup(proc->exe_path) : NULL;

	spin_unlock_irqrestore(&proc->lock, flags);
	return path;
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
	{ .name = "io", .mode = 0400, .private = true, .show_process = proc_show_io },
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

ssize_t proc_copy_path(const char *path, char *buf, size_t size)
{
	size_t len = strlen(path);

	if (len > size)
		return -ENAMETOOLONG;
	memmove(buf, path, len);
	return len;
}

static ssize_t read_exe(struct process *proc, char *buf, size_t size)
{
	char *path = get_exe_path(proc);
	ssize_t len = path ? proc_copy_path(path, buf, size) : -ENOENT;

	kfree(path);
	return len;
}

/* Finds the working directory, with references. */
static int find_cwd(struct process *proc, struct path *dir)
{
	struct fs_info *fs = get_fs(proc);

	if (!fs)
		return -ENOENT;
	*dir = fs_info_cwd(fs);
	fs_info_put(fs);
	return 0;
}

static ssize_t read_cwd(struct process *proc, char *buf, size_t size)
{
	struct path dir;
	ssize_t len = find_cwd(proc, &dir);
	char *path;

	if (len)
		return len;
	path = path_write(&dir, buf, size);
	len = path ? proc_copy_path(path, buf, size) : -ENOENT;
	path_put(&dir);
	return len;
}

struct process *proc_get_inspected(const struct inode *inode, u32 *version)
{
	struct process *proc = proc_inode_process(inode);

	if (!proc)
		return ERR_PTR(-ENOENT);
	if (process_may_inspect(proc, version))
		return proc;
	process_put(proc);
	return ERR_PTR(-EACCES);
}

int proc_put_inspected(struct process *proc, u32 version)
{
	int error = process_was_inspected(proc, version) ? 0 : -EACCES;

	process_put(proc);
	return error;
}

static ssize_t read_process_link(struct inode *inode, char *buf, size_t size)
{
	u32 version;
	struct process *proc = proc_get_inspected(inode, &version);
	ssize_t len;
	int error;

	if (IS_ERR(proc))
		return PTR_ERR(proc);
	switch ((enum process_link)(u64)inode->private) {
	case LINK_CWD:
		len = read_cwd(proc, buf, size);
		break;
	case LINK_EXE:
		len = read_exe(proc, buf, size);
		break;
	default:
		len = proc_copy_path("/", buf, size);
		break;
	}
	error = proc_put_inspected(proc, version);
	return error ? error : len;
}

static int follow_cwd(struct inode *inode, struct path *found)
{
	u32 version;
	struct process *proc = proc_get_inspected(inode, &version);
	struct path dir = { 0 };
	int error, lost_right;

	if (IS_ERR(proc))
		return (int)PTR_ERR(proc);
	error = find_cwd(proc, &dir);
	lost_right = proc_put_inspected(proc, version);
	if (!error && lost_right) {
		path_put(&dir);
		return lost_right;
	}
	*found = dir;
	return error;
}

static const struct inode_ops process_link_ops = { .read_link = read_process_link };
static const struct inode_ops cwd_link_ops = {
	.read_link = read_process_link,
	.follow = follow_cwd,
};

static void create_link(struct inode *dir, const char *name, enum process_link link)
{
	struct inode *inode = tree_create(dir, name, S_IFLNK | 0777);

	if (IS_ERR(inode))
		return;
	inode->ops = link == LINK_CWD ? &cwd_link_ops : &process_link_ops;
	inode->private = (void *)(u64)link;
}

static void create_directory(struct inode *dir, const char *name, u32 mode,
			     const struct inode_ops *ops)
{
	struct inode *inode = tree_create(dir, name, S_IFDIR | mode);

	if (!IS_ERR(inode))
		inode->ops = ops;
}

void proc_create_common_files(struct inode *dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(process_files); i++)
		proc_create_file(dir, &process_files[i]);
	create_link(dir, "cwd", LINK_CWD);
	create_link(dir, "exe", LINK_EXE);
	create_link(dir, "root", LINK_ROOT);
	create_directory(dir, "fd", 0500, &proc_fd_dir_ops);
}

void proc_own_children(struct inode *dir)
{
	struct process *proc = proc_inode_process(dir);

	if (!proc)
		return;
	own_children(dir, proc);
	process_put(proc);
}

static void populate_process(struct inode *dir)
{
	if (list_empty(&dir->children)) {
		proc_create_common_files(dir);
		for (size_t i = 0; i < nr_extra_files; i++)
			proc_create_file(dir, &extra_files[i]);
		create_directory(dir, "task", 0555, &proc_task_dir_ops);
	}
	proc_own_children(dir);
}

static void free_process_dir(struct inode *dir)
{
	kfree(dir->private);
}

static const struct inode_ops process_dir_ops = {
	.populate = populate_process,
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
	while (nr < list.nr && (child = find_or_create_process_dir(&list.dirs[nr++]))) {
		if (child->position < position)
			tree_append(child);
		position = child->position;
	}
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

	mutex_lock(&tree_lock);
	inode = find_own_dir(proc);
	if (inode)
		tree_remove_all(inode);
	mutex_unlock(&tree_lock);
}

u64 proc_process_held_bytes(const struct process *proc)
{
	u64 nr;

	mutex_lock(&tree_lock);
	nr = tree_count(find_own_dir(proc));
	mutex_unlock(&tree_lock);
	return nr * (sizeof(struct inode) + 16); /* with a short name */
}
