// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/slab.h>

/* Open files, and what the kernel itself does with them. */

struct file *file_alloc(struct inode *inode, u32 flags)
{
	struct file *file = kzalloc(sizeof(*file));

	if (!file)
		return NULL;
	file->inode = inode_get(inode);
	file->ops = inode->device ? inode->device->ops : NULL;
	file->flags = flags;
	atomic_set(&file->refs, 1);
	mutex_init(&file->pos_lock);
	return file;
}

void file_get(struct file *file)
{
	atomic_inc(&file->refs);
}

void file_put(struct file *file)
{
	if (!atomic_dec_and_test(&file->refs))
		return;
	inode_put(file->inode);
	kfree(file);
}

bool file_is_regular(const struct file *file)
{
	return S_ISREG(file->inode->mode);
}

u64 file_size_bytes(const struct file *file)
{
	return READ_ONCE(file->inode->size_bytes);
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

struct page *file_get_page(struct file *file, u64 index)
{
	return file_is_regular(file) ? inode_get_page(file->inode, index) : NULL;
}
