// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/signal.h>

/*
 * Limits file content. The root file system and all tmpfs and ramfs together may take half of the
 * memory, and have half as many inodes as there are pages. So a program that writes too much gets
 * ENOSPC, and the machine keeps working. Files that the kernel unpacks at boot are counted, but
 * never refused. RLIMIT_FSIZE limits each file, too.
 */

static u64 nr_pages, nr_inodes; /* atomic */

static u64 limit(void)
{
	return page_nr_total() / 2;
}

static bool charge(u64 *counter, u64 nr, bool force)
{
	u64 now = __atomic_add_fetch(counter, nr, __ATOMIC_RELAXED);

	if (force || now <= limit())
		return true;
	__atomic_sub_fetch(counter, nr, __ATOMIC_RELAXED);
	return false;
}

bool space_charge_pages(const struct inode *inode, u64 nr, bool force)
{
	return !inode->fs->type->is_bounded || charge(&nr_pages, nr, force);
}

void space_uncharge_pages(const struct inode *inode, u64 nr)
{
	DEBUG_ASSERT(!inode->fs->type->is_bounded || READ_ONCE(nr_pages) >= nr);
	if (inode->fs->type->is_bounded)
		__atomic_sub_fetch(&nr_pages, nr, __ATOMIC_RELAXED);
}

bool space_charge_inode(const struct filesystem *fs, bool force)
{
	return !fs->type->is_bounded || charge(&nr_inodes, 1, force);
}

void space_uncharge_inode(const struct filesystem *fs)
{
	DEBUG_ASSERT(!fs->type->is_bounded || READ_ONCE(nr_inodes));
	if (fs->type->is_bounded)
		__atomic_sub_fetch(&nr_inodes, 1, __ATOMIC_RELAXED);
}

ssize_t inode_limit_write(const struct inode *inode, u64 pos, size_t n)
{
	u64 bytes = process_limit(RLIMIT_FSIZE);

	if (n && pos >= bytes) {
		signal_send_self(SIGXFSZ);
		return -EFBIG;
	}
	return n ? seals_limit_write(inode, pos, min(n, bytes - pos)) : 0;
}

int inode_limit_size(const struct inode *inode, u64 size_bytes)
{
	if (size_bytes <= inode->size_bytes || size_bytes <= process_limit(RLIMIT_FSIZE))
		return seals_limit_size(inode, size_bytes);
	signal_send_self(SIGXFSZ);
	return -EFBIG;
}

static u64 left(const u64 *counter)
{
	u64 used = READ_ONCE(*counter);

	return used < limit() ? limit() - used : 0;
}

void space_get(struct space *space)
{
	space->max_pages = limit();
	space->free_pages = left(&nr_pages);
	space->max_inodes = limit();
	space->free_inodes = left(&nr_inodes);
}
