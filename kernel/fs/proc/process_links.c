// SPDX-License-Identifier: BSD-2-Clause
/*
 * The links in /proc/<pid>: cwd, exe and root. A process that may inspect this one can follow them;
 * links to open files (process_fd.c) check that here, too.
 */

#include "../mount.h"
#include "internal.h"

#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>

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
	switch ((enum proc_link)(u64)inode->private) {
	case PROC_LINK_CWD:
		len = read_cwd(proc, buf, size);
		break;
	case PROC_LINK_EXE:
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

const struct inode_ops proc_link_ops = { .read_link = read_process_link };
const struct inode_ops proc_cwd_ops = {
	.read_link = read_process_link,
	.follow = follow_cwd,
};
