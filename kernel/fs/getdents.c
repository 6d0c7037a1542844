// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lists directories. Positions 0 and 1 are "." and ".."; any other is the position of the next
 * entry to list. So entries may be added and removed in between.
 */

#include "inode.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* Linux's struct linux_dirent64, before the name. */
struct dirent64 {
	u64 number;
	s64 next;
	u16 len;
	u8 type;
} __packed;

/* The old struct; the type is its last byte, after the name. */
struct dirent {
	u64 number;
	u64 next;
	u16 len;
} __packed;

struct listing {
	struct inode *dir;
	struct inode *last; /* the last entry listed in this call; NULL: none */
	u64 pos;
	char *buf;
	size_t filled, size;
	bool old;
};

/* Returns the entry at or after the position, and the position after it. NULL: no more. */
static struct inode *next_entry(struct listing *list, const char **name, u64 *next)
{
	struct list_head *head = &list->dir->children, *node = head->next;
	u64 pos = list->pos;

	if (pos < 2) {
		*name = pos ? ".." : ".";
		*next = pos + 1;
		return pos && list->dir->parent ? list->dir->parent : list->dir;
	}
	if (list->last)
		node = list->last->sibling.next;
	for (; node != head; node = node->next) {
		struct inode *child = list_entry(node, struct inode, sibling);

		if (child->position >= pos) {
			*name = child->name;
			*next = child->position + 1;
			list->last = child;
			return child;
		}
	}
	return NULL;
}

static size_t write_entry(const struct listing *list, char *at, const struct inode *inode,
			  const char *name, u64 next)
{
	u8 type = inode->mode >> 12; /* DT_* are the bits of S_IF* */
	size_t name_len = strlen(name);
	size_t len = sizeof(struct dirent64) + name_len + 1;
	struct dirent64 entry = { .number = inode->number, .next = (s64)next, .type = type };

	if (list->old)
		len = sizeof(struct dirent) + name_len + 2;
	len = ALIGN_UP(len, 8);
	if (len > list->size - list->filled)
		return 0;
	entry.len = len;
	memset(at, 0, len);
	if (list->old) {
		memcpy(at, &entry, sizeof(struct dirent));
		memcpy(at + sizeof(struct dirent), name, name_len);
		at[len - 1] = (char)type;
	} else {
		memcpy(at, &entry, sizeof(struct dirent64));
		memcpy(at + sizeof(struct dirent64), name, name_len);
	}
	return len;
}

/* Lists as many entries as fit. Returns 0, or a negative errno if none fits. */
static long fill(struct listing *list)
{
	ASSERT_HELD(&tree_lock);
	if (list->dir->removed)
		return -ENOENT;
	if (list->pos < 2)
		tree_populate(list->dir); /* only at the start, because it updates all entries */
	for (;;) {
		const char *name;
		u64 next;
		struct inode *entry = next_entry(list, &name, &next);
		size_t len;

		if (!entry)
			return 0;
		len = write_entry(list, list->buf + list->filled, entry_inode(entry), name, next);
		if (!len)
			return list->filled ? 0 : -EINVAL;
		list->filled += len;
		list->pos = next;
	}
}

#define LISTING_BYTES (32u << 10) /* the buffer of C libraries; no call returns more */

/* Allocates a buffer, smaller than *size if memory is fragmented. NULL: not even a page is free. */
static char *alloc_buffer(size_t *size)
{
	char *buf;

	*size = min(*size, (size_t)LISTING_BYTES);
	while (!(buf = kmalloc(max(*size, (size_t)PAGE_SIZE))) && *size > PAGE_SIZE)
		*size /= 2;
	return buf;
}

static long read_entries(struct file *file, char __user *user_buf, size_t size, bool old)
{
	struct listing list = { .dir = file->inode, .old = old };
	long ret;

	list.size = size;
	list.buf = alloc_buffer(&list.size);
	if (!list.buf)
		return -ENOMEM;
	mutex_lock(&file->pos_lock);
	list.pos = file->pos;
	tree_lock_write();
	ret = fill(&list);
	tree_unlock();
	if (!ret && list.filled)
		ret = copy_to_user(user_buf, list.buf, list.filled) ? -EFAULT : (long)list.filled;
	if (ret > 0)
		file->pos = list.pos;
	mutex_unlock(&file->pos_lock);
	kfree(list.buf);
	return ret;
}

static long list_fd(int fd, void __user *buf, unsigned int size, bool old)
{
	struct file *file = fd_get(fd);
	long ret = -ENOTDIR;

	if (!file)
		return -EBADF;
	if (S_ISDIR(file->inode->mode))
		ret = read_entries(file, buf, size, old);
	file_put(file);
	return ret;
}

SYSCALL_DEFINE3(getdents, int, fd, void __user *, buf, unsigned int, size)
{
	return list_fd(fd, buf, size, true);
}

SYSCALL_DEFINE3(getdents64, int, fd, void __user *, buf, unsigned int, size)
{
	return list_fd(fd, buf, size, false);
}
