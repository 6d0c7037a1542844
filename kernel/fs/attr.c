// SPDX-License-Identifier: BSD-2-Clause
/* Changes of mode, owner and times. */

#include "mount.h"
#include "path.h"
#include "permission.h"

#include <lego/errno.h>
#include <lego/syscall.h>
#include <lego/time.h>
#include <lego/uaccess.h>

#define PERMISSIONS 07777

/* The changes of a call. Members that do not change are -1 or UTIME_OMIT. */
struct change {
	u32 mode, uid, gid;
	struct timespec64 atime, mtime;
};

#define KEEP	   (~0U)
#define UTIME_NOW  0x3fffffff
#define UTIME_OMIT 0x3ffffffe

static const struct change no_change = {
	.mode = KEEP,
	.uid = KEEP,
	.gid = KEEP,
	.atime = { .tv_nsec = UTIME_OMIT },
	.mtime = { .tv_nsec = UTIME_OMIT },
};

/*
 * Sets a time. Times that do not fit into 64 bits of nanoseconds (292 years from 1970) become the
 * latest one that does.
 */
static void set_time(s64 *ns, const struct timespec64 *time, s64 now)
{
	if (time->tv_nsec == UTIME_OMIT)
		return;
	if (time->tv_nsec == UTIME_NOW)
		*ns = now;
	else if (__builtin_mul_overflow(time->tv_sec, (s64)NSEC_PER_SEC, ns) ||
		 __builtin_add_overflow(*ns, time->tv_nsec, ns))
		*ns = time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
}

/*
 * Returns true if the process may chown: root may, and the owner may give the file to a group of
 * its own.
 */
static bool may_change_owner(const struct inode *inode, const struct change *change)
{
	if (fs_is_root())
		return true;
	if (change->uid != KEEP && (change->uid != inode->uid || !inode_is_owned(inode)))
		return false;
	if (change->gid == KEEP)
		return true;
	return inode_is_owned(inode) &&
	       (change->gid == inode->gid || inode_group_allowed(change->gid));
}

static bool changes_times(const struct change *change)
{
	return change->atime.tv_nsec != UTIME_OMIT || change->mtime.tv_nsec != UTIME_OMIT;
}

/*
 * Checks permission to set times. The owner may; a process that may write can set both to now,
 * because a write would do that, too.
 */
static int check_times(const struct inode *inode, const struct change *change)
{
	bool both_now = change->atime.tv_nsec == UTIME_NOW && change->mtime.tv_nsec == UTIME_NOW;

	if (inode_is_owned(inode))
		return 0;
	return both_now ? inode_permission(inode, MAY_WRITE) : -EPERM;
}

static int check_change(const struct inode *inode, const struct change *change)
{
	if (inode->fs->type->is_fixed)
		return -EPERM;
	if (change->mode != KEEP && !inode_is_owned(inode))
		return -EPERM;
	if (!may_change_owner(inode, change))
		return -EPERM;
	return changes_times(change) ? check_times(inode, change) : 0;
}

/*
 * Returns the mode after the change. A new owner must not get the old one's set-ID bits, and only a
 * member of a group can set set-group-ID.
 */
static u32 new_mode(const struct inode *inode, const struct change *change)
{
	if (change->mode != KEEP) {
		u32 mode = (inode->mode & S_IFMT) | (change->mode & PERMISSIONS);

		return inode_group_allowed(inode->gid) ? mode : mode & ~S_ISGID;
	}
	if ((change->uid == KEEP && change->gid == KEEP) || S_ISDIR(inode->mode))
		return inode->mode;
	return mode_without_set_ids(inode->mode);
}

/*
 * Makes all changes at once, so that a permission checked for one owner is not used for the next
 * owner's file.
 */
static int change_inode(struct inode *inode, const struct change *change)
{
	s64 now = clock_realtime_ns();
	int error;

	spin_lock(&inode->data_lock);
	error = check_change(inode, change);
	if (error)
		goto out_unlock;
	WRITE_ONCE(inode->mode, new_mode(inode, change));
	if (change->uid != KEEP)
		inode->uid = change->uid;
	if (change->gid != KEEP)
		inode->gid = change->gid;
	set_time(&inode->atime_ns, &change->atime, now);
	set_time(&inode->mtime_ns, &change->mtime, now);
	inode->ctime_ns = now;
out_unlock:
	spin_unlock(&inode->data_lock);
	return error;
}

static long apply_change(const struct path *path, const struct change *change)
{
	/*
	 * The permissions of a symbolic link have no meaning; as in Linux, they are not even
	 * stored.
	 */
	if (change->mode != KEEP && S_ISLNK(path->inode->mode))
		return -EOPNOTSUPP;
	return change_inode(path->inode, change);
}

static long change_path(int dirfd, const char __user *user_path, int flags,
			const struct change *change)
{
	struct path path;
	long ret;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	ret = path_find_user(dirfd, user_path, flags, &path);
	if (ret)
		return ret;
	ret = apply_change(&path, change);
	path_put(&path);
	return ret;
}

