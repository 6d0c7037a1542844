// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that make, remove and change names. In all of them, the path leads to a name in a
 * directory, and no link or mount is followed from there.
 */

#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/files_out.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>

struct name_call {
	char *path;
	struct path base;
	struct walk walk;
};

/*
 * Begins a call: finds the directory that the path is relative to. Takes over the path. Returns 0,
 * or a negative errno with everything freed.
 */
static int begin_name(struct name_call *call, int dirfd, char *path)
{
	int error;

	call->path = path;
	error = *call->path ? path_base(dirfd, call->path, &call->base) : -ENOENT;
	if (error)
		kfree(call->path);
	call->walk.pinned = (struct path){ 0 };
	return error;
}

static int copy_name(struct name_call *call, int dirfd, const char __user *user_path)
{
	char *path = path_from_user(user_path);

	return IS_ERR(path) ? (int)PTR_ERR(path) : begin_name(call, dirfd, path);
}

static int find_name(struct name_call *call)
{
	ASSERT_HELD(&tree_lock);
	return path_walk(&call->base, call->path, WALK_NAME, &call->walk);
}

static void drop_name(struct name_call *call)
{
	path_walk_end(&call->walk);
	path_put(&call->base);
	kfree(call->path);
}

/* Returns 0 if the name can be made. */
static int check_new(const struct walk *walk, bool directory)
{
	if (!walk_has_name(walk) || walk->entry)
		return -EEXIST;
	if (walk->wants_directory && !directory)
		return -ENOENT;
	return path_is_fixed(&walk->parent) ? -ENOENT : tree_may_create(walk->parent.inode);
}

/*
 * A symbolic link with a longer target takes a page of the file system's space, as in tmpfs. It is
 * freed with the inode's other pages.
 */
#define SHORT_TARGET 128

static int set_target(struct inode *inode, char *target)
{
	size_t len = strlen(target);

	if (len >= SHORT_TARGET) {
		if (!space_charge(inode, PAGE_SIZE, false))
			return -ENOSPC;
		inode->nr_pages = 1;
	}
	inode->target = target;
	inode->size_bytes = len;
	return 0;
}

/*
 * Makes an inode of this mode. target, of a symbolic link, passes to the inode; rdev is for a
 * device. If made is not NULL, stores the inode there with a reference. Drops the name.
 */
static int make_named(struct name_call *call, u32 mode, u32 rdev, char *target, struct inode **made)
{
	struct inode *inode;
	int error;

	tree_lock_write();
	error = find_name(call);
	if (!error)
		error = check_new(&call->walk, S_ISDIR(mode));
	if (!error && (S_ISCHR(mode) || S_ISBLK(mode)) && !fs_is_root())
		error = -EPERM;
	if (error)
		goto out_unlock;
	inode = tree_create(call->walk.parent.inode, call->walk.name, mode);
	error = IS_ERR(inode) ? (int)PTR_ERR(inode) : 0;
	if (error)
		goto out_unlock;
	if (S_ISFIFO(mode))
		error = pipe_attach(inode);
	else if (target)
		error = set_target(inode, target);
	if (error) {
		tree_remove(inode);
		goto out_unlock;
	}
	inode->rdev = rdev;
	if (S_ISCHR(mode))
		inode->device = device_find(rdev);
	if (made)
		*made = inode_get(inode);
	target = NULL;
out_unlock:
	tree_unlock();
	drop_name(call);
	kfree(target);
	return error;
}

static long make_name(int dirfd, const char __user *user_path, u32 mode, u32 rdev, char *target)
{
	struct name_call call;
	int error = copy_name(&call, dirfd, user_path);

	if (!error)
		return make_named(&call, mode, rdev, target, NULL);
	kfree(target);
	return error;
}

int name_make_socket(const char *path, struct inode **inode)
{
	struct name_call call;
	char *copy = kstrdup(path);
	int error = copy ? begin_name(&call, AT_FDCWD, copy) : -ENOMEM;

	return error ?: make_named(&call, S_IFSOCK | (0777 & ~fs_umask()), 0, NULL, inode);
}

