// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/syscall.h>
#include <lego/time.h>
#include <lego/uaccess.h>

/*
 * Permissions, owners and times: kept and told. Permissions deny nobody anything (but see
 * access()), owners own nothing.
 */

#define PERMISSIONS 07777
#define S_ISUID	    04000
#define S_ISGID	    02000
#define S_IXGRP	    00010

static int check_change(const struct path *path)
{
	return path_is_fixed(path) ? -EPERM : 0;
}

/* What one of these calls changes; the rest is -1 or UTIME_OMIT. */
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

/* Times beyond what 64 bits of nanoseconds hold (292 years from 1970) become the last one. */
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

static long apply(const struct path *path, const struct change *change)
{
	struct inode *inode = path->inode;
	s64 now = clock_realtime_ns();
	u32 mode = inode->mode;
	int error;

	/* A link's own permissions mean nothing: as Linux, not even kept. */
	if (change->mode != KEEP && S_ISLNK(mode))
		return -EOPNOTSUPP;
	error = check_change(path);
	if (error)
		return error;
	if (change->uid != KEEP)
		inode->uid = change->uid;
	if (change->gid != KEEP)
		inode->gid = change->gid;
	if (change->mode != KEEP) {
		mode = (mode & S_IFMT) | (change->mode & PERMISSIONS);
	} else if ((change->uid != KEEP || change->gid != KEEP) && !S_ISDIR(mode)) {
		/* A new owner does not get the old one's rights. */
		mode &= ~S_ISUID;
		if (mode & S_IXGRP)
			mode &= ~S_ISGID;
	}
	WRITE_ONCE(inode->mode, mode);
	set_time(&inode->atime_ns, &change->atime, now);
	set_time(&inode->mtime_ns, &change->mtime, now);
	inode->ctime_ns = now;
	return 0;
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
	ret = apply(&path, change);
	path_release(&path);
	return ret;
}

static long change_fd(int fd, const struct change *change)
{
	struct file *file = fd_get(fd);
	long ret;

	if (!file)
		return -EBADF;
	ret = apply(&(struct path){ file->mount, file->inode }, change);
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

/* Without a path: the descriptor's own file, if there is one. */
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

/* Microseconds, as utimes() and futimesat() have them. */
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
