// SPDX-License-Identifier: BSD-2-Clause
/* Working directories, paths of files, and targets of symbolic links. */

#include "fd.h"
#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* Changes the working directory. Takes over the references. */
static long change_directory(struct path *path)
{
	int error = S_ISDIR(path->inode->mode) ? inode_permission(path->inode, MAY_EXEC) : -ENOTDIR;

	if (error)
		path_put(path);
	else
		cwd_set(path);
	return error;
}

SYSCALL_DEFINE1(chdir, const char __user *, user_path)
{
	struct path path;
	int error = path_find_user(AT_FDCWD, user_path, 0, &path);

	return error ? error : change_directory(&path);
}

SYSCALL_DEFINE1(fchdir, int, fd)
{
	struct path path;
	int error = fd < 0 ? -EBADF : fd_get_path(fd, &path);

	return error ? error : change_directory(&path);
}

/* Writes a slash and the name before p. Returns their start, or NULL if there is no room. */
static char *prepend_name(const struct inode *inode, const char *buf, char *p)
{
	size_t len = strlen(inode->name);

	if ((size_t)(p - buf) < len + 2)
		return NULL;
	p -= len;
	memcpy(p, inode->name, len);
	*--p = '/';
	return p;
}

/*
 * Writes the path before p; nothing for the root. Returns its start, or NULL if there is no room or
 * no path.
 */
static char *prepend_path(const struct path *path, const char *buf, char *p)
{
	const struct mount *mount = path->mount;
	const struct inode *inode = path->inode;

	ASSERT_HELD(&tree_lock);
	while (p) {
		while (inode == mount->fs->root && mount->parent && mount->attached) {
			inode = mount->mountpoint;
			mount = mount->parent;
		}
		if (!inode->parent)
			break;
		if (inode->removed)
			return NULL;
		p = prepend_name(inode, buf, p);
		inode = inode->parent;
	}
	return mount->attached ? p : NULL;
}

char *path_write(const struct path *path, char *buf, size_t size)
{
	char *p = buf + size - 1;

	*p = '\0';
	p = prepend_path(path, buf, p);
	if (p && !*p)
		*--p = '/';
	return p;
}

/* Writes the former name of a removed file, followed by Linux's mark " (deleted)". */
static char *write_removed(const struct file *file, char *buf, size_t size)
{
	static const char mark[] = " (deleted)";
	char *p = buf + size - sizeof(mark);

	memcpy(p, mark, sizeof(mark));
	p = prepend_name(file->inode, buf, p);
	return prepend_path(&(struct path){ file->mount, file->inode->parent }, buf, p);
}

const char *tree_file_path(struct file *file, char *buf, size_t size)
{
	const char *text = NULL;

	if (file->mount && file->inode->removed)
		text = write_removed(file, buf, size);
	else if (file->mount)
		text = path_write(&(struct path){ file->mount, file->inode }, buf, size);
	if (text)
		return text;
	if ((file_is_pipe(file) || S_ISSOCK(file_mode(file))) && !file->mount)
		snprintf(buf, size, "%s:[%llu]", file->inode->name,
			 (unsigned long long)file->inode->number);
	else if (!file->mount)
		snprintf(buf, size, "%s", file->inode->name);
	else
		snprintf(buf, size, "(unreachable)");
	return buf;
}

const char *file_path(struct file *file, char *buf, size_t size)
{
	const char *path;

	tree_lock_read();
	path = tree_file_path(file, buf, size);
	tree_unlock();
	return path;
}

/* Linux's call returns the length with the NUL. */
SYSCALL_DEFINE2(getcwd, char __user *, user_buf, size_t, size)
{
	char *buf = kmalloc(PATH_MAX), *path;
	struct path dir;
	long ret;

	if (!buf)
		return -ENOMEM;
	dir = cwd_get();
	tree_lock_read();
	path = path_write(&dir, buf, PATH_MAX);
	tree_unlock();
	path_put(&dir);

	ret = -ENOENT;
	if (!path)
		goto out_free;
	ret = strlen(path) + 1;
	if ((size_t)ret > size)
		ret = -ERANGE;
	else if (copy_to_user(user_buf, path, ret))
		ret = -EFAULT;
out_free:
	kfree(buf);
	return ret;
}

static long copy_text(const char *text, size_t len, char __user *buf, int size)
{
	size_t n = min(len, (size_t)size);

	return copy_to_user(buf, text, n) ? -EFAULT : (long)n;
}

static long copy_link(struct inode *inode, char __user *buf, int size)
{
	char *text = kmalloc(PATH_MAX);
	long ret;

	if (!text)
		return -ENOMEM;
	tree_lock_write();
	ret = tree_read_link(inode, text, PATH_MAX);
	tree_unlock();
	if (ret >= 0)
		ret = copy_text(text, ret, buf, size);
	kfree(text);
	return ret;
}

static long read_link(int dirfd, const char __user *path, char __user *buf, int size)
{
	struct path link;
	char first;
	long ret;

	if (size <= 0)
		return -EINVAL;
	ret = path_find_user(dirfd, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, &link);
	if (ret)
		return ret;
	if (S_ISLNK(link.inode->mode))
		ret = copy_link(link.inode, buf, size);
	else /* not found, or no symbolic link */
		ret = !get_user(first, path) && !first ? -ENOENT : -EINVAL;
	path_put(&link);
	return ret;
}

SYSCALL_DEFINE3(readlink, const char __user *, path, char __user *, buf, int, size)
{
	return read_link(AT_FDCWD, path, buf, size);
}

SYSCALL_DEFINE4(readlinkat, int, dirfd, const char __user *, path, char __user *, buf, int, size)
{
	return read_link(dirfd, path, buf, size);
}