SYSCALL_DEFINE2(mkdir, const char __user *, path, u32, mode)
{
	return make_name(AT_FDCWD, path, S_IFDIR | (mode & 01777 & ~fs_umask()), 0, NULL);
}

SYSCALL_DEFINE3(mkdirat, int, dirfd, const char __user *, path, u32, mode)
{
	return make_name(dirfd, path, S_IFDIR | (mode & 01777 & ~fs_umask()), 0, NULL);
}

static long make_node(int dirfd, const char __user *path, u32 mode, u32 rdev)
{
	u32 type = mode & S_IFMT ? mode & S_IFMT : S_IFREG;

	if (S_ISDIR(type))
		return -EPERM;
	if (!S_ISREG(type) && !S_ISCHR(type) && !S_ISBLK(type) && !S_ISFIFO(type) &&
	    type != S_IFSOCK)
		return -EINVAL;
	if (!S_ISCHR(type) && !S_ISBLK(type))
		rdev = 0;
	return make_name(dirfd, path, type | (mode & 07777 & ~fs_umask()), rdev, NULL);
}

SYSCALL_DEFINE3(mknod, const char __user *, path, u32, mode, u32, rdev)
{
	return make_node(AT_FDCWD, path, mode, rdev);
}

SYSCALL_DEFINE4(mknodat, int, dirfd, const char __user *, path, u32, mode, u32, rdev)
{
	return make_node(dirfd, path, mode, rdev);
}

static long make_symlink(const char __user *user_target, int dirfd, const char __user *path)
{
	char *text = path_from_user(user_target), *target;

	if (IS_ERR(text))
		return PTR_ERR(text);
	target = *text ? kstrdup(text) : ERR_PTR(-ENOENT);
	kfree(text);
	if (IS_ERR(target))
		return PTR_ERR(target);
	return target ? make_name(dirfd, path, S_IFLNK | 0777, 0, target) : -ENOMEM;
}

SYSCALL_DEFINE2(symlink, const char __user *, target, const char __user *, path)
{
	return make_symlink(target, AT_FDCWD, path);
}

SYSCALL_DEFINE3(symlinkat, const char __user *, target, int, dirfd, const char __user *, path)
{
	return make_symlink(target, dirfd, path);
}

static int link_at(struct name_call *call, const struct path *old)
{
	const struct walk *walk = &call->walk;
	int error = find_name(call);

	if (error)
		return error;
	if (!walk_has_name(walk) || walk->entry)
		return -EEXIST;
	if (walk->parent.mount != old->mount)
		return -EXDEV;
	error = tree_may_link(old->inode) ?: check_new(walk, false);
	if (error)
		return error;
	if (S_ISDIR(old->inode->mode))
		return -EPERM;
	if (!tree_nr_links(old->inode) && !old->inode->may_get_name)
		return -ENOENT;
	error = tree_link(walk->parent.inode, walk->name, old->inode);
	if (!error)
		files_out_add(walk->parent.mount,
			      tree_find(walk->parent.inode, walk->name, strlen(walk->name)));
	return error;
}

static long make_link(int old_dirfd, const char __user *old_path, int dirfd,
		      const char __user *path, int flags)
{
	struct name_call call;
	struct path old;
	long error;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (flags & AT_EMPTY_PATH && !fs_is_root())
		return -ENOENT;
	if (!(flags & AT_SYMLINK_FOLLOW))
		flags |= AT_SYMLINK_NOFOLLOW;
	error = path_find_user(old_dirfd, old_path, flags, &old);
	if (error)
		return error;
	error = copy_name(&call, dirfd, path);
	if (error)
		goto out_release;
	tree_lock_write();
	error = link_at(&call, &old);
	tree_unlock();
	drop_name(&call);
out_release:
	path_put(&old);
	return error;
}

