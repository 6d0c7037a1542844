// SPDX-License-Identifier: BSD-2-Clause
/*
 * Limits the memory of files. The root file system and all tmpfs and ramfs together may take half
 * of the memory for content, and have half as many inodes as there are pages: with their names and
 * short targets, these take up to 704 bytes each, a twelfth of the memory. Users other than root
 * leave a sixteenth of that to root. So a program that writes too much, or makes too many files,
 * gets ENOSPC, and the machine keeps working. Files that the kernel unpacks at boot are counted,
 * but never refused. RLIMIT_FSIZE limits each file, too.
 */

#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/signal.h>

#define ROOT_SHARE 16 /* root's part of the limits is one in so many */

static u64 nr_bytes, nr_inodes; /* atomic */

static u64 max_inodes(void)
{
	return page_nr_total() / 2;
}

static u64 max_bytes(void)
{
	return page_nr_total() / 2 * PAGE_SIZE;
}

/* Returns what the current process may use of a limit. */
static u64 share(u64 max)
{
	return fs_is_root() ? max : max - max / ROOT_SHARE;
}

static bool charge(u64 *counter, u64 nr, u64 max, bool force)
{
	u64 now = __atomic_add_fetch(counter, nr, __ATOMIC_RELAXED);

	if (force || now <= share(max))
		return true;
	__atomic_sub_fetch(counter, nr, __ATOMIC_RELAXED);
	return false;
}

bool space_charge(const struct filesystem *fs, u64 bytes, bool force)
{
	return !fs->type->is_bounded || charge(&nr_bytes, bytes, max_bytes(), force);
}

void space_uncharge(const struct filesystem *fs, u64 bytes)
{
	DEBUG_ASSERT(!fs->type->is_bounded || READ_ONCE(nr_bytes) >= bytes);
	if (fs->type->is_bounded)
		__atomic_sub_fetch(&nr_bytes, bytes, __ATOMIC_RELAXED);
}

bool space_charge_inode(const struct filesystem *fs, bool force)
{
	return !fs->type->is_bounded || charge(&nr_inodes, 1, max_inodes(), force);
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

static u64 left(const u64 *counter, u64 max)
{
	u64 used = READ_ONCE(*counter);

	return used < max ? max - used : 0;
}

void space_get(struct space *space)
{
	space->max_pages = max_bytes() / PAGE_SIZE;
	space->free_pages = left(&nr_bytes, max_bytes()) / PAGE_SIZE;
	space->available_pages = left(&nr_bytes, share(max_bytes())) / PAGE_SIZE;
	space->max_inodes = max_inodes();
	space->free_inodes = left(&nr_inodes, max_inodes());
}
