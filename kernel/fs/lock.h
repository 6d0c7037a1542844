/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_LOCK_H
#define FS_LOCK_H

/*
 * Advisory locks of files: record locks, fcntl(2), which belong to a process or to an open file,
 * and those of flock(2), which belong to an open file. The two kinds do not see each other. Process
 * context; all may sleep.
 */

#include <lego/list.h>
#include <lego/types.h>

struct file;
struct inode;
struct text;

/* Linux's values. */
#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2

#define LOCK_LAST_BYTE ((u64)INT64_MAX)

enum lock_kind {
	LOCK_RECORD,
	LOCK_WHOLE, /* flock(2) */
	NR_LOCK_KINDS,
};

struct lock_node {
	struct lock_node *parent, *child[2];
	int height;
};

/* A request, or a lock that is held. */
struct file_lock {
	struct lock_node by_start, by_owner; /* for lock_tree.c, as is max_end */
	u64 max_end[2];			     /* of the subtree by_start */
	struct list_head all_node;
	/* The file or, for a record lock of a process, its descriptor table. */
	const void *owner;
	struct file *file; /* the file through which it was set; it outlives the lock */
	pid_t pid;	   /* the process that set it, for F_GETLK; -1: F_OFD_SETLK */
	u8 kind;	   /* enum lock_kind */
	u8 type;	   /* F_*LCK */
	u64 start, last;   /* bytes, both included */
};

/*
 * Sets the owner's lock on the range to the type, and replaces its locks there. Returns 0; -EAGAIN
 * if another owner's lock conflicts and the caller does not wait; -EDEADLK if waiting would never
 * end; -ERESTARTSYS after a signal; -ENOLCK: no memory.
 */
int lock_set(const struct file_lock *request, bool wait);
/* Finds the first lock that conflicts with the request, and copies it to *request. */
bool lock_find_conflict(struct file_lock *request);

/*
 * Drops all locks of an owner on the inode. Called when a descriptor table closes a file, with the
 * table as owner, and at the last reference, with the file as owner.
 */
void lock_release_owner(struct file *file, const void *owner);
void lock_free(struct inode *inode); /* with the inode */

/* Prints /proc/locks: all locks held, and below each its waiters. */
void locks_text(struct text *text);

/* The commands of fcntl(2) for locks. Returns -EINVAL for any other command. */
long lock_fcntl(int fd, struct file *file, int command, void __user *arg);

#endif
