// SPDX-License-Identifier: BSD-2-Clause
/*
 * Path lookup, one component after the other, through mounts. To follow a symbolic link, its target
 * and the rest of the path are joined in a new buffer.
 */

#include "fd.h"
#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/profile.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/uaccess.h>

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

/* Moves from a place that is covered by mounts to the root of the last one. */
static void cross_down(struct path *path)
{
	struct mount *mount;

	while ((mount = mount_on(path)) != NULL)
		*path = (struct path){ mount, mount->fs->root };
}

static void go_up(struct path *path)
{
	while (path->inode == path->mount->fs->root && path->mount->parent && path->mount->attached)
		*path = (struct path){ path->mount->parent, path->mount->mountpoint };
	if (path->inode->parent)
		path->inode = path->inode->parent;
	cross_down(path);
}

static bool is_dot(const char *name, size_t len)
{
	return len == 1 && name[0] == '.';
}

static bool is_dot_dot(const char *name, size_t len)
{
	return len == 2 && name[0] == '.' && name[1] == '.';
}

/*
 * Returns the entry of a name in a directory; NULL: there is none, or it is "." or "..". Sets *path
 * to where it leads.
 */
static struct inode *step(struct path *path, const char *name, size_t len, bool cross)
{
	struct inode *entry = NULL;

	ASSERT_HELD(&tree_lock);
	if (is_dot_dot(name, len)) {
		go_up(path);
	} else if (len && !is_dot(name, len)) {
		tree_populate_name(path->inode, name, len);
		entry = tree_find(path->inode, name, len);
		path->inode = entry_inode(entry);
		if (entry && cross)
			cross_down(path);
	}
	return entry;
}

bool walk_has_name(const struct walk *walk)
{
	size_t len = strlen(walk->name);

	return len && !is_dot(walk->name, len) && !is_dot_dot(walk->name, len);
}

ssize_t tree_read_link(struct inode *inode, char *buf, size_t size)
{
	size_t len;

	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(!inode->ops || tree_is_writer());
	if (inode->ops && inode->ops->read_link)
		return inode->ops->read_link(inode, buf, size);
	len = min(strlen(inode->target), size);
	memcpy(buf, inode->target, len);
	return len;
}

/* Sets *path to the link's text followed by rest, in new memory. Frees *memory, the old one. */
static int expand_link(struct inode *link, const char *rest, const char **path, char **memory)
{
	size_t rest_len = strlen(rest);
	char *joined = kmalloc(PATH_MAX);
	ssize_t len;

	if (!joined)
		return -ENOMEM;
	len = tree_read_link(link, joined, PATH_MAX);
	if (len > 0 && len + rest_len >= PATH_MAX)
		len = -ENAMETOOLONG;
	if (len <= 0) {
		kfree(joined);
		return len ? (int)len : -ENOENT;
	}
	memcpy(joined + len, rest, rest_len + 1); /* rest starts with its slash */
	kfree(*memory);
	*memory = joined;
	*path = joined;
	return 0;
}

/* Goes directly to where the link leads. The reference replaces that of the previous link. */
static int follow_link(struct inode *link, struct walk *walk, struct path *to)
{
	int error = link->ops->follow(link, to);

	if (error)
		return error;
	path_walk_end(walk);
	walk->pinned = *to;
	return 0;
}

/* Returns true if the symbolic link is to be followed. */
static bool link_is_followed(const char *rest, unsigned int flags)
{
	if (*skip_slashes(rest))
		return true;
	if (flags & WALK_NAME)
		return false;
	return *rest || !(flags & WALK_NOFOLLOW);
}

static int finish_walk(const struct path *dir, const struct path *found, struct inode *entry,
		       const char *name, size_t len, struct walk *walk)
{
	walk->parent = *dir;
	walk->found = *found;
	walk->entry = entry;
	memcpy(walk->name, name, len);
	walk->name[len] = '\0';
	walk->wants_directory = name[len] == '/';
	return 0;
}

/* Returns the access that each directory on the way must permit; 0: none, root may search all. */
static u32 search_mask(unsigned int flags)
{
	if (flags & WALK_AS_REAL)
		return MAY_EXEC | MAY_AS_REAL;
	return fs_is_root() ? 0 : MAY_EXEC;
}

/* Returns -EAGAIN if a generated directory is on the way, which only writers of the tree enter. */
static int walk_components(const struct path *base, const char *p, unsigned int flags,
			   struct walk *walk, char **memory)
{
	struct path dir = *p == '/' ? root_path : *base;
	u32 search = search_mask(flags);
	unsigned int nr_links = 0;
	int error;

