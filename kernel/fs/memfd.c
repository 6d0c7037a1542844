// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* memfd_create(2): a file in no directory. Not offered, so EINVAL: seals and huge pages. */

#define MFD_CLOEXEC 0x01
#define MFD_EXEC    0x10 /* is the default */

#define NAME_PREFIX "/memfd:"
#define NAME_SUFFIX " (deleted)"
#define MAX_NAME    249 /* as in Linux */

SYSCALL_DEFINE2(memfd_create, const char __user *, user_name, u32, flags)
{
	char name[MAX_NAME + 1], path[sizeof(NAME_PREFIX) + MAX_NAME + sizeof(NAME_SUFFIX)];
	struct file *file;
	ssize_t len;

	if (flags & ~(MFD_CLOEXEC | MFD_EXEC))
		return -EINVAL;
	len = strncpy_from_user(name, user_name, sizeof(name));
	if (len < 0)
		return len == -ENAMETOOLONG ? -EINVAL : len;
	snprintf(path, sizeof(path), NAME_PREFIX "%s" NAME_SUFFIX, name);
	file = file_create_unnamed(path, 0777, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	file->flags |= O_LARGEFILE;
	return fd_install_or_put(file, flags & MFD_CLOEXEC);
}
