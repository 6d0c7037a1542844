// SPDX-License-Identifier: BSD-2-Clause
/*
 * mount(2) and umount2(2): file systems without a device, each as a tree of its own. nosuid, nodev
 * and noexec are enforced. Flags for times and synchronous writing are accepted, because nothing is
 * saved. Other flags, such as read-only, bind and remount, are refused, and so are options.
 */

#include "mount.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>

#define MS_MAGIC_MASK 0xffff0000UL
#define MS_MAGIC      0xc0ed0000UL
#define MOUNT_FLAGS   (MOUNT_NOSUID | MOUNT_NODEV | MOUNT_NOEXEC)
#define MS_ACCEPTED                                                                 \
	(MOUNT_FLAGS | 0x10 /* sync */ | 0x80 /* dirsync */ | 0x400 /* noatime */ | \
	 0x800 /* nodiratime */ | 0x8000 /* silent */ | 0x200000 /* relatime */ |   \
	 0x1000000 /* strictatime */ | 0x2000000 /* lazytime */)

#define MNT_FORCE	1 /* no effect: it is for network file systems */
#define MNT_DETACH	2
#define UMOUNT_NOFOLLOW 8

/* Copies a string, or returns `none` if it is NULL; ERR_PTR on failure. */
static char *string_from_user(const char __user *string, const char *none)
{
	char *copy;

	if (string)
		return path_from_user(string);
	copy = kstrdup(none);
	return copy ? copy : ERR_PTR(-ENOMEM);
}

static int mount_strings(const char *source, const char __user *user_target, const char *type,
			 u32 flags, const char *options)
{
	struct path at;
	int error;

	if (*options)
		return -EINVAL;
	error = path_find_user(AT_FDCWD, user_target, 0, &at);
	if (error)
		return error;
	tree_lock_write();
	error = mount_attach(type, &at, source, flags);
	tree_unlock();
	path_put(&at);
	return error;
}

SYSCALL_DEFINE5(mount, const char __user *, user_source, const char __user *, target,
		const char __user *, user_type, unsigned long, flags, const char __user *,
		user_options)
{
	char *source, *type, *options;
	int error = -EFAULT;

	if (current->proc->creds.euid)
		return -EPERM;
	if ((flags & MS_MAGIC_MASK) == MS_MAGIC)
		flags &= ~MS_MAGIC_MASK;
	if (flags & ~MS_ACCEPTED || !user_type)
		return -EINVAL;
	source = string_from_user(user_source, "none");
	type = string_from_user(user_type, "");
	options = string_from_user(user_options, "");
	if (IS_ERR(source))
		error = (int)PTR_ERR(source);
	else if (IS_ERR(type))
		error = (int)PTR_ERR(type);
	else if (IS_ERR(options))
		error = (int)PTR_ERR(options);
	else
		error = mount_strings(source, target, type, flags & MOUNT_FLAGS, options);
	if (!IS_ERR(source))
		kfree(source);
	if (!IS_ERR(type))
		kfree(type);
	if (!IS_ERR(options))
		kfree(options);
	return error;
}

SYSCALL_DEFINE2(umount2, const char __user *, target, int, flags)
{
	LIST_HEAD(detached);
	struct path at;
	int error;

	if (flags & ~(MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW))
		return -EINVAL;
	if (current->proc->creds.euid)
		return -EPERM;
	error = path_find_user(AT_FDCWD, target, flags & UMOUNT_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0,
			       &at);
	if (error)
		return error;
	error = -EINVAL;
	if (at.inode == at.mount->fs->root) {
		tree_lock_write();
		error = mount_detach(at.mount, flags & MNT_DETACH, &detached);
		tree_unlock();
	}
	path_put(&at);
	mount_drop_detached(&detached);
	return error;
}
