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
};

/* A request, or a lock that is held. */
struct file_lock {
	struct list_head node; /* of the locks of its inode */
	struct list_head all_node;
	/* The file, or for a record lock of a process the table of descriptors. */
	const void *owner;
	struct file *file; /* through which it was set, and which outlives it */
	pid_t pid;	   /* who set it, to be told; -1: F_OFD_SETLK */
	u8 kind;	   /* enum lock_kind */
	u8 type;	   /* F_*LCK */
	u64 start, last;   /* bytes, both included */
};

/*
 * Sets the owner's lock on the range to the type, and gives up what the owner had there. 0;
 * -EAGAIN: another's lock conflicts, and the caller does not wait; -EDEADLK: waiting would never
 * end; -ERESTARTSYS: a signal came first; -ENOLCK: no memory.
 */
int lock_set(const struct file_lock *request, bool wait);
/* Finds the first lock that conflicts with the request, and copies it there. */
bool lock_find_conflict(struct file_lock *request);

/*
 * When a table closes a file, for the table; at the last reference, for the file itself. All its
 * locks on the inode go.
 */
void lock_release_owner(struct file *file, const void *owner);
void lock_free(struct inode *inode); /* with the inode */

/* For /proc/locks: all that are held, and below each who waits for it. */
void locks_text(struct text *text);

/* fcntl(2) for its commands about locks; -EINVAL: it is none. */
long lock_fcntl(int fd, struct file *file, int command, void __user *arg);

#endif
