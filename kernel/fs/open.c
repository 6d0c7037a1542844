// SPDX-License-Identifier: BSD-2-Clause
/* Opens, creates and truncates files. */

#include "fd.h"
#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>

/* Flags that only open() uses; the other ones stay with the file. */
#define OPEN_ONLY (O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC | O_TMPFILE_ONLY)

/* Flags that open() with O_PATH uses. All others are ignored, as in Linux. */
#define OPEN_PATH (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Flags that are refused, because they are not supported: O_ASYNC and O_DIRECT. */
#define OPEN_UNSUPPORTED (00020000 | 00040000)

static u32 wanted(u32 flags)
{
	static const u8 masks[] = { MAY_READ, MAY_WRITE, MAY_READ | MAY_WRITE,
				    MAY_READ | MAY_WRITE };

	return masks[flags & O_ACCMODE] | (flags & O_TRUNC ? MAY_WRITE : 0);
}

/* Checks whether a file may be opened. A file that was just created may, regardless of its mode. */
static int check(const struct path *path, u32 flags, bool created)
{
	const struct inode *inode = path->inode;
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	if (flags & O_DIRECTORY && !S_ISDIR(inode->mode))
		return -ENOTDIR;
	if (flags & O_PATH)
		return 0;
	if (S_ISLNK(inode->mode))
		return -ELOOP; /* only found with O_NOFOLLOW */
	if (S_ISDIR(inode->mode) && (writes || flags & (O_CREAT | O_TRUNC)))
		return -EISDIR;
	if ((S_ISCHR(inode->mode) || S_ISBLK(inode->mode)) && path->mount->flags & MOUNT_NODEV)
		return -EACCES;
	if (S_ISANON(inode->mode) || S_ISSOCK(inode->mode) ||
	    (!S_ISREG(inode->mode) && !S_ISDIR(inode->mode) && !inode->device && !inode->file_ops))
		return -ENXIO; /* an unknown device, or a socket */
	return created ? 0 : inode_permission(inode, wanted(flags));
}

/* Finds or creates a file. found->inode has no reference: tree_lock keeps it alive. */
static int find_or_create(const struct walk *walk, u32 flags, u32 mode, struct path *found,
			  bool *created)
{
	bool exclusive = flags & O_CREAT && flags & O_EXCL;
	int error;

	ASSERT_HELD(&tree_lock);
	*found = walk->found;
	if (walk->wants_directory && flags & O_CREAT)
		return -EISDIR;
	if (found->inode && exclusive)
		return -EEXIST;
	if (found->inode && flags & O_CREAT && !S_ISDIR(found->inode->mode) &&
	    !S_ISLNK(found->inode->mode))
		return tree_may_open_present(walk->parent.inode, found->inode);
	if (found->inode)
		return 0;
	if (!(flags & O_CREAT) || path_is_fixed(&walk->parent))
		return -ENOENT;
	error = tree_may_create(walk->parent.inode);
	if (error)
		return error;
	*created = true;
	found->inode = tree_create(walk->parent.inode, walk->name, S_IFREG | (mode & 07777));
	return IS_ERR(found->inode) ? (int)PTR_ERR(found->inode) : 0;
}

/* Finds or creates a file, with references. */
static int find_to_open(const struct path *base, const char *path, u32 flags, u32 mode,
			struct path *found, bool *created)
{
	bool nofollow = flags & O_NOFOLLOW || (flags & O_CREAT && flags & O_EXCL);
	struct walk walk;
	int error;

	if (flags & O_CREAT)
		tree_lock_write();
	else
		tree_lock_read();
	error = path_walk(base, path, nofollow ? WALK_NOFOLLOW : 0, &walk);
	if (!error)
		error = find_or_create(&walk, flags, mode, found, created);
	if (!error)
		*found = path_get(found);
	path_walk_end(&walk);
	tree_unlock();
	return error;
}

/* For O_TMPFILE: makes a file without a name in the directory of the path, with references. */
static int create_unnamed(const struct path *base, const char *path, u32 flags, u32 mode,
			  struct path *found)
{
	struct inode *inode;
	struct walk walk;
	int error;

	tree_lock_write();
	error = path_walk(base, path, 0, &walk);
	if (!error && !walk.found.inode)
		error = -ENOENT;
	else if (!error && !S_ISDIR(walk.found.inode->mode))
		error = -ENOTDIR;
	if (!error)
		error = inode_permission(walk.found.inode, MAY_WRITE | MAY_EXEC);
	if (!error && path_is_fixed(&walk.found))
		error = -EOPNOTSUPP;
	if (error)
		goto out_unlock;
	inode = tree_create_removed(walk.found.inode, S_IFREG | (mode & 07777));
	error = IS_ERR(inode) ? (int)PTR_ERR(inode) : 0;
	if (error)
		goto out_unlock;
	inode->may_get_name = !(flags & O_EXCL);
	*found = (struct path){ mount_get(walk.found.mount), inode };
out_unlock:
	path_walk_end(&walk);
	tree_unlock();
	return error;
}

static int begin_writing(struct file *file)
{
	int error = inode_begin_writing(file->inode);

	file->writes = !error;
	return error;
}

/* Makes an open file for a path that may be opened. */
static struct file *open_path(const struct path *path, u32 flags)
{
	struct file *file = file_alloc(path, flags & ~OPEN_ONLY);
	int error;