SYSCALL_DEFINE2(link, const char __user *, old_path, const char __user *, path)
{
	return make_link(AT_FDCWD, old_path, AT_FDCWD, path, 0);
}

SYSCALL_DEFINE5(linkat, int, old_dirfd, const char __user *, old_path, int, dirfd,
		const char __user *, path, int, flags)
{
	return make_link(old_dirfd, old_path, dirfd, path, flags);
}

/* Returns an error if unlink() cannot remove the name. */
static int check_unlink(const struct walk *walk)
{
	int error;

	if (!walk_has_name(walk))
		return -EISDIR;
	if (!walk->entry)
		return -ENOENT;
	if (walk->wants_directory)
		return S_ISDIR(walk->entry->mode) ? -EISDIR : -ENOTDIR;
	error = tree_may_remove(walk->parent.inode, walk->entry);
	if (error)
		return error;
	return S_ISDIR(walk->entry->mode) ? -EISDIR : 0;
}

static int check_rmdir(const struct walk *walk)
{
	int error;

	if (!strcmp(walk->name, ".."))
		return -ENOTEMPTY;
	if (!strcmp(walk->name, "."))
		return -EINVAL;
	if (!walk_has_name(walk))
		return -EBUSY;
	if (!walk->entry)
		return -ENOENT;
	error = tree_may_remove(walk->parent.inode, walk->entry);
	if (error)
		return error;
	if (!S_ISDIR(walk->entry->mode))
		return -ENOTDIR;
	if (walk->entry->nr_mounts)
		return -EBUSY;
	tree_populate(walk->entry);
	return path_is_fixed(&walk->parent) || list_empty(&walk->entry->children) ? 0 : -ENOTEMPTY;
}

static long remove_name(int dirfd, const char __user *path, bool directory)
{
	struct name_call call;
	long error = copy_name(&call, dirfd, path);

	if (error)
		return error;
	tree_lock_write();
	error = find_name(&call);
	if (!error)
		error = directory ? check_rmdir(&call.walk) : check_unlink(&call.walk);
	if (!error && path_is_fixed(&call.walk.parent))
		error = -EPERM;
	if (!error)
		tree_remove(call.walk.entry);
	tree_unlock();
	drop_name(&call);
	return error;
}

SYSCALL_DEFINE1(unlink, const char __user *, path)
{
	return remove_name(AT_FDCWD, path, false);
}

SYSCALL_DEFINE1(rmdir, const char __user *, path)
{
	return remove_name(AT_FDCWD, path, true);
}

SYSCALL_DEFINE3(unlinkat, int, dirfd, const char __user *, path, int, flags)
{
	if (flags & ~AT_REMOVEDIR)
		return -EINVAL;
	return remove_name(dirfd, path, flags & AT_REMOVEDIR);
}

#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE	 2

/* Checks the rules for the two names. */
static int check_rename_names(const struct walk *old, const struct walk *new, u32 flags)
{
	const struct inode *target;

	if (old->parent.mount != new->parent.mount)
		return -EXDEV;
	if (!walk_has_name(old))
		return -EBUSY;
	if (!walk_has_name(new))
		return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	if (!old->entry)
		return -ENOENT;
	if (flags & RENAME_NOREPLACE && new->entry)
		return -EEXIST;
	if (flags & RENAME_EXCHANGE && !new->entry)
		return -ENOENT;
	/* A name that ends with a slash is a directory's; an exchange gives each its own. */
	target = flags & RENAME_EXCHANGE ? new->entry : old->entry;
	if (!S_ISDIR(old->entry->mode) && old->wants_directory)
		return -ENOTDIR;
	if (!S_ISDIR(target->mode) && new->wants_directory)
		return -ENOTDIR;
	if (tree_is_at_or_below(new->parent.inode, old->entry))
		return -EINVAL;
	if (new->entry &&new->entry != old->entry &&
	    tree_is_at_or_below(old->parent.inode, new->entry))
		return flags & RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
	return path_is_fixed(&old->parent) || path_is_fixed(&new->parent) ? -EPERM : 0;
}