	ASSERT_HELD(&tree_lock);
	for (;;) {
		struct path next = dir;
		struct inode *entry;
		const char *rest;
		size_t len;
		bool last;

		p = skip_slashes(p);
		len = component_bytes(p);
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		if (!S_ISDIR(dir.inode->mode))
			return -ENOTDIR;
		if (unlikely(search) && inode_permission(dir.inode, search))
			return -EACCES;
		if (unlikely(dir.inode->ops) && !tree_is_writer())
			return -EAGAIN;

		rest = p + len;
		last = !*skip_slashes(rest);
		entry = step(&next, p, len, !(last && flags & WALK_NAME));
		if (next.inode && S_ISLNK(next.inode->mode) && link_is_followed(rest, flags)) {
			bool by_text = !next.inode->ops || !next.inode->ops->follow;

			if (++nr_links > MAX_LINKS)
				return -ELOOP;
			error = last ? tree_may_follow(dir.inode, next.inode) : 0;
			if (error)
				return error;
			error = by_text ? expand_link(next.inode, rest, &p, memory) :
					  follow_link(next.inode, walk, &next);
			if (error)
				return error;
			if (by_text) {
				if (*p == '/')
					dir = root_path;
				continue;
			}
		}
		if (last) {
			if (next.inode && *rest && !(flags & WALK_NAME) &&
			    !S_ISDIR(next.inode->mode))
				return -ENOTDIR;
			return finish_walk(&dir, &next, entry, p, len, walk);
		}
		if (!next.inode)
			return -ENOENT;
		dir = next;
		p = rest;
	}
}

int path_walk(const struct path *base, const char *path, unsigned int flags, struct walk *walk)
{
	char *memory = NULL;
	int error;

	walk->pinned = (struct path){ 0 };
	if (!*path)
		return -ENOENT;
	error = walk_components(base, path, flags, walk, &memory);
	kfree(memory);
	if (error == -EAGAIN && !tree_is_writer()) {
		tree_unlock();
		tree_lock_write();
		error = path_walk(base, path, flags, walk);
	}
	return error;
}

void path_walk_end(struct walk *walk)
{
	path_put(&walk->pinned);
	walk->pinned = (struct path){ 0 };
}

int path_find(const struct path *base, const char *path, unsigned int flags, struct path *found)
{
	struct walk walk;
	int error;

	ASSERT_NOT_HELD(&tree_lock);
	tree_lock_read();
	error = path_walk(base, path, flags, &walk);
	if (!error && !walk.found.inode)
		error = -ENOENT;
	if (!error)
		*found = path_get(&walk.found);
	path_walk_end(&walk);
	tree_unlock();
	return error;
}

int fd_get_path(int fd, struct path *path)
{
	struct file *file;

	if (fd == AT_FDCWD) {
		*path = cwd_get();
		return 0;
	}
	file = fd_get_any(fd);
	if (!file)
		return -EBADF;
	*path = path_get(&(struct path){ file->mount, file->inode });
	file_put(file);
	return 0;
}

int path_base(int dirfd, const char *path, struct path *base)
{
	int error;

	if (*path == '/') {
		*base = path_get(&root_path);
		return 0;
	}
	error = fd_get_path(dirfd, base);
	if (!error && !S_ISDIR(base->inode->mode)) {
		path_put(base);
		error = -ENOTDIR;
	}
	return error;
}

static __always_inline char *copy_path(const char __user *path)
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
	profile_path(copy, len);
	return copy;
}

char *path_from_user(const char __user *path)
{
	return copy_path(path);
}

int path_find_user(int dirfd, const char __user *user_path, int at_flags, struct path *found)
{
	unsigned int flags = at_flags & AT_SYMLINK_NOFOLLOW ? WALK_NOFOLLOW : 0;
	struct path base;
	char *path;
	int error;

	if (at_flags & AT_REAL_IDS)
		flags |= WALK_AS_REAL;
	path = copy_path(user_path);
	if (IS_ERR(path))
		return (int)PTR_ERR(path);
	if (!*path && at_flags & AT_EMPTY_PATH) {
		error = fd_get_path(dirfd, found);
		goto out_free;
	}
	error = *path ? path_base(dirfd, path, &base) : -ENOENT;
	if (error)
		goto out_free;
	error = path_find(&base, path, flags, found);
	path_put(&base);
out_free:
	kfree(path);
	return error;
}
