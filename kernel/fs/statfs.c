// SPDX-License-Identifier: BSD-2-Clause
/* statfs, and the calls that have nothing to do if all files are in memory, such as sync. */

#include "fd.h"
#include "mount.h"

#include <lego/errno.h>
#include <lego/page.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* Linux's struct statfs for x86-64. */
struct statfs {
	s64 type;
	s64 block_bytes;
	u64 nr_blocks, nr_free_blocks, nr_available_blocks;
	u64 nr_files, nr_free_files;
	s32 id[2];
	s64 max_name_bytes;
	s64 fragment_bytes;
	s64 flags;
	s64 unused[4];
};

BUILD_BUG_ON(sizeof(struct statfs) != 120);

#define ST_VALID    0x20
#define ST_RELATIME 0x1000

static long fill_statfs(const struct path *path, struct statfs __user *user)
{
	const struct filesystem *fs = path->inode->fs;
	struct statfs statfs = {
		.type = fs->type->magic,
		.block_bytes = PAGE_SIZE,
		.id = { (s32)fs->device },
		.max_name_bytes = NAME_MAX,
		.fragment_bytes = PAGE_SIZE,
		.flags = ST_VALID | ST_RELATIME | (path->mount ? path->mount->flags : 0),
	};
	struct space space;

	if (fs->type->is_bounded) {
		space_get(&space);
		statfs.nr_blocks = space.max_pages;
		statfs.nr_free_blocks = space.free_pages;
		statfs.nr_available_blocks = space.available_pages;
		statfs.nr_files = space.max_inodes;
		statfs.nr_free_files = space.free_inodes;
	}
	return copy_to_user(user, &statfs, sizeof(statfs));
}

SYSCALL_DEFINE2(statfs, const char __user *, user_path, struct statfs __user *, statfs)
{
	struct path path;
	long ret = path_find_user(AT_FDCWD, user_path, 0, &path);

	if (ret)
		return ret;
	ret = fill_statfs(&path, statfs);
	path_put(&path);
	return ret;
}

SYSCALL_DEFINE2(fstatfs, int, fd, struct statfs __user *, statfs)
{
	struct file *file = fd_get_any(fd);
	long ret;

	if (!file)
		return -EBADF;
	ret = fill_statfs(&(struct path){ file->mount, file->inode }, statfs);
	file_put(file);
	return ret;
}

SYSCALL_DEFINE0(sync)
{
	return 0;
}

SYSCALL_DEFINE1(syncfs, int, fd)
{
	struct file *file = fd_get(fd);

	if (!file)
		return -EBADF;
	file_put(file);
	return 0;
}

/* Does nothing. As in Linux, pipes and devices cannot be synchronized (EINVAL). */
static long sync_file(int fd)
{
	struct file *file = fd_get(fd);
	long ret;

	if (!file)
		return -EBADF;
	ret = file->ops ? -EINVAL : 0;
	file_put(file);
	return ret;
}

SYSCALL_DEFINE1(fsync, int, fd)
{
	return sync_file(fd);
}

SYSCALL_DEFINE1(fdatasync, int, fd)
{
	return sync_file(fd);
}

SYSCALL_DEFINE3(readahead, int, fd, s64, pos, size_t, n)
{
	struct file *file = fd_get(fd);
	long ret = -EBADF;

	if (!file)
		return -EBADF;
	if (file_may_read(file))
		ret = file_is_regular(file) && !file->ops ? 0 : -EINVAL;
	file_put(file);
	return ret;
}

#define NR_ADVICES 6

SYSCALL_DEFINE4(fadvise64, int, fd, s64, pos, size_t, n, int, advice)
{
	struct file *file = fd_get(fd);
	long ret = 0;

	if (!file)
		return -EBADF;
	if (file_is_pipe(file))
		ret = -ESPIPE;
	else if ((s64)n < 0 || advice < 0 || advice >= NR_ADVICES)
		ret = -EINVAL;
	file_put(file);
	return ret;
}