/* Checks the rules for the inode that is replaced. */
static int check_replaced(const struct inode *old, const struct inode *new)
{
	if (S_ISDIR(old->mode) && !S_ISDIR(new->mode))
		return -ENOTDIR;
	if (!S_ISDIR(old->mode) && S_ISDIR(new->mode))
		return -EISDIR;
	if (new->nr_mounts)
		return -EBUSY;
	return list_empty(&new->children) ? 0 : -ENOTEMPTY;
}

/* Checks permissions. Moving a directory changes its "..", so it must be writable. */
static int check_rename_permission(const struct walk *old, const struct walk *new, u32 flags)
{
	struct inode *from = old->parent.inode, *to = new->parent.inode;
	int error = tree_may_remove(from, old->entry);

	if (!error)
		error = new->entry ? tree_may_remove(to, new->entry) : tree_may_create(to);
	if (!error && S_ISDIR(old->entry->mode) && from != to)
		error = inode_permission(old->entry, MAY_WRITE);
	if (!error && flags & RENAME_EXCHANGE && S_ISDIR(new->entry->mode) && from != to)
		error = inode_permission(new->entry, MAY_WRITE);
	return error;
}

static int rename_at(struct name_call *old, struct name_call *new, u32 flags)
{
	struct inode *entry, *replaced;
	int error = find_name(old);

	if (!error)
		error = find_name(new);
	if (!error)
		error = check_rename_names(&old->walk, &new->walk, flags);
	if (error)
		return error;
	entry = old->walk.entry;
	replaced = new->walk.entry;
	if (entry_inode(entry) == entry_inode(replaced))
		return 0;
	error = check_rename_permission(&old->walk, &new->walk, flags);
	if (error)
		return error;
	if (new->walk.parent.inode->removed)
		return -ENOENT;
	if (flags & RENAME_EXCHANGE) {
		if (entry->nr_mounts || replaced->nr_mounts)
			return -EBUSY;
		tree_exchange(entry, replaced);
		return 0;
	}
	if (replaced)
		error = check_replaced(entry, replaced);
	if (!error && entry->nr_mounts)
		error = -EBUSY;
	if (error)
		return error;
	if (!replaced)
		return tree_move(entry, new->walk.parent.inode, new->walk.name);

	/* No one can see that the new name is missing in between, because tree_lock is held. */
	inode_get(replaced);
	error = tree_move(entry, new->walk.parent.inode, new->walk.name);
	if (!error)
		tree_remove(replaced);
	inode_put(replaced);
	return error;
}

static long rename_path(int old_dirfd, const char __user *old_path, int dirfd,
			const char __user *path, u32 flags)
{
	struct name_call old, new;
	long error;

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE) ||
	    flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	error = copy_name(&old, old_dirfd, old_path);
	if (error)
		return error;
	error = copy_name(&new, dirfd, path);
	if (error)
		goto out_drop;
	tree_lock_write();
	error = rename_at(&old, &new, flags);
	if (!error)
		files_out_add(new.walk.parent.mount, old.walk.entry);
	if (!error && flags & RENAME_EXCHANGE)
		files_out_add(old.walk.parent.mount, new.walk.entry);
	tree_unlock();
	drop_name(&new);
out_drop:
	drop_name(&old);
	return error;
}

SYSCALL_DEFINE2(rename, const char __user *, old_path, const char __user *, path)
{
	return rename_path(AT_FDCWD, old_path, AT_FDCWD, path, 0);
}

SYSCALL_DEFINE4(renameat, int, old_dirfd, const char __user *, old_path, int, dirfd,
		const char __user *, path)
{
	return rename_path(old_dirfd, old_path, dirfd, path, 0);
}

SYSCALL_DEFINE5(renameat2, int, old_dirfd, const char __user *, old_path, int, dirfd,
		const char __user *, path, u32, flags)
{
	return rename_path(old_dirfd, old_path, dirfd, path, flags);
}