	if (!file)
		return ERR_PTR(-ENOMEM);
	if (flags & O_PATH)
		return file;
	error = file_has_pages(file) && file_may_write(file) ? begin_writing(file) : 0;
	if (!error)
		error = file_call_open(file);
	if (error) {
		file_put(file);
		return ERR_PTR(error);
	}
	/* All files of 64-bit processes have O_LARGEFILE; F_GETFL returns it. */
	file->flags = (file->flags & ~O_NOCTTY) | O_LARGEFILE;
	return file;
}

static int truncate_inode(struct inode *inode, u64 size_bytes)
{
	int error = inode_begin_writing(inode);

	if (error)
		return error;
	mutex_lock(&inode->write_lock);
	error = inode_limit_size(inode, size_bytes);
	if (!error)
		error = inode_truncate(inode, size_bytes);
	mutex_unlock(&inode->write_lock);
	inode_end_writing(inode);
	return error;
}

/* Truncates a regular file that was opened with O_TRUNC. */
static int truncate_opened(struct file *file)
{
	if (!file->ops)
		return truncate_inode(file->inode, 0);
	return file->ops->truncate && file_may_write(file) ? file->ops->truncate(file) : 0;
}

/* Opens a file, for file_open() and the system calls. */
static struct file *open_at(const struct path *base, const char *path, u32 flags, u32 mode)
{
	struct path found;
	bool created = false;
	struct file *file;
	int error;

	if (flags & O_PATH)
		flags &= OPEN_PATH;
	if (flags & O_TMPFILE_ONLY) {
		if (!(flags & O_DIRECTORY) || !(wanted(flags) & MAY_WRITE))
			return ERR_PTR(-EINVAL);
		flags &= ~O_DIRECTORY;
		created = true;
	}
	if (flags & OPEN_UNSUPPORTED || (flags & O_CREAT && (flags & O_DIRECTORY || created)))
		return ERR_PTR(-EINVAL);
	error = created ? create_unnamed(base, path, flags, mode, &found) :
			  find_to_open(base, path, flags, mode, &found, &created);
	if (error)
		return ERR_PTR(error);
	error = check(&found, flags, created);
	if (error) {
		file = ERR_PTR(error);
		goto out_release;
	}
	file = open_path(&found, flags);
	if (!IS_ERR(file) && flags & O_TRUNC && S_ISREG(found.inode->mode))
		error = truncate_opened(file);
	if (error) {
		file_put(file);
		file = ERR_PTR(error);
	}
out_release:
	path_put(&found);
	return file;
}

/* Kernel threads have no working directory: for them, all paths start at the root. */
struct file *file_open(const char *path, u32 flags, u32 mode)
{
	struct path base;
	struct file *file;

	if (*path == '/' || !current || !current->proc || !current->proc->fs)
		return open_at(&root_path, path, flags, mode);
	base = cwd_get();
	file = open_at(&base, path, flags, mode);
	path_put(&base);
	return file;
}

static long open_fd(int dirfd, const char __user *user_path, u32 flags, u32 mode)
{
	struct path base;
	struct file *file;
	char *path;
	long fd;

	path = path_from_user(user_path);
	if (IS_ERR(path))
		return PTR_ERR(path);
	fd = path_base(dirfd, path, &base);
	if (fd)
		goto out_free;
	file = open_at(&base, path, flags, mode & ~fs_umask());
	path_put(&base);
	fd = IS_ERR(file) ? PTR_ERR(file) : fd_install_or_put(file, flags & O_CLOEXEC);
out_free:
	kfree(path);
	return fd;
}

SYSCALL_DEFINE3(open, const char __user *, filename, u32, flags, u32, mode)
{
	return open_fd(AT_FDCWD, filename, flags, mode);
}

SYSCALL_DEFINE4(openat, int, dfd, const char __user *, filename, u32, flags, u32, mode)
{
	return open_fd(dfd, filename, flags, mode);
}

SYSCALL_DEFINE2(creat, const char __user *, path, u32, mode)
{
	return open_fd(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

SYSCALL_DEFINE2(truncate, const char __user *, user_path, s64, size_bytes)
{
	struct path path;
	long error;

	if (size_bytes < 0)
		return -EINVAL;
	error = path_find_user(AT_FDCWD, user_path, 0, &path);
	if (error)
		return error;
	error = -EINVAL;
	if (S_ISDIR(path.inode->mode))
		error = -EISDIR;
	else if (S_ISREG(path.inode->mode) && !path.inode->file_ops)
		error = inode_permission(path.inode, MAY_WRITE) ?:
				truncate_inode(path.inode, size_bytes);
	path_put(&path);
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
	if (file_may_write(file) && file_is_regular(file) && !file->ops)
		error = truncate_inode(file->inode, size_bytes);
	file_put(file);
	return error;
}

/* Supports only mode 0: afterwards the range has space, and the file is at least that long. */
SYSCALL_DEFINE4(fallocate, int, fd, int, mode, s64, pos, s64, n)
{
	struct file *file;
	long error;

	if (mode)
		return -EOPNOTSUPP;
	if (pos < 0 || n <= 0)
		return -EINVAL;
	if (pos > INT64_MAX - n)
		return -EFBIG;
	file = fd_get(fd);
	if (!file)
		return -EBADF;
	error = -EBADF;
	if (!file_may_write(file))
		goto out_put;
	error = file_is_pipe(file) ? -ESPIPE : -ENODEV;
	if (!file_is_regular(file) || file->ops)
		goto out_put;
	mutex_lock(&file->inode->write_lock);
	error = inode_limit_size(file->inode, max((u64)(pos + n), file->inode->size_bytes));
	if (!error)
		error = inode_allocate(file->inode, pos, n);
	mutex_unlock(&file->inode->write_lock);
out_put:
	file_put(file);
	return error;
}
