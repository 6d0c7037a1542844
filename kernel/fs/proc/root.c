// SPDX-License-Identifier: BSD-2-Clause
/* The tree of /proc: its fixed files, and those that other parts of the kernel add. */

#include "../mount.h"
#include "internal.h"

#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/slab.h>

struct inode *proc_root;

static ssize_t read_self(struct inode *inode, char *buf, size_t size)
{
	if (!current->proc)
		return -ENOENT;
	return snprintf(buf, size, "%d", current->proc->pid);
}

static ssize_t read_mounts(struct inode *inode, char *buf, size_t size)
{
	return snprintf(buf, size, "self/mounts");
}

static const struct inode_ops root_ops = {
	.populate = proc_populate_root,
	.populate_name = proc_populate_root_name,
};
static const struct inode_ops self_ops = { .read_link = read_self };
static const struct inode_ops mounts_ops = { .read_link = read_mounts };

static struct inode *create_link(struct inode *dir, const char *name, const struct inode_ops *ops)
{
	struct inode *inode = tree_create(dir, name, S_IFLNK | 0777);

	if (!IS_ERR(inode))
		inode->ops = ops;
	return inode;
}

int proc_create_at_path(struct proc_file *file)
{
	struct inode *inode = tree_make_directories(proc_root, file->path, 0555, &file->name);

	if (!IS_ERR(inode))
		inode = proc_create_file(inode, file);
	return IS_ERR(inode) ? (int)PTR_ERR(inode) : 0;
}

int proc_add_file(const char *path, const char *accepts,
		  int (*show)(struct text *text, const void *arg), const void *arg,
		  int (*write)(const char *text))
{
	return proc_add_exclusive_file(path, accepts, show, arg, write, NULL);
}

int proc_add_exclusive_file(const char *path, const char *accepts,
			    int (*show)(struct text *text, const void *arg), const void *arg,
			    int (*write)(const char *text), void (*close)(void))
{
	struct proc_file *file = kzalloc(sizeof(*file));
	int error;

	if (!file)
		return -ENOMEM;
	file->path = path;
	file->mode = (show ? 0400 : 0) | (write ? 0200 : 0);
	file->accepts = accepts;
	file->show = show;
	file->arg = arg;
	file->write = write;
	file->close = close;
	tree_lock_write();
	error = proc_create_at_path(file);
	tree_unlock();
	if (error)
		kfree(file);
	return error;
}

/* Makes /proc. Called once, at boot. */
static struct inode *make_root(struct filesystem *fs)
{
	struct inode *self, *mounts;
	int error;

	proc_root = tree_create_root(fs, 0555);
	if (!proc_root)
		return NULL;
	proc_root->ops = &root_ops;
	self = create_link(proc_root, "self", &self_ops);
	mounts = create_link(proc_root, "mounts", &mounts_ops);
	error = proc_create_system_files(proc_root) ?: proc_create_sysctls();
	if (IS_ERR(self) || IS_ERR(mounts) || error)
		panic("no memory for the files of /proc");
	return proc_root;
}

static const struct fs_type proc_type = {
	.name = "proc",
	.make_root = make_root,
	.magic = 0x9fa0,
	.single = true,
	.is_fixed = true,
};

void proc_init(void)
{
	if (fs_register(&proc_type))
		panic("no room for proc");
	fs_mount_at_boot(proc_type.name, "proc");
}
