// SPDX-License-Identifier: BSD-2-Clause
/*
 * Decides whether a process may access or change a file, by Linux's rules. A process whose fs user
 * is 0 has all capabilities for files (capabilities(7)).
 *
 * Permissions are checked where a path is walked and where a file is opened. Reads and writes of an
 * open file check nothing.
 *
 * In a sticky directory such as /tmp, a user can put links, FIFOs and files where a program of
 * another user, also of root, expects its own: struct protection says what is refused.
 */
#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/sched.h>

#define S_IXALL 00111

/* Another thread may replace the supplementary groups: the lock keeps the list valid. */
static bool in_supplementary_group(struct process *proc, u32 gid)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool found = false;

	for (u32 i = 0; i < proc->creds.nr_groups && !found; i++)
		found = proc->creds.groups[i] == gid;
	spin_unlock_irqrestore(&proc->lock, flags);
	return found;
}

static bool in_group(u32 gid, bool as_real)
{
	struct process *proc = current->proc;

	return gid == (as_real ? proc->creds.gid : proc->creds.fsgid) ||
	       in_supplementary_group(proc, gid);
}

static int root_permission(u32 mode, u32 mask)
{
	bool executes = mask & MAY_EXEC && !S_ISDIR(mode);

	return executes && !(mode & S_IXALL) ? -EACCES : 0;
}

int inode_check_permission(const struct inode *inode, u32 mask)
{
	u32 mode = READ_ONCE(inode->mode), uid = 0;
	bool as_real = mask & MAY_AS_REAL;

	if (current->proc)
		uid = as_real ? current->proc->creds.uid : current->proc->creds.fsuid;
	if (!uid)
		return root_permission(mode, mask);
	if (uid == inode->uid)
		mode >>= 6;
	else if (in_group(inode->gid, as_real))
		mode >>= 3;
	if (!(mask & ~mode & (MAY_READ | MAY_WRITE | MAY_EXEC)))
		return 0;
	return inode->ops && inode->ops->is_own && inode->ops->is_own(inode) ? 0 : -EACCES;
}

bool inode_is_owned(const struct inode *inode)
{
	return fs_is_root() || current->proc->creds.fsuid == inode->uid;
}

bool inode_group_allowed(u32 gid)
{
	return fs_is_root() || in_group(gid, false);
}

int tree_may_create(const struct inode *dir)
{
	return inode_permission(dir, MAY_WRITE | MAY_EXEC);
}

int tree_may_remove(const struct inode *dir, struct inode *entry)
{
	int error = inode_permission(dir, MAY_WRITE | MAY_EXEC);

	ASSERT_HELD(&tree_lock);
	if (!error && dir->mode & S_ISVTX && !inode_is_owned(dir) &&
	    !inode_is_owned(entry_inode(entry)))
		error = -EPERM;
	return error;
}

/* With Debian's values. */
struct protection fs_protection = { .hardlinks = 1, .symlinks = 1, .fifos = 1, .regular = 2 };

/* Kernel threads may do everything: they own all files. */
static bool is_users_own(const struct inode *inode)
{
	return !current->proc || current->proc->creds.fsuid == inode->uid;
}

/* Returns true if a link to the file gives its maker nothing that he does not have. */
static bool is_safe_to_link(const struct inode *inode)
{
	return S_ISREG(inode->mode) && mode_without_set_ids(inode->mode) == inode->mode &&
	       !inode_permission(inode, MAY_READ | MAY_WRITE);
}

int tree_may_link(const struct inode *inode)
{
	ASSERT_HELD(&tree_lock);
	if (!fs_protection.hardlinks || is_safe_to_link(inode) || inode_is_owned(inode))
		return 0;
	return -EPERM;
}

int tree_may_follow(const struct inode *dir, const struct inode *link)
{
	ASSERT_HELD(&tree_lock);
	if (!fs_protection.symlinks || is_users_own(link) || dir->uid == link->uid ||
	    (dir->mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
		return 0;
	return -EACCES;
}

int tree_may_open_present(const struct inode *dir, const struct inode *inode)
{
	unsigned int level = 1;

	ASSERT_HELD(&tree_lock);
	if (S_ISFIFO(inode->mode))
		level = fs_protection.fifos;
	else if (S_ISREG(inode->mode))
		level = fs_protection.regular;
	if (!level || !(dir->mode & S_ISVTX) || dir->uid == inode->uid || is_users_own(inode))
		return 0;
	return dir->mode & S_IWOTH || (dir->mode & S_IWGRP && level >= 2) ? -EACCES : 0;
}

void inode_strip_set_ids(struct inode *inode)
{
	if (fs_is_root() || S_ISDIR(inode->mode))
		return;
	spin_lock(&inode->data_lock);
	WRITE_ONCE(inode->mode, mode_without_set_ids(inode->mode));
	spin_unlock(&inode->data_lock);
}

int file_may_execute(const struct file *file)
{
	if (!file_is_regular(file) || file_is_noexec(file))
		return -EACCES;
	return inode_permission(file->inode, MAY_EXEC);
}

bool file_is_readable(const struct file *file)
{
	return !inode_permission(file->inode, MAY_READ);
}

/* Adds step, 1 or -1, to the count, unless it has the other sign. */
static int count_use(struct inode *inode, int step)
{
	int old;

	do {
		old = READ_ONCE(inode->nr_writers);
		if (old * step < 0)
			return -ETXTBSY;
	} while (cmpxchg(&inode->nr_writers, old, old + step) != old);
	return 0;
}

static void uncount_use(struct inode *inode, int step)
{
	int left = __atomic_sub_fetch(&inode->nr_writers, step, __ATOMIC_RELEASE);

	ASSERT_NAMED(left * step >= 0, "nr_writers is balanced");
}

int inode_begin_writing(struct inode *inode)
{
	return count_use(inode, 1);
}

void inode_end_writing(struct inode *inode)
{
	/* file_version() has returned 0 meanwhile. A number from before is an old one. */
	WRITE_ONCE(inode->version, 0);
	uncount_use(inode, 1);
}

int file_deny_writing(struct file *file)
{
	return count_use(file->inode, -1);
}

void file_allow_writing(struct file *file)
{
	uncount_use(file->inode, -1);
}

bool file_is_noexec(const struct file *file)
{
	return file->mount && file->mount->flags & MOUNT_NOEXEC;
}

void file_apply_set_ids(const struct file *file, struct credentials *creds)
{
	struct inode *inode = file->inode;

	if (file->mount && file->mount->flags & MOUNT_NOSUID)
		return;
	/* A new owner must never get the set-ID bits of the old one: see change_inode(). */
	spin_lock(&inode->data_lock);
	if (inode->mode & S_ISUID)
		creds->euid = inode->uid;
	if ((inode->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		creds->egid = inode->gid;
	spin_unlock(&inode->data_lock);
}
