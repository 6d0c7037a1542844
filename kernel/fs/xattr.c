// SPDX-License-Identifier: BSD-2-Clause
/*
 * Extended attributes (xattr(7)): no file here has any, and none can be set. The calls still find
 * the file and check their arguments, because programs distinguish "not supported" from other
 * errors. As in Linux from 6.13 on, a wrong argument is reported before a missing file.
 */
#include "path.h"

#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define NAME_BYTES	256 /* of an attribute's name, with the NUL */
#define VALUE_MAX_BYTES 65536
#define XATTR_CREATE	1
#define XATTR_REPLACE	2

/* Checks the name of an attribute. Returns 0, -EFAULT, or -ERANGE if it is empty or too long. */
static long check_name(const char __user *user)
{
	char name[NAME_BYTES];
	ssize_t len = strncpy_from_user(name, user, sizeof(name));

	if (!len || len == -ENAMETOOLONG)
		return -ERANGE;
	return len < 0 ? len : 0;
}

/* Checks the arguments. Returns 0 if they are valid. */
static long check_value(const char __user *name, const void __user *value, size_t size, int flags)
{
	long error = check_name(name);
	char *copy;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (error || !size)
		return error;
	if (size > VALUE_MAX_BYTES)
		return -E2BIG;
	copy = kmalloc(size);
	if (!copy)
		return -ENOMEM;
	error = copy_from_user(copy, value, size);
	kfree(copy);
	return error;
}

/* Looks for the file. Returns 0 if it exists. */
static long find_path(const char __user *user_path, int at_flags)
{
	struct path path;
	long error = path_find_user(AT_FDCWD, user_path, at_flags, &path);

	if (!error)
		path_put(&path);
	return error;
}

static long find_open(int fd)
{
	struct file *file = fd_get(fd);

	if (!file)
		return -EBADF;
	file_put(file);
	return 0;
}

SYSCALL_DEFINE5(setxattr, const char __user *, path, const char __user *, name, const void __user *,
		value, size_t, size, int, flags)
{
	return check_value(name, value, size, flags) ?: find_path(path, 0) ?: -EOPNOTSUPP;
}

SYSCALL_DEFINE5(lsetxattr, const char __user *, path, const char __user *, name,
		const void __user *, value, size_t, size, int, flags)
{
	return check_value(name, value, size, flags)	    ?:
		       find_path(path, AT_SYMLINK_NOFOLLOW) ?:
							      -EOPNOTSUPP;
}

SYSCALL_DEFINE5(fsetxattr, int, fd, const char __user *, name, const void __user *, value, size_t,
		size, int, flags)
{
	return check_value(name, value, size, flags) ?: find_open(fd) ?: -EOPNOTSUPP;
}

SYSCALL_DEFINE4(getxattr, const char __user *, path, const char __user *, name, void __user *,
		value, size_t, size)
{
	return check_name(name) ?: find_path(path, 0) ?: -EOPNOTSUPP;
}

SYSCALL_DEFINE4(lgetxattr, const char __user *, path, const char __user *, name, void __user *,
		value, size_t, size)
{
	return check_name(name) ?: find_path(path, AT_SYMLINK_NOFOLLOW) ?: -EOPNOTSUPP;
}

SYSCALL_DEFINE4(fgetxattr, int, fd, const char __user *, name, void __user *, value, size_t, size)
{
	return check_name(name) ?: find_open(fd) ?: -EOPNOTSUPP;
}

/* Returns 0: the list of names is empty. */
SYSCALL_DEFINE3(listxattr, const char __user *, path, char __user *, list, size_t, size)
{
	return find_path(path, 0);
}

SYSCALL_DEFINE3(llistxattr, const char __user *, path, char __user *, list, size_t, size)
{
	return find_path(path, AT_SYMLINK_NOFOLLOW);
}

SYSCALL_DEFINE3(flistxattr, int, fd, char __user *, list, size_t, size)
{
	return find_open(fd);
}

SYSCALL_DEFINE2(removexattr, const char __user *, path, const char __user *, name)
{
	return check_name(name) ?: find_path(path, 0) ?: -EOPNOTSUPP;
}

SYSCALL_DEFINE2(lremovexattr, const char __user *, path, const char __user *, name)
{
	return check_name(name) ?: find_path(path, AT_SYMLINK_NOFOLLOW) ?: -EOPNOTSUPP;
}

SYSCALL_DEFINE2(fremovexattr, int, fd, const char __user *, name)
{
	return check_name(name) ?: find_open(fd) ?: -EOPNOTSUPP;
}
