// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/<pid>/fd: a link for each open file, named by its number. A link is made or removed when a
 * program looks it up; all links are updated when a program lists the directory.
 */

#include "../fd.h"
#include "internal.h"

#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/slab.h>

/* Returns the descriptors of the inode's thread, or of the first thread of its process. */
static struct files *get_files(struct process *proc, const struct inode *inode)
{
	return process_get_files(proc, proc_inode_tid(inode) ?: proc->pid);
}

/* Returns the open file of a link, or ERR_PTR(-ENOENT, -EACCES). */
static struct file *get_link_file(const struct inode *inode)
{
	u32 version;
	struct process *proc = proc_get_inspected(inode, &version);
	struct file *file = NULL;
	struct files *files;
	int error;

	if (IS_ERR(proc))
		return ERR_PTR(PTR_ERR(proc));
	files = get_files(proc, inode);
	if (files) {
		file = files_get_file(files, (int)(u64)inode->private);
		files_put(files);
	}
	error = proc_put_inspected(proc, version);
	if (file && error)
		file_put(file);
	if (error)
		return ERR_PTR(error);
	return file ? file : ERR_PTR(-ENOENT);
}

static ssize_t read_fd_link(struct inode *inode, char *buf, size_t size)
{
	struct file *file = get_link_file(inode);
	char *path;
	ssize_t len;

	if (IS_ERR(file))
		return PTR_ERR(file);
	path = kmalloc(PATH_MAX);
	len = path ? proc_copy_path(tree_file_path(file, path, PATH_MAX), buf, size) : -ENOMEM;
	kfree(path);
	file_put(file);
	return len;
}

/* Returns the open file itself, which may have no name: a pipe, or a removed file. */
static int follow_fd(struct inode *inode, struct path *found)
{
	struct file *file = get_link_file(inode);

	if (IS_ERR(file))
		return (int)PTR_ERR(file);
	*found = path_get(&(struct path){ file->mount, file->inode });
	file_put(file);
	return 0;
}

static const struct inode_ops fd_link_ops = { .read_link = read_fd_link, .follow = follow_fd };

static bool fd_is_open(struct files *files, int fd)
{
	struct file *file = files ? files_get_file(files, fd) : NULL;

	if (file)
		file_put(file);
	return file;
}

static struct inode *find_or_create_fd_link(struct inode *dir, int fd)
{
	char name[16];
	int len = snprintf(name, sizeof(name), "%d", fd);
	struct inode *inode = tree_find(dir, name, len);

	if (inode)
		return inode;
	inode = tree_create(dir, name, S_IFLNK | 0700);
	if (IS_ERR(inode))
		return NULL;
	inode->ops = &fd_link_ops;
	inode->private = (void *)(u64)fd;
	return inode;
}

/*
 * Links that are right and in order stay, so that a reader of the directory can continue after
 * them.
 */
static void populate_fds(struct inode *dir)
{
	struct process *proc = proc_inode_process(dir);
	struct files *files = proc ? get_files(proc, dir) : NULL;
	struct inode *inode, *next;
	u64 position = 0;

	list_for_each_entry_safe(inode, next, &dir->children, sibling) {
		if (!fd_is_open(files, (int)(u64)inode->private))
			tree_remove(inode);
	}
	for (int fd = 0; files && (fd = files_next_fd(files, fd)) >= 0; fd++) {
		inode = find_or_create_fd_link(dir, fd);
		if (!inode)
			break;
		position = tree_keep_order(inode, position);
	}
	if (files)
		files_put(files);
	if (proc)
		process_put(proc);
	proc_own_children(dir);
}

static void populate_fd(struct inode *dir, const char *name, size_t len)
{
	int fd = proc_number_of_name(name, len);
	struct process *proc = proc_inode_process(dir);
	struct files *files = proc ? get_files(proc, dir) : NULL;
	struct inode *inode = fd < 0 ? NULL : tree_find(dir, name, len);

	if (inode && !fd_is_open(files, fd)) {
		tree_remove(inode);
	} else if (fd_is_open(files, fd)) {
		inode = find_or_create_fd_link(dir, fd);
		if (inode)
			proc_own_child(inode, proc);
	}
	if (files)
		files_put(files);
	if (proc)
		process_put(proc);
}

static bool is_of_current(const struct inode *dir)
{
	struct process *proc = proc_inode_process(dir);

	if (proc)
		process_put(proc);
	return proc && proc == current->proc;
}

const struct inode_ops proc_fd_dir_ops = {
	.populate = populate_fds,
	.populate_name = populate_fd,
	.is_own = is_of_current,
};
