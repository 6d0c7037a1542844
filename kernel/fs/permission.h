/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_PERMISSION_H
#define FS_PERMISSION_H

/* permission.c: the access that the current process wants. */

#include "inode.h"
#include <lego/sched.h>

/* The first three are access(2)'s. */
#define MAY_EXEC    1 /* for a directory: to look up a name in it */
#define MAY_WRITE   2
#define MAY_READ    4
#define MAY_AS_REAL 8 /* check the real user and group, for access(2) */

/* Returns true if the fs user is 0. Kernel threads may do everything, too. */
static inline bool fs_is_root(void)
{
	const struct process *proc = current->proc;

	return !proc || !READ_ONCE(proc->creds.fsuid);
}

/* Returns 0 or -EACCES. */
int inode_check_permission(const struct inode *inode, u32 mask);
static inline int inode_permission(const struct inode *inode, u32 mask)
{
	if (!(mask & (MAY_EXEC | MAY_AS_REAL)) && fs_is_root())
		return 0;
	return inode_check_permission(inode, mask);
}
bool inode_is_owned(const struct inode *inode); /* by the current process, or it is root */
bool inode_group_allowed(u32 gid);		/* the process is in the group, or it is root */
int tree_may_create(const struct inode *dir);	/* a name in the directory: 0 or -EACCES */
/*
 * Returns 0 if the process may remove a name from the directory; -EACCES, or -EPERM because the
 * directory is sticky.
 */
int tree_may_remove(const struct inode *dir, struct inode *entry);

/*
 * Linux's fs.protected_* settings (proc_sys_fs(5)), each 0 for off; root may change them. A user
 * may make hard links only of files that he owns, or may read and write. In a sticky directory that
 * all may write to, a symbolic link at the end of a path is followed only for its owner, or if it
 * is the directory owner's. open(O_CREAT) opens a FIFO or a regular file that is already there only
 * under the same condition; with 2, also in a sticky directory that its group may write to.
 */
extern struct protection {
	unsigned int hardlinks, symlinks, fifos, regular;
} fs_protection;

/* By these rules, root included. tree_lock is held. Return 0, -EPERM (a link), or -EACCES. */
int tree_may_link(const struct inode *inode);
int tree_may_follow(const struct inode *dir, const struct inode *link);
int tree_may_open_present(const struct inode *dir, const struct inode *inode);

static inline u32 mode_without_set_ids(u32 mode)
{
	/* Without x for the group, set-group-ID means something else (mandatory locking). */
	return mode & ~(mode & S_IXGRP ? S_ISUID | S_ISGID : S_ISUID);
}
/* Clears the set-ID bits when the content of a file changes, unless root changes it. */
void inode_strip_set_ids(struct inode *inode);
static inline void inode_content_changes(struct inode *inode)
{
	if (unlikely(inode->mode & (S_ISUID | S_ISGID)))
		inode_strip_set_ids(inode);
}

/* Returns 0, or -ETXTBSY if the file is being executed. */
int inode_begin_writing(struct inode *inode);
void inode_end_writing(struct inode *inode);

#endif
