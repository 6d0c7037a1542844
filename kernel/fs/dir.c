// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* System calls that change the tree of names or read it: directories and symbolic links. */

static const char proc_self_exe[] = "/proc/self/exe";

SYSCALL_DEFINE2(mkdir, const char __user *, user_path, u32, mode)
{
	char *path = path_from_user(user_path);
	struct inode *base, *inode;
	struct walk walk;
	long error;

	if (IS_ERR(path))
		return PTR_ERR(path);
	base = cwd_get();
	mutex_lock(&tree_lock);
	error = path_walk(base, path, WALK_NOFOLLOW, &walk);
	if (!error && walk.inode)
		error = -EEXIST;
	if (!error) {
		inode = tree_create(walk.parent, walk.name, S_IFDIR | (mode & 01777));
		error = IS_ERR(inode) ? PTR_ERR(inode) : 0;
	}
	mutex_unlock(&tree_lock);
	inode_put(base);
	kfree(path);
	return error;
}

static long remove_check(const struct walk *walk, bool directory)
{
	const struct inode *inode = walk->inode;

	if (!inode)
		return -ENOENT;
	if (!directory)
		return S_ISDIR(inode->mode) ? -EISDIR : 0;
	if (!S_ISDIR(inode->mode))
		return -ENOTDIR;
	if (inode == root_inode)
		return -EBUSY;
	if (inode->removed)
		return -ENOENT;
	if (!strcmp(walk->name, "."))
		return -EINVAL;
	return list_empty(&inode->children) && strcmp(walk->name, "..") ? 0 : -ENOTEMPTY;
}

static long remove(const char __user *user_path, bool directory)
{
	char *path = path_from_user(user_path);
	struct inode *base;
	struct walk walk;
	long error;

	if (IS_ERR(path))
		return PTR_ERR(path);
	base = cwd_get();
	mutex_lock(&tree_lock);
	error = path_walk(base, path, WALK_NOFOLLOW, &walk);
	if (!error)
		error = remove_check(&walk, directory);
	if (!error)
		tree_remove(walk.inode);
	mutex_unlock(&tree_lock);
	inode_put(base);
	kfree(path);
	return error;
}

SYSCALL_DEFINE1(unlink, const char __user *, path)
{
	return remove(path, false);
}

SYSCALL_DEFINE1(rmdir, const char __user *, path)
{
	return remove(path, true);
}

SYSCALL_DEFINE1(chdir, const char __user *, path)
{
	struct inode *inode = path_get_user(AT_FDCWD, path, 0);

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (!S_ISDIR(inode->mode)) {
		inode_put(inode);
		return -ENOTDIR;
	}
	cwd_set(inode);
	return 0;
}

/*
 * Write the path of a directory to the end of buf. Its start, or NULL when there is none or no
 * room.
 */
static char *write_path(struct inode *dir, char *buf, size_t size)
{
	char *p = buf + size - 1;

	*p = '\0';
	if (dir == root_inode)
		*--p = '/';
	for (; dir != root_inode; dir = dir->parent) {
		size_t len = strlen(dir->name);

		if (dir->removed || (size_t)(p - buf) < len + 1)
			return NULL;
		p -= len;
		memcpy(p, dir->name, len);
		*--p = '/';
	}
	return p;
}

/* Linux's call returns the length with the NUL. */
SYSCALL_DEFINE2(getcwd, char __user *, user_buf, size_t, size)
{
	char *buf = kmalloc(PATH_MAX), *path;
	struct inode *dir;
	long ret;

	if (!buf)
		return -ENOMEM;
	dir = cwd_get();
	mutex_lock(&tree_lock);
	path = write_path(dir, buf, PATH_MAX);
	mutex_unlock(&tree_lock);
	inode_put(dir);

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

static long copy_link(const char *text, char __user *buf, int size)
{
	size_t n = min(strlen(text), (size_t)size);

	return copy_to_user(buf, text, n) ? -EFAULT : (long)n;
}

/* There is no /proc, but C libraries ask for this one link. */
static bool is_proc_self_exe(const char __user *user_path)
{
	char path[sizeof(proc_self_exe)];
	ssize_t len = strncpy_from_user(path, user_path, sizeof(path));

	return len == sizeof(path) - 1 && !strcmp(path, proc_self_exe) && current->proc->exe_path;
}

static long read_link(int dirfd, const char __user *path, char __user *buf, int size)
{
	struct inode *inode;
	long ret = -EINVAL;

	if (size <= 0)
		return -EINVAL;
	if (is_proc_self_exe(path))
		return copy_link(current->proc->exe_path, buf, size);
	inode = path_get_user(dirfd, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (S_ISLNK(inode->mode))
		ret = copy_link(inode->target, buf, size);
	inode_put(inode);
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

/* Linux's struct linux_dirent64, before the name. */
struct dirent {
	u64 number;
	s64 next;
	u16 len;
	u8 type;
} __packed;

#define DIRENT_BYTES 19

/*
 * Positions in a directory: 0 and 1 are "." and "..", others the number of the first inode to be
 * listed. So entries that come and go in between do no harm.
 */
static struct inode *entry_at(struct inode *dir, u64 pos, const char **name)
{
	struct inode *child;

	if (pos < 2) {
		*name = pos ? ".." : ".";
		return pos ? dir->parent : dir;
	}
	list_for_each_entry(child, &dir->children, sibling) {
		if (child->number >= pos) {
			*name = child->name;
			return child;
		}
	}
	return NULL;
}

/* Put one entry at buf. Its size, 0 when there is no more, or a negative errno. tree_lock held. */
static long fill_entry(struct inode *dir, u64 *pos, char *buf, size_t room)
{
	struct dirent entry;
	struct inode *inode;
	const char *name;
	size_t name_len;

	if (dir->removed)
		return -ENOENT;
	inode = entry_at(dir, *pos, &name);
	if (!inode)
		return 0;
	name_len = strlen(name);
	entry.number = inode->number;
	entry.next = *pos < 2 ? *pos + 1 : inode->number + 1;
	entry.len = ALIGN_UP(DIRENT_BYTES + name_len + 1, 8);
	entry.type = inode->mode >> 12; /* DT_* are the bits of S_IF* */
	if (entry.len > room)
		return -EINVAL;
	memset(buf, 0, entry.len);
	memcpy(buf, &entry, DIRENT_BYTES);
	memcpy(buf + DIRENT_BYTES, name, name_len);
	*pos = entry.next;
	return entry.len;
}

static long read_entries(struct file *file, char __user *user_buf, size_t size)
{
	char *buf = kmalloc(PAGE_SIZE);
	size_t filled = 0;
	long len = 0;
	u64 pos;

	if (!buf)
		return -ENOMEM;
	size = min(size, (size_t)PAGE_SIZE);
	mutex_lock(&file->pos_lock);
	pos = file->pos;
	mutex_lock(&tree_lock);
	while ((len = fill_entry(file->inode, &pos, buf + filled, size - filled)) > 0)
		filled += len;
	mutex_unlock(&tree_lock);
	if (filled)
		len = copy_to_user(user_buf, buf, filled) ? -EFAULT : (long)filled;
	if (len > 0)
		file->pos = pos;
	mutex_unlock(&file->pos_lock);
	kfree(buf);
	return len;
}

SYSCALL_DEFINE3(getdents64, int, fd, void __user *, buf, unsigned int, size)
{
	struct file *file = fd_get(fd);
	long ret = -ENOTDIR;

	if (!file)
		return -EBADF;
	if (S_ISDIR(file->inode->mode))
		ret = read_entries(file, buf, size);
	file_put(file);
	return ret;
}
