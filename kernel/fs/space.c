// SPDX-License-Identifier: BSD-2-Clause
/*
 * Limits the memory of files. The root file system and all tmpfs and ramfs together may take half
 * of the memory, and have half as many inodes as there are pages. Users other than root leave a
 * sixteenth of that to root, and one user gets half of it, so another one can still write files.
 * So a program that writes too much, or makes too many files, gets ENOSPC, and the machine keeps
 * working. Files that the kernel unpacks at boot are counted, but never refused. RLIMIT_FSIZE
 * limits each file, too.
 *
 * An inode counts against the limit of the user who made it, with all that is written into it, also
 * if it gets another owner. What other users write into files of root counts against a limit that
 * they share.
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
#define USER_SHARE 2  /* and what one user may have of them */
#define OPEN_SHARE 4  /* and what all users may have in files of root */

/* The most memory of an inode, its name and a short target, in the size classes of slab.c. */
#define INODE_BYTES 704

static u64 nr_bytes, nr_inodes;	     /* atomic */
static struct user_files open_files; /* pays for files of root that users have written to */

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

static bool charge_counter(u64 *counter, u64 nr, u64 max, bool force)
{
	u64 now = __atomic_add_fetch(counter, nr, __ATOMIC_RELAXED);

	if (force || now <= share(max))
		return true;
	__atomic_sub_fetch(counter, nr, __ATOMIC_RELAXED);
	return false;
}

static void uncharge(u64 *counter, u64 nr)
{
	DEBUG_ASSERT(READ_ONCE(*counter) >= nr);
	__atomic_sub_fetch(counter, nr, __ATOMIC_RELAXED);
}

/* Charges who pays for an inode. What root writes into its own files is charged to nobody. */
static bool charge_payer(struct inode *inode, u64 bytes, bool force)
{
	u64 max;

	if (!inode->payer && !force && !fs_is_root())
		inode->payer = &open_files;
	if (!inode->payer)
		return true;
	max = max_bytes() / (inode->payer == &open_files ? OPEN_SHARE : USER_SHARE);
	if (!charge_counter(&inode->payer->nr_bytes, bytes, max, fs_is_root()))
		return false;
	inode->payer_bytes += bytes;
	return true;
}

bool space_charge(struct inode *inode, u64 bytes, bool force)
{
	if (!inode->fs->type->is_bounded)
		return true;
	if (!charge_counter(&nr_bytes, bytes, max_bytes(), force))
		return false;
	if (charge_payer(inode, bytes, force))
		return true;
	uncharge(&nr_bytes, bytes);
	return false;
}

void space_uncharge(struct inode *inode, u64 bytes)
{
	u64 paid = min(bytes, inode->payer_bytes);

	if (!inode->fs->type->is_bounded)
		return;
	uncharge(&nr_bytes, bytes);
	if (!paid)
		return;
	inode->payer_bytes -= paid;
	uncharge(&inode->payer->nr_bytes, paid);
}

/* Finds who pays for an inode that the current process makes. */
static bool set_payer(struct inode *inode)
{
	if (fs_is_root())
		return true;
	inode->payer = user_charge_inode(inode->uid, max_inodes() / USER_SHARE);
	return inode->payer;
}

bool space_charge_inode(struct inode *inode, bool force)
{
	if (!inode->fs->type->is_bounded)
		return true;
	if (!charge_counter(&nr_inodes, 1, max_inodes(), force))
		return false;
	if (!force && !set_payer(inode))
		goto out_inode;
	if (space_charge(inode, INODE_BYTES, force))
		return true;
	if (inode->payer)
		user_uncharge_inode(inode->payer);
out_inode:
	uncharge(&nr_inodes, 1);
	return false;
}

void space_uncharge_inode(struct inode *inode)
{
	if (!inode->fs->type->is_bounded)
		return;
	space_uncharge(inode, INODE_BYTES);
	uncharge(&nr_inodes, 1);
	if (inode->payer && inode->payer != &open_files)
		user_uncharge_inode(inode->payer);
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

/* Returns what the limit of the current user leaves. */
static u64 user_free_pages(void)
{
	u64 bytes = user_file_bytes(current->proc->creds.fsuid);

	return left(&bytes, max_bytes() / USER_SHARE) / PAGE_SIZE;
}

void space_get(struct space *space)
{
	space->max_pages = max_bytes() / PAGE_SIZE;
	space->free_pages = left(&nr_bytes, max_bytes()) / PAGE_SIZE;
	space->available_pages = left(&nr_bytes, share(max_bytes())) / PAGE_SIZE;
	if (!fs_is_root())
		space->available_pages = min(space->available_pages, user_free_pages());
	space->max_inodes = max_inodes();
	space->free_inodes = left(&nr_inodes, max_inodes());
}
