// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>

/*
 * Opening, creating and cutting files. Everyone is root: permissions are kept, but nobody is
 * denied.
 */

/* What open() itself uses up; the rest stays with the file. */
#define OPEN_ONLY (O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC)

/* What would not be what was asked for: O_ASYNC, O_DIRECT, O_PATH and O_TMPFILE. */
#define OPEN_UNSUPPORTED (00020000 | 00040000 | 010000000 | 020000000)

static int check(const struct inode *inode, u32 flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	if (S_ISLNK(inode->mode))
		return -ELOOP; /* only found with O_NOFOLLOW */
	if (flags & O_DIRECTORY && !S_ISDIR(inode->mode))
		return -ENOTDIR;
	if (S_ISDIR(inode->mode) && (writes || flags & (O_CREAT | O_TRUNC)))
		return -EISDIR;
	if (S_ISCHR(inode->mode) && !inode->device)
		return -ENXIO;
	return 0;
}

/* Find or create, with a reference. */
static struct inode *find(struct inode *base, const char *path, u32 flags, u32 mode)
{
	bool nofollow = flags & O_NOFOLLOW || (flags & O_CREAT && flags & O_EXCL);
	struct inode *inode;
	struct walk walk;
	int error;

	mutex_lock(&tree_lock);
	error = path_walk(base, path, nofollow ? WALK_NOFOLLOW : 0, &walk);
	if (error) {
		inode = ERR_PTR(error);
	} else if (walk.inode) {
		inode = flags & O_CREAT && flags & O_EXCL ? ERR_PTR(-EEXIST) : walk.inode;
	} else if (!(flags & O_CREAT)) {
		inode = ERR_PTR(-ENOENT);
	} else if (walk.wants_directory) {
		inode = ERR_PTR(-EISDIR);
	} else {
		inode = tree_create(walk.parent, walk.name, S_IFREG | (mode & 07777));
	}
	if (!IS_ERR(inode))
		inode_get(inode);
	mutex_unlock(&tree_lock);
	return inode;
}

static int truncate(struct inode *inode, u64 size_bytes)
{
	int error;

	mutex_lock(&inode->write_lock);
	error = inode_truncate(inode, size_bytes);
	mutex_unlock(&inode->write_lock);
	return error;
}

struct file *open_at(struct inode *base, const char *path, u32 flags, u32 mode)
{
	struct inode *inode;
	struct file *file;
	int error;

	if (flags & OPEN_UNSUPPORTED || (flags & O_CREAT && flags & O_DIRECTORY))
		return ERR_PTR(-EINVAL);
	inode = find(base, path, flags, mode);
	if (IS_ERR(inode))
		return (void *)inode;
	error = check(inode, flags);
	if (error) {
		file = ERR_PTR(error);
		goto out_put;
	}
	file = file_alloc(inode, flags & ~OPEN_ONLY);
	if (!file)
		file = ERR_PTR(-ENOMEM);
	else if (flags & O_TRUNC && S_ISREG(inode->mode))
		truncate(inode, 0);
out_put:
	inode_put(inode);
	return file;
}

/* Kernel threads have no working directory: for them, all paths start at the root. */
struct file *file_open(const char *path, u32 flags, u32 mode)
{
	struct inode *base;
	struct file *file;

	if (*path == '/' || !current || !current->proc || !current->proc->files)
		return open_at(root_inode, path, flags, mode);
	base = cwd_get();
	file = open_at(base, path, flags, mode);
	inode_put(base);
	return file;
}

static long open_fd(int dirfd, const char __user *user_path, u32 flags, u32 mode)
{
	struct inode *base;
	struct file *file;
	char *path;
	long fd;

	path = path_from_user(user_path);
	if (IS_ERR(path))
		return PTR_ERR(path);
	base = path_base(dirfd, path);
	fd = PTR_ERR(base);
	if (IS_ERR(base))
		goto out_free;
	file = open_at(base, path, flags, mode);
	inode_put(base);
	fd = PTR_ERR(file);
	if (IS_ERR(file))
		goto out_free;
	fd = fd_install(file, 0, flags & O_CLOEXEC);
	if (fd < 0)
		file_put(file);
out_free:
	kfree(path);
	return fd;
}

SYSCALL_DEFINE3(open, const char __user *, path, u32, flags, u32, mode)
{
	return open_fd(AT_FDCWD, path, flags, mode);
}

SYSCALL_DEFINE4(openat, int, dirfd, const char __user *, path, u32, flags, u32, mode)
{
	return open_fd(dirfd, path, flags, mode);
}

SYSCALL_DEFINE2(truncate, const char __user *, path, s64, size_bytes)
{
	struct inode *inode;
	long error = -EINVAL;

	if (size_bytes < 0)
		return -EINVAL;
	inode = path_get_user(AT_FDCWD, path, 0);
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (S_ISDIR(inode->mode))
		error = -EISDIR;
	else if (S_ISREG(inode->mode))
		error = truncate(inode, size_bytes);
	inode_put(inode);
	return error;
}

SYSCALL_DEFINE2(ftruncate, int, fd, s64, size_bytes)
{
	struct file *file;
	long error = -EINVAL;

	if (size_bytes < 0)
		return -EINVAL;
	file = fd_get(fd);
	if (!file)
		return -EBADF;
	if (file_may_write(file) && file_is_regular(file))
		error = truncate(file->inode, size_bytes);
	file_put(file);
	return error;
}
