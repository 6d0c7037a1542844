// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/uaccess.h>

/*
 * Paths, one component after the other. A symbolic link is replaced by its target in a new copy
 * of what is left of the path.
 */

#define MAX_LINKS 40

static const char *skip_slashes(const char *p)
{
	while (*p == '/')
		p++;
	return p;
}

static size_t component_bytes(const char *p)
{
	size_t n = 0;

	while (p[n] && p[n] != '/')
		n++;
	return n;
}

static struct inode *step(struct inode *dir, const char *name, size_t len)
{
	if (len == 1 && name[0] == '.')
		return dir;
	if (len == 2 && name[0] == '.' && name[1] == '.')
		return dir->parent;
	return tree_find(dir, name, len);
}

/* *path becomes target/rest in new memory; *memory, the old one, is freed. */
static int expand_link(const char *target, const char *rest, const char **path, char **memory)
{
	size_t target_len = strlen(target), rest_len = strlen(rest);
	char *joined;

	if (target_len + rest_len >= PATH_MAX)
		return -ENAMETOOLONG;
	joined = kmalloc(target_len + rest_len + 1);
	if (!joined)
		return -ENOMEM;
	memcpy(joined, target, target_len);
	memcpy(joined + target_len, rest, rest_len + 1); /* rest starts with its slash */
	kfree(*memory);
	*memory = joined;
	*path = joined;
	return 0;
}

static int walk_components(struct inode *dir, const char *p, unsigned int flags, struct walk *walk,
			   char **memory)
{
	unsigned int nr_links = 0;
	int error;

	if (*p == '/')
		dir = root_inode;
	for (;;) {
		struct inode *child;
		const char *rest;
		size_t len;
		bool last;

		p = skip_slashes(p);
		len = component_bytes(p);
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		if (!S_ISDIR(dir->mode))
			return -ENOTDIR;

		rest = p + len;
		last = !*skip_slashes(rest);
		child = len ? step(dir, p, len) : dir;
		if (child && S_ISLNK(child->mode) && !(last && !*rest && flags & WALK_NOFOLLOW)) {
			if (++nr_links > MAX_LINKS)
				return -ELOOP;
			error = expand_link(child->target, rest, &p, memory);
			if (error)
				return error;
			if (*p == '/')
				dir = root_inode;
			continue;
		}
		if (last) {
			walk->parent = dir;
			walk->inode = child;
			memcpy(walk->name, p, len);
			walk->name[len] = '\0';
			walk->wants_directory = *rest == '/';
			if (child && walk->wants_directory && !S_ISDIR(child->mode))
				return -ENOTDIR;
			return 0;
		}
		if (!child)
			return -ENOENT;
		dir = child;
		p = rest;
	}
}

int path_walk(struct inode *base, const char *path, unsigned int flags, struct walk *walk)
{
	char *memory = NULL;
	int error;

	if (!*path)
		return -ENOENT;
	error = walk_components(base, path, flags, walk, &memory);
	kfree(memory);
	return error;
}

struct inode *path_get(struct inode *base, const char *path, unsigned int flags)
{
	struct inode *inode;
	struct walk walk;
	int error;

	mutex_lock(&tree_lock);
	error = path_walk(base, path, flags, &walk);
	if (error)
		inode = ERR_PTR(error);
	else if (!walk.inode)
		inode = ERR_PTR(-ENOENT);
	else
		inode = inode_get(walk.inode);
	mutex_unlock(&tree_lock);
	return inode;
}

struct inode *path_base(int dirfd, const char *path)
{
	struct inode *inode;
	struct file *file;

	if (*path == '/')
		return inode_get(root_inode);
	if (dirfd == AT_FDCWD)
		return cwd_get();
	file = fd_get(dirfd);
	if (!file)
		return ERR_PTR(-EBADF);
	inode = S_ISDIR(file->inode->mode) ? inode_get(file->inode) : ERR_PTR(-ENOTDIR);
	file_put(file);
	return inode;
}

char *path_from_user(const char __user *path)
{
	char *copy = kmalloc(PATH_MAX);
	ssize_t len;

	if (!copy)
		return ERR_PTR(-ENOMEM);
	len = strncpy_from_user(copy, path, PATH_MAX);
	if (len < 0) {
		kfree(copy);
		return ERR_PTR(len);
	}
	return copy;
}

/* What an empty path with AT_EMPTY_PATH stands for. */
static struct inode *inode_of_fd(int fd)
{
	struct inode *inode;
	struct file *file;

	if (fd == AT_FDCWD)
		return cwd_get();
	file = fd_get(fd);
	if (!file)
		return ERR_PTR(-EBADF);
	inode = inode_get(file->inode);
	file_put(file);
	return inode;
}

struct inode *path_get_user(int dirfd, const char __user *user_path, int at_flags)
{
	unsigned int flags = at_flags & AT_SYMLINK_NOFOLLOW ? WALK_NOFOLLOW : 0;
	struct inode *base, *inode;
	char *path;

	path = path_from_user(user_path);
	if (IS_ERR(path))
		return (void *)path;
	if (!*path && at_flags & AT_EMPTY_PATH) {
		inode = inode_of_fd(dirfd);
		goto out_free;
	}
	base = path_base(dirfd, path);
	inode = base;
	if (!IS_ERR(base)) {
		inode = path_get(base, path, flags);
		inode_put(base);
	}
out_free:
	kfree(path);
	return inode;
}
