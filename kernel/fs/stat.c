// SPDX-License-Identifier: BSD-2-Clause
/* stat and its relatives: the attributes of a file. */

#include "fd.h"
#include "mount.h"
#include "permission.h"

#include <lego/errno.h>
#include <lego/page.h>
#include <lego/syscall.h>
#include <lego/time.h>
#include <lego/uaccess.h>

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

#define AT_EACCESS 0x200

/* AT_NO_AUTOMOUNT and AT_STATX_* are accepted, but have no effect on these file systems. */
#define AT_STATX_FORCE_SYNC 0x2000
#define AT_STATX_DONT_SYNC  0x4000
#define STAT_FLAGS \
	(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x800 | AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC)

static struct timespec64 to_timespec(s64 ns)
{
	s64 sec = ns / (s64)NSEC_PER_SEC, rest = ns % (s64)NSEC_PER_SEC;

	if (rest < 0)
		return (struct timespec64){ sec - 1, rest + (s64)NSEC_PER_SEC };
	return (struct timespec64){ sec, rest };
}

static void fill_stat(struct inode *inode, struct stat *stat)
{
	*stat = (struct stat){
		.device = inode->fs->device,
		.inode_number = inode->number,
		.mode = inode->mode,
		.uid = inode->uid,
		.gid = inode->gid,
		.rdev = inode->rdev,
		.size_bytes = READ_ONCE(inode->size_bytes),
		.block_bytes = PAGE_SIZE,
		.nr_blocks = READ_ONCE(inode->nr_pages) * (PAGE_SIZE / 512),
		.atime = to_timespec(inode->atime_ns),
		.mtime = to_timespec(inode->mtime_ns),
		.ctime = to_timespec(inode->ctime_ns),
	};
	tree_lock_read();
	stat->nr_links = tree_nr_links(inode);
	tree_unlock();
}

static long stat_inode(struct inode *inode, struct stat __user *user_stat)
{
	struct stat stat;

	fill_stat(inode, &stat);
	return copy_to_user(user_stat, &stat, sizeof(stat));
}

static long stat_path(int dirfd, const char __user *user_path, struct stat __user *stat, int flags)
{
	struct path path;
	long ret;

	if (flags & ~STAT_FLAGS)
		return -EINVAL;
	ret = path_find_user(dirfd, user_path, flags, &path);
	if (ret)
		return ret;
	ret = stat_inode(path.inode, stat);
	path_put(&path);
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
	struct file *file = fd_get_any(fd);
	long ret;

	if (!file)
		return -EBADF;
	ret = stat_inode(file->inode, stat);
	file_put(file);
	return ret;
}

SYSCALL_DEFINE4(newfstatat, int, dirfd, const char __user *, path, struct stat __user *, stat, int,
		flags)
{
	return stat_path(dirfd, path, stat, flags);
}

/* Linux's struct statx. */
struct statx_time {
	s64 sec;
	u32 nsec;
	s32 pad;
};

struct statx {
	u32 mask;
	u32 block_bytes;
	u64 attributes;
	u32 nr_links, uid, gid;
	u16 mode, pad;
	u64 inode_number, size_bytes, nr_blocks, attributes_mask;
	struct statx_time atime, btime, ctime, mtime;
	u32 rdev_major, rdev_minor, device_major, device_minor;
	u64 unused[14];
};

BUILD_BUG_ON(sizeof(struct statx) != 256);

#define STATX_BASIC_STATS 0x7ff
#define STATX_RESERVED	  0x80000000

static struct statx_time to_statx_time(const struct timespec64 *time)
{
	return (struct statx_time){ .sec = time->tv_sec, .nsec = (u32)time->tv_nsec };
}

static long statx_inode(struct inode *inode, struct statx __user *user_statx)
{
	struct statx statx = { .mask = STATX_BASIC_STATS };
	struct stat stat;

	fill_stat(inode, &stat);
	statx.block_bytes = stat.block_bytes;
	statx.nr_links = stat.nr_links;
	statx.uid = stat.uid;
	statx.gid = stat.gid;
	statx.mode = stat.mode;
	statx.inode_number = stat.inode_number;
	statx.size_bytes = stat.size_bytes;
	statx.nr_blocks = stat.nr_blocks;
	statx.atime = to_statx_time(&stat.atime);
	statx.ctime = to_statx_time(&stat.ctime);
	statx.mtime = to_statx_time(&stat.mtime);
	statx.rdev_major = stat.rdev >> 8 & 0xfff;
	statx.rdev_minor = (stat.rdev & 0xff) | (stat.rdev >> 12 & 0xfff00);
	statx.device_minor = stat.device;
	return copy_to_user(user_statx, &statx, sizeof(statx));
}

SYSCALL_DEFINE5(statx, int, dirfd, const char __user *, user_path, int, flags, u32, mask,
		struct statx __user *, statx)
{
	struct path path;
	long ret;

	if (mask & STATX_RESERVED || flags & ~STAT_FLAGS)
		return -EINVAL;
	if ((flags & AT_STATX_FORCE_SYNC) && (flags & AT_STATX_DONT_SYNC))
		return -EINVAL;
	ret = path_find_user(dirfd, user_path, flags, &path);
	if (ret)
		return ret;
	ret = statx_inode(path.inode, statx);
	path_put(&path);
	return ret;
}

static int check_mode(const struct path *path, u32 mask)
{
	bool noexec = path->mount && path->mount->flags & MOUNT_NOEXEC;

	if (mask & MAY_EXEC && noexec && S_ISREG(path->inode->mode))
		return -EACCES;
	return inode_permission(path->inode, mask);
}

static long check_access(int dirfd, const char __user *user_path, int mode, int flags)
{
	struct path path;
	long ret;

	if (mode & ~(MAY_READ | MAY_WRITE | MAY_EXEC))
		return -EINVAL;
	if (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (!(flags & AT_EACCESS)) {
		mode |= MAY_AS_REAL;
		flags |= AT_REAL_IDS;
	}
	ret = path_find_user(dirfd, user_path, flags, &path);
	if (ret)
		return ret;
	ret = check_mode(&path, mode);
	path_put(&path);
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
