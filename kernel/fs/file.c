// SPDX-License-Identifier: BSD-2-Clause
/* Open files, and functions for the kernel's own use of files. */

#include "epoll.h"
#include "fd.h"
#include "lock.h"
#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/leak.h>
#include <lego/slab.h>

struct file *file_alloc(const struct path *path, u32 flags)
{
	struct file *file = kzalloc(sizeof(*file));

	if (!file)
		return NULL;
	file->inode = inode_get(path->inode);
	file->mount = mount_get(path->mount);
	file->ops = path->inode->file_ops;
	if (!file->ops && path->inode->device)
		file->ops = path->inode->device->ops;
	if (flags & O_PATH)
		file->ops = NULL;
	file->flags = flags;
	atomic_set(&file->refs, 1);
	mutex_init(&file->pos_lock);
	leak_count(LEAK_FILES, 1);
	return file;
}

struct file *file_alloc_anon(const char *name, u32 mode, const struct file_ops *ops, void *private,
			     u32 flags)
{
	struct inode *inode = inode_alloc_unnamed(name, mode);
	struct file *file;

	if (!inode)
		return NULL;
	inode->file_ops = ops;
	file = file_alloc(&(struct path){ NULL, inode }, flags);
	if (file)
		file->private = private;
	inode_put(inode);
	return file;
}

int file_call_open(struct file *file)
{
	int error = 0;

	if (file->ops && file->ops->open)
		error = file->ops->open(file);
	if (error)
		file->ops = NULL; /* release() is not called for a file that open() refused */
	return error;
}

void file_set_flags(struct file *file, u32 mask, u32 flags)
{
	u32 old;

	do {
		old = READ_ONCE(file->flags);
	} while (cmpxchg(&file->flags, old, (old & ~mask) | (flags & mask)) != old);
}

struct file *file_create_unnamed(const char *name, u32 mode, u64 size_bytes)
{
	struct inode *inode = inode_alloc_unnamed(name, S_IFREG | mode);
	struct file *file = NULL;
	int error;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	inode->removed = true; /* so stat() returns a link count of 0 */
	error = inode_truncate(inode, size_bytes);
	if (!error) {
		file = file_alloc(&(struct path){ NULL, inode }, O_RDWR);
		error = file ? 0 : -ENOMEM;
	}
	inode_put(inode);
	return error ? ERR_PTR(error) : file;
}

void file_get(struct file *file)
{
	DEBUG_ASSERT(atomic_read(&file->refs) > 0);
	atomic_inc(&file->refs);
}

void file_put(struct file *file)
{
	DEBUG_ASSERT(atomic_read(&file->refs) > 0);
	might_sleep();
	if (!atomic_dec_and_test(&file->refs))
		return;
	/*
	 * Pairs with unlink_watch(): the file is freed only after the last access through a watch.
	 */
	if (unlikely(smp_load_acquire(&file->watches)))
		epoll_forget_file(file);
	if (file->ops && file->ops->release)
		file->ops->release(file);
	if (file->nr_locks)
		lock_release_owner(file, file);
	if (file->writes)
		inode_end_writing(file->inode);
	inode_put(file->inode);
	mount_put(file->mount);
	kfree(file);
	leak_count(LEAK_FILES, -1);
}

bool file_put_unless_last(struct file *file)
{
	int refs;

	do {
		refs = atomic_read(&file->refs);
		if (refs == 1)
			return false;
	} while (cmpxchg(&file->refs.counter, refs, refs - 1) != refs);
	return true;
}

bool file_has_no_name(const struct file *file)
{
	return !file->inode->parent || READ_ONCE(file->inode->removed);
}

u64 file_own_bytes(const struct file *file)
{
	u64 bytes = sizeof(*file) + READ_ONCE(file->nr_locks) * sizeof(struct file_lock);

	if (file->ops && file->ops->held_bytes)
		bytes += file->ops->held_bytes(file);
	if (file_has_no_name(file))
		bytes += inode_held_bytes(file->inode);
	return bytes;
}

u64 file_held_bytes(struct file *file, u32 count)
{
	if (file->counted == count)
		return 0;
	file->counted = count;
	return file_own_bytes(file);
}

bool file_is_regular(const struct file *file)
{
	return S_ISREG(file->inode->mode);
}

bool file_has_pages(const struct file *file)
{
	return file_is_regular(file) && !file->ops;
}

u64 file_size_bytes(const struct file *file)
{
	return READ_ONCE(file->inode->size_bytes);
}

u64 file_changed_ns(const struct file *file)
{
	return READ_ONCE(file->inode->ctime_ns);
}

u64 file_version(const struct file *file)
{
	static u64 last;
	struct inode *inode = file->inode;
	u64 version;

	/* A memfd, which has no place in the tree, is written to without being opened. */
	if (READ_ONCE(inode->nr_writers) > 0 || !READ_ONCE(inode->parent))
		return 0;
	version = READ_ONCE(inode->version);
	if (!version) {
		version = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
		WRITE_ONCE(inode->version, version);
	}
	return version;
}

u32 file_mode(const struct file *file)
{
	return file->inode->mode;
}

ssize_t file_read_at(struct file *file, void *buf, size_t n, u64 pos)
{
	if (!file_is_regular(file))
		return -EINVAL;
	return inode_read(file->inode, buf, n, pos, false);
}
