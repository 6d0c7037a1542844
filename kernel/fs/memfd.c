// SPDX-License-Identifier: BSD-2-Clause
/*
 * memfd_create(2): a file in no directory. Huge pages are not supported (EINVAL).
 *
 * Seals (fcntl(2)) forbid certain changes of the file for ever, so that a process can safely map
 * what another one has written. Writers hold write_lock. Writable shared mappings are created with
 * mm->lock held, and searched for with it held, so the search misses none.
 */

#include "fd.h"

#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/printk.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define MFD_CLOEXEC	  0x01
#define MFD_ALLOW_SEALING 0x02
#define MFD_EXEC	  0x10 /* is the default */

#define F_SEAL_SEAL	    0x01 /* no more seals */
#define F_SEAL_SHRINK	    0x02
#define F_SEAL_GROW	    0x04
#define F_SEAL_WRITE	    0x08
#define F_SEAL_FUTURE_WRITE 0x10 /* existing mappings can still write */
#define F_SEALS		    0x1f
#define F_SEALS_WRITE	    (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

#define SEALS_KEPT BIT(31) /* in inode->seals of every memfd */

#define NAME_PREFIX "/memfd:"
#define NAME_SUFFIX " (deleted)"
#define MAX_NAME    249 /* as in Linux */

ssize_t seals_limit_write(const struct inode *inode, u64 pos, size_t n)
{
	u64 last = ALIGN_DOWN(inode->size_bytes, PAGE_SIZE);

	if (inode->seals & F_SEALS_WRITE)
		return -EPERM;
	if (!(inode->seals & F_SEAL_GROW) || pos + n <= inode->size_bytes)
		return n;
	/* Linux writes page by page, and does not write a page that would grow the file. */
	return pos < last ? last - pos : -EPERM;
}

int seals_limit_size(const struct inode *inode, u64 size_bytes)
{
	if (size_bytes < inode->size_bytes && inode->seals & F_SEAL_SHRINK)
		return -EPERM;
	return size_bytes > inode->size_bytes && inode->seals & F_SEAL_GROW ? -EPERM : 0;
}

bool file_is_write_sealed(const struct file *file)
{
	return READ_ONCE(file->inode->seals) & F_SEALS_WRITE;
}

static long add_seals(struct inode *inode, u32 seals)
{
	u32 old = inode->seals;

	if (old & F_SEAL_SEAL)
		return -EPERM;
	WRITE_ONCE(inode->seals, old | seals);
	if (seals & ~old & F_SEAL_WRITE && mm_may_write_file(inode)) {
		WRITE_ONCE(inode->seals, old);
		return -EBUSY;
	}
	return 0;
}

long seals_add(struct file *file, u64 seals)
{
	struct inode *inode = file->inode;
	long ret;

	if (file->flags & O_PATH)
		return -EBADF;
	if (!(inode->seals & SEALS_KEPT))
		return -EINVAL;
	if (!file_may_write(file))
		return -EPERM;
	if (seals & ~(u64)F_SEALS)
		return -EINVAL;
	mutex_lock(&inode->write_lock);
	ret = add_seals(inode, seals);
	mutex_unlock(&inode->write_lock);
	return ret;
}

long seals_get(const struct file *file)
{
	u32 seals = READ_ONCE(file->inode->seals);

	if (file->flags & O_PATH)
		return -EBADF;
	return seals & SEALS_KEPT ? (long)(seals & F_SEALS) : -EINVAL;
}

SYSCALL_DEFINE2(memfd_create, const char __user *, user_name, u32, flags)
{
	char name[MAX_NAME + 1], path[sizeof(NAME_PREFIX) + MAX_NAME + sizeof(NAME_SUFFIX)];
	struct file *file;
	ssize_t len;

	if (flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC))
		return -EINVAL;
	len = strncpy_from_user(name, user_name, sizeof(name));
	if (len < 0)
		return len == -ENAMETOOLONG ? -EINVAL : len;
	snprintf(path, sizeof(path), NAME_PREFIX "%s" NAME_SUFFIX, name);
	file = file_create_unnamed(path, 0777, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	file->flags |= O_LARGEFILE;
	file->inode->seals = SEALS_KEPT | (flags & MFD_ALLOW_SEALING ? 0 : F_SEAL_SEAL);
	return fd_install_or_put(file, flags & MFD_CLOEXEC);
}
