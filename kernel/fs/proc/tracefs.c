// SPDX-License-Identifier: BSD-2-Clause
/*
 * /sys/kernel/tracing, where Linux has the files of its tracer: a file system of the type tracefs,
 * which is mounted there at boot, and can be mounted elsewhere.
 */
#include "../mount.h"
#include "../path.h"
#include "internal.h"

#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>

#define PLACE "sys/kernel/tracing"

static struct inode *trace_root;

int tracefs_fill_file(const struct tracefs_file *what)
{
	struct proc_file *file = kzalloc(sizeof(*file));
	struct inode *inode;

	if (!file)
		return -ENOMEM;
	file->root = "/" PLACE;
	file->path = what->path;
	file->mode = (what->show || what->next ? 0400 : 0) | (what->write ? 0200 : 0);
	file->accepts = what->accepts;
	file->show = what->show;
	file->write_arg = what->write;
	file->truncate = what->truncate;
	file->release_arg = what->release;
	file->next = what->next;
	file->ready = what->ready;
	file->arg = what->arg;
	inode = tree_make_directories(trace_root, what->path, 0700, &file->name);
	if (!IS_ERR(inode))
		inode = proc_create_file(inode, file);
	if (!IS_ERR(inode))
		return 0;
	kfree(file);
	return PTR_ERR(inode);
}

int tracefs_add_file(const struct tracefs_file *what)
{
	int error;

	tree_lock_write();
	error = tracefs_fill_file(what);
	tree_unlock();
	return error;
}

typedef void fill_t(const char *name);

static void tracefs_populate(struct inode *dir)
{
	((fill_t *)dir->private)(NULL);
}

static void populate_name(struct inode *dir, const char *name, size_t len)
{
	char copy[NAME_MAX + 1];

	if (len > NAME_MAX)
		return;
	memcpy(copy, name, len);
	copy[len] = '\0';
	((fill_t *)dir->private)(copy);
}

int tracefs_add_directory(const char *path, fill_t *fill)
{
	static const struct inode_ops ops = { .populate = tracefs_populate,
					      .populate_name = populate_name };
	struct inode *inode;
	const char *name;

	tree_lock_write();
	inode = tree_make_directories(trace_root, path, 0700, &name);
	if (!IS_ERR(inode))
		inode = tree_make_directory(inode, name, strlen(name), 0700);
	if (!IS_ERR(inode)) {
		inode->private = fill;
		inode->ops = &ops;
	}
	tree_unlock();
	return IS_ERR(inode) ? (int)PTR_ERR(inode) : 0;
}

static struct inode *make_root(struct filesystem *fs)
{
	trace_root = tree_create_root(fs, 0700);
	return trace_root;
}

static const struct fs_type tracefs_type = {
	.name = "tracefs",
	.make_root = make_root,
	.magic = 0x74726163,
	.single = true,
	.is_fixed = true,
};

void tracefs_init(void)
{
	if (fs_register(&tracefs_type))
		panic("no room for tracefs");
	fs_mount_at_boot(tracefs_type.name, PLACE);
}