static long change_fd(int fd, const struct change *change)
{
	struct file *file = fd_get(fd);
	long ret;

	if (!file)
		return -EBADF;
	ret = apply_change(&(struct path){ file->mount, file->inode }, change);
	file_put(file);
	return ret;
}

static long change_mode(int dirfd, const char __user *user_path, u32 mode, int flags)
{
	struct change change = no_change;

	change.mode = mode & PERMISSIONS;
	return change_path(dirfd, user_path, flags, &change);
}

SYSCALL_DEFINE2(chmod, const char __user *, path, u32, mode)
{
	return change_mode(AT_FDCWD, path, mode, 0);
}

SYSCALL_DEFINE2(fchmod, int, fd, u32, mode)
{
	struct change change = no_change;

	change.mode = mode & PERMISSIONS;
	return change_fd(fd, &change);
}

SYSCALL_DEFINE3(fchmodat, int, dirfd, const char __user *, path, u32, mode)
{
	return change_mode(dirfd, path, mode, 0);
}

SYSCALL_DEFINE4(fchmodat2, int, dirfd, const char __user *, path, u32, mode, int, flags)
{
	return change_mode(dirfd, path, mode, flags);
}

static struct change owner_change(u32 uid, u32 gid)
{
	struct change change = no_change;

	change.uid = uid;
	change.gid = gid;
	return change;
}

SYSCALL_DEFINE3(chown, const char __user *, path, u32, uid, u32, gid)
{
	struct change change = owner_change(uid, gid);

	return change_path(AT_FDCWD, path, 0, &change);
}

SYSCALL_DEFINE3(lchown, const char __user *, path, u32, uid, u32, gid)
{
	struct change change = owner_change(uid, gid);

	return change_path(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &change);
}

SYSCALL_DEFINE3(fchown, int, fd, u32, uid, u32, gid)
{
	struct change change = owner_change(uid, gid);

	return change_fd(fd, &change);
}

SYSCALL_DEFINE5(fchownat, int, dirfd, const char __user *, path, u32, uid, u32, gid, int, flags)
{
	struct change change = owner_change(uid, gid);

	return change_path(dirfd, path, flags, &change);
}

static bool nsec_is_valid(s64 nsec)
{
	return (nsec >= 0 && nsec < (s64)NSEC_PER_SEC) || nsec == UTIME_NOW || nsec == UTIME_OMIT;
}

/* Changes times. A path of NULL means the file of the descriptor. */
static long change_times(int dirfd, const char __user *path, const struct timespec64 times[2],
			 int flags)
{
	struct change change = no_change;

	if (!nsec_is_valid(times[0].tv_nsec) || !nsec_is_valid(times[1].tv_nsec))
		return -EINVAL;
	if (times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT)
		return 0;
	change.atime = times[0];
	change.mtime = times[1];
	if (path || dirfd == AT_FDCWD)
		return change_path(dirfd, path, flags, &change);
	return flags ? -EINVAL : change_fd(dirfd, &change);
}

static const struct timespec64 both_now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };

SYSCALL_DEFINE4(utimensat, int, dirfd, const char __user *, path, const struct timespec64 __user *,
		user_times, int, flags)
{
	struct timespec64 times[2] = { both_now[0], both_now[1] };

	if (user_times && copy_from_user(times, user_times, sizeof(times)))
		return -EFAULT;
	return change_times(dirfd, path, times, flags);
}

/* Changes times given in microseconds, for utimes() and futimesat(). */
static long change_times_us(int dirfd, const char __user *path,
			    const struct timespec64 __user *user_times)
{
	struct timespec64 times[2] = { both_now[0], both_now[1] };

	if (!user_times)
		return change_times(dirfd, path, times, 0);
	if (copy_from_user(times, user_times, sizeof(times)))
		return -EFAULT;
	for (int i = 0; i < 2; i++) {
		if (times[i].tv_nsec < 0 || times[i].tv_nsec >= 1000000)
			return -EINVAL;
		times[i].tv_nsec *= (s64)NSEC_PER_USEC;
	}
	return change_times(dirfd, path, times, 0);
}

/* A struct timeval is laid out as a struct timespec64. */
SYSCALL_DEFINE2(utimes, const char __user *, path, const struct timespec64 __user *, times)
{
	return path ? change_times_us(AT_FDCWD, path, times) : -EFAULT;
}

SYSCALL_DEFINE3(futimesat, int, dirfd, const char __user *, path, const struct timespec64 __user *,
		times)
{
	return change_times_us(dirfd, path, times);
}

SYSCALL_DEFINE2(utime, const char __user *, path, const s64 __user *, user_seconds)
{
	struct timespec64 times[2] = { both_now[0], both_now[1] };
	s64 seconds[2];

	if (!path)
		return -EFAULT;
	if (user_seconds) {
		if (copy_from_user(seconds, user_seconds, sizeof(seconds)))
			return -EFAULT;
		times[0] = (struct timespec64){ .tv_sec = seconds[0] };
		times[1] = (struct timespec64){ .tv_sec = seconds[1] };
	}
	return change_times(AT_FDCWD, path, times, 0);
}
