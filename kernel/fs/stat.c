// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/page.h>
#include <lego/syscall.h>
#include <lego/time.h>
#include <lego/uaccess.h>

/*
 * What is known about a file. Owner and group are root's, all three times are that of the last
 * change.
 */

/* Linux's struct stat for x86-64. */
struct stat {
	u64 device;
	u64 inode_number;
	u64 nr_links;
	u32 mode;
	u32 uid;
	u32 gid;
	u32 pad;
	u64 rdev;
	s64 size_bytes;
	s64 block_bytes;
	s64 nr_blocks; /* of 512 bytes */
	struct timespec64 atime, mtime, ctime;
	s64 unused[3];
};

BUILD_BUG_ON(sizeof(struct stat) != 144);

#define RAMFS_DEVICE 1
#define R_OK	     4
#define W_OK	     2
#define X_OK	     1
#define AT_EACCESS   0x200

/* The last three, AT_NO_AUTOMOUNT and AT_STATX_*, are about other file systems. */
#define STAT_FLAGS (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x800 | 0x2000 | 0x4000)

static long fill(struct inode *inode, struct stat __user *user_stat)
{
	struct timespec64 time = { .tv_sec = inode->mtime_ns / NSEC_PER_SEC,
				   .tv_nsec = inode->mtime_ns % NSEC_PER_SEC };
	struct stat stat = {
		.device = RAMFS_DEVICE,
		.inode_number = inode->number,
		.nr_links = inode->removed ? 0 : (S_ISDIR(inode->mode) ? 2 : 1),
		.mode = inode->mode,
		.rdev = inode->device ? inode->device->number : 0,
		.size_bytes = READ_ONCE(inode->size_bytes),
		.block_bytes = PAGE_SIZE,
		.atime = time,
		.mtime = time,
		.ctime = time,
	};

	stat.nr_blocks = DIV_ROUND_UP(stat.size_bytes, 512);
	return copy_to_user(user_stat, &stat, sizeof(stat));
}

static long stat_path(int dirfd, const char __user *path, struct stat __user *stat, int flags)
{
	struct inode *inode;
	long ret;

	if (flags & ~STAT_FLAGS)
		return -EINVAL;
	inode = path_get_user(dirfd, path, flags);
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	ret = fill(inode, stat);
	inode_put(inode);
	return ret;
}

SYSCALL_DEFINE2(stat, const char __user *, path, struct stat __user *, stat)
{
	return stat_path(AT_FDCWD, path, stat, 0);
}

SYSCALL_DEFINE2(lstat, const char __user *, path, struct stat __user *, stat)
{
	return stat_path(AT_FDCWD, path, stat, AT_SYMLINK_NOFOLLOW);
}

SYSCALL_DEFINE2(fstat, int, fd, struct stat __user *, stat)
{
	struct file *file = fd_get(fd);
	long ret;

	if (!file)
		return -EBADF;
	ret = fill(file->inode, stat);
	file_put(file);
	return ret;
}

SYSCALL_DEFINE4(newfstatat, int, dirfd, const char __user *, path, struct stat __user *, stat, int,
		flags)
{
	return stat_path(dirfd, path, stat, flags);
}

/* Root may read and write all, and execute what anyone may. */
static long check_access(int dirfd, const char __user *path, int mode, int flags)
{
	struct inode *inode;
	long ret = 0;

	if (mode & ~(R_OK | W_OK | X_OK))
		return -EINVAL;
	if (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	inode = path_get_user(dirfd, path, flags);
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (mode & X_OK && !S_ISDIR(inode->mode) && !(inode->mode & 0111))
		ret = -EACCES;
	inode_put(inode);
	return ret;
}

SYSCALL_DEFINE2(access, const char __user *, path, int, mode)
{
	return check_access(AT_FDCWD, path, mode, 0);
}

SYSCALL_DEFINE3(faccessat, int, dirfd, const char __user *, path, int, mode)
{
	return check_access(dirfd, path, mode, 0);
}

SYSCALL_DEFINE4(faccessat2, int, dirfd, const char __user *, path, int, mode, int, flags)
{
	return check_access(dirfd, path, mode, flags);
}
