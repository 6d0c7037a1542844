// SPDX-License-Identifier: BSD-2-Clause
/*
 * File systems and mounts. A mount covers a directory of another mount; of several mounts on the
 * same place, the last one is visible. A mount has a reference from each open file, working
 * directory and mount on it, so that it cannot be removed while in use.
 */

#include "mount.h"

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/text.h>

#define RAMFS_MAGIC 0x858458f6
#define TMPFS_MAGIC 0x01021994
#define PIPE_MAGIC  0x50495045
#define MAX_TYPES   8
#define MAX_MOUNTS  256 /* paths through many mounts are slow; Linux has such a limit, too */

struct path root_path;

static const struct fs_type *types[MAX_TYPES];
static unsigned int nr_types;
static u32 last_device; /* this and the next three variables are guarded by tree_lock */
static unsigned int nr_mounts;
static LIST_HEAD(mounts); /* in the order they were made */
static LIST_HEAD(single_filesystems);

static struct inode *make_empty_root(struct filesystem *fs)
{
	return tree_create_root(fs, 0755);
}

static struct inode *make_tmp_root(struct filesystem *fs)
{
	return tree_create_root(fs, 01777);
}

static const struct fs_type rootfs_type = {
	.name = "rootfs",
	.make_root = make_empty_root,
	.magic = RAMFS_MAGIC,
	.is_bounded = true,
};
static const struct fs_type ramfs_type = {
	.name = "ramfs",
	.make_root = make_empty_root,
	.magic = RAMFS_MAGIC,
	.is_bounded = true,
};
static const struct fs_type tmpfs_type = {
	.name = "tmpfs",
	.make_root = make_tmp_root,
	.magic = TMPFS_MAGIC,
	.is_bounded = true,
};
static const struct fs_type nameless_type = { .name = "pipefs", .magic = PIPE_MAGIC };

struct filesystem fs_without_name = { .type = &nameless_type, .device = 1 };

int fs_register(const struct fs_type *type)
{
	if (nr_types == MAX_TYPES)
		return -ENOMEM;
	types[nr_types++] = type;
	return 0;
}

void fs_show_types(struct text *text)
{
	for (unsigned int i = 0; i < nr_types; i++)
		text_printf(text, "nodev\t%s\n", types[i]->name);
}

static const struct fs_type *find_type(const char *name)
{
	for (unsigned int i = 0; i < nr_types; i++) {
		if (!strcmp(types[i]->name, name))
			return types[i];
	}
	return NULL;
}

static struct filesystem *make_filesystem(const struct fs_type *type)
{
	struct filesystem *fs = kzalloc(sizeof(*fs));

	ASSERT_HELD(&tree_lock);
	if (!fs)
		return NULL;
	fs->type = type;
	fs->device = ++last_device;
	list_init(&fs->node);
	fs->root = type->make_root(fs);
	if (!fs->root) {
		kfree(fs);
		return NULL;
	}
	if (type->single)
		list_add_tail(&fs->node, &single_filesystems);
	return fs;
}

static struct filesystem *get_filesystem(const struct fs_type *type)
{
	struct filesystem *fs;

	ASSERT_HELD(&tree_lock);
	list_for_each_entry(fs, &single_filesystems, node) {
		if (fs->type == type)
			return fs;
	}
	return make_filesystem(type);
}

/* Frees a file system without mounts and its content, unless it is a single one. */
static void drop_filesystem(struct filesystem *fs)
{
	ASSERT_HELD(&tree_lock);
	if (fs->nr_mounts || fs->type->single)
		return;
	tree_remove_below(fs->root);
	inode_put(fs->root);
	kfree(fs);
}

struct mount *mount_on(const struct path *path)
{
	struct mount *mount, *last = NULL;

	ASSERT_HELD(&tree_lock);
	if (!path->inode->nr_mounts)
		return NULL;
	list_for_each_entry(mount, &mounts, node) {
		if (mount->mountpoint == path->inode && mount->parent == path->mount)
			last = mount;
	}
	return last;
}

static u32 last_id; /* the highest ID of a mount so far; guarded by tree_lock */

/* Attaches a new mount. at NULL: the first mount of all. */
static struct mount *attach_mount(struct filesystem *fs, const struct path *at, const char *source,
				  u32 flags)
{
	struct mount *mount = kzalloc(sizeof(*mount));

	if (!mount)
		return NULL;
	mount->source = kstrdup(source);
	if (!mount->source) {
		kfree(mount);
		return NULL;
	}
	if (at) {
		mount->parent = mount_get(at->mount);
		mount->mountpoint = inode_get(at->inode);
		at->inode->nr_mounts++;
	}
	mount->fs = fs;
	mount->id = ++last_id;
	mount->flags = flags;
	fs->nr_mounts++;
	atomic_set(&mount->refs, 1);
	mount->attached = true;
	nr_mounts++;
	list_add_tail(&mount->node, &mounts);
	return mount;
}

int mount_attach(const char *type_name, const struct path *at, const char *source, u32 flags)
{
	const struct fs_type *type = find_type(type_name);
	struct filesystem *fs;

	ASSERT_HELD(&tree_lock);
	if (!type)
		return -ENODEV;
	if (!S_ISDIR(at->inode->mode))
		return -ENOTDIR;
	if (at->inode->removed)
		return -ENOENT;
	/* A mount on a detached one could not be found, and so never be removed. */
	if (!at->mount->attached)
		return -EINVAL;
	if (nr_mounts >= MAX_MOUNTS)
		return -ENOSPC;
	/* Refuse a directory whose entries the kernel may remove itself, and "/". */
	if (at->inode == root_inode || (path_is_fixed(at) && !at->inode->fs->type->is_permanent &&
					at->inode != at->mount->fs->root))
		return -EINVAL;
	fs = get_filesystem(type);
	if (!fs)
		return -ENOMEM;
	if (at->inode == fs->root)
		return -EBUSY; /* mounted there already */
	if (!attach_mount(fs, at, source, flags)) {
		drop_filesystem(fs);
		return -ENOMEM;
	}
	return 0;
}

static bool is_below(const struct mount *mount, const struct mount *top)
{
	while (mount && mount != top)
		mount = mount->parent;
	return mount;
}

/*
 * Removes a mount from the list. mount_drop_detached() drops its references later, without
 * tree_lock.
 */
static void detach(struct mount *mount, struct list_head *detached)
{
	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(mount->attached && mount->mountpoint->nr_mounts);
	mount->attached = false;
	mount->mountpoint->nr_mounts--;
	list_del(&mount->node);
	list_add(&mount->node, detached);
}

int mount_detach(struct mount *mount, bool lazily, struct list_head *detached)
{
	struct mount *at, *next;

	ASSERT_HELD(&tree_lock);
	if (!mount->attached || !mount->parent)
		return -EINVAL;
	/* One reference for being attached, one of the caller. */
	if (!lazily && atomic_read(&mount->refs) > 2)
		return -EBUSY;
	for (at = list_first_entry(&mounts, struct mount, node); &at->node != &mounts; at = next) {
		next = list_first_entry(&at->node, struct mount, node);
		if (is_below(at, mount))
			detach(at, detached);
	}
	return 0;
}

void mount_drop_detached(struct list_head *detached)
{
	ASSERT_NOT_HELD(&tree_lock);
	while (!list_empty(detached)) {
		struct mount *mount = list_first_entry(detached, struct mount, node);

		list_del(&mount->node);
		mount_put(mount);
	}
}

struct mount *mount_get(struct mount *mount)
{
	DEBUG_ASSERT(!mount || atomic_read(&mount->refs) > 0);
	if (mount)
		atomic_inc(&mount->refs);
	return mount;
}

/*
 * Drops a reference. Procfs closes files with tree_lock held, and the last file may free a mount.
 */
void mount_put(struct mount *mount)
{
	DEBUG_ASSERT(!mount || atomic_read(&mount->refs) > 0);
	while (mount && atomic_dec_and_test(&mount->refs)) {
		bool locked = tree_is_writer();
		struct mount *parent = mount->parent;

		if (!locked)
			tree_lock_write();
		DEBUG_ASSERT(!mount->attached && list_empty(&mount->node));
		DEBUG_ASSERT(nr_mounts && mount->fs->nr_mounts);
		nr_mounts--;
		mount->fs->nr_mounts--;
		drop_filesystem(mount->fs);
		if (!locked)
			tree_unlock();
		inode_put(mount->mountpoint);
		kfree(mount->source);
		kfree(mount);
		mount = parent;
	}
}

struct path path_get(const struct path *path)
{
	return (struct path){ mount_get(path->mount), inode_get(path->inode) };
}

void path_put(struct path *path)
{
	/* The inode first: its file system lives as long as the mount. */
	inode_put(path->inode);
	mount_put(path->mount);
}

static void show_options(struct text *text, const struct mount *mount)
{
	text_printf(text, "rw%s%s%s", mount->flags & MOUNT_NOSUID ? ",nosuid" : "",
		    mount->flags & MOUNT_NODEV ? ",nodev" : "",
		    mount->flags & MOUNT_NOEXEC ? ",noexec" : "");
}

static void show_mount(struct text *text, const struct mount *mount, const char *where)
{
	text_printf(text, "%pE %pE %s ", mount->source, where, mount->fs->type->name);
	show_options(text, mount);
	text_printf(text, " 0 0\n");
}

static void show_mount_info(struct text *text, const struct mount *mount, const char *where)
{
	const struct filesystem *fs = mount->fs;

	text_printf(text, "%u %u %u:%u / %pE ", mount->id,
		    mount->parent ? mount->parent->id : mount->id, fs->device >> 8,
		    fs->device & 0xff, where);
	show_options(text, mount);
	text_printf(text, " - %s %pE rw\n", fs->type->name, mount->source);
}

int mounts_text(struct text *text, bool info)
{
	char *path_buf = kmalloc(PATH_MAX);
	struct mount *mount;

	if (!path_buf)
		return -ENOMEM;
	tree_lock_write();
	list_for_each_entry(mount, &mounts, node) {
		struct path path = { mount, mount->fs->root };
		const char *where = path_write(&path, path_buf, PATH_MAX);

		if (where && info)
			show_mount_info(text, mount, where);
		else if (where)
			show_mount(text, mount, where);
	}
	tree_unlock();
	kfree(path_buf);
	return 0;
}

void fs_mount_at_boot(const char *type, const char *path)
{
	struct path at = root_path;
	struct mount *mount;
	const char *name, *slash = strchr(path, '/');
	int error;

	tree_lock_write();
	if (slash) {
		at.inode = tree_make_directory(root_inode, path, slash - path, 0755);
		mount = IS_ERR(at.inode) ? NULL : mount_on(&at);
		if (mount)
			at = (struct path){ mount, mount->fs->root };
		path = slash + 1;
	}
	at.inode = tree_make_directories(at.inode, path, 0755, &name);
	if (!IS_ERR(at.inode))
		at.inode = tree_make_directory(at.inode, name, strlen(name), 0755);
	error = IS_ERR(at.inode) ? (int)PTR_ERR(at.inode) : mount_attach(type, &at, type, 0);
	tree_unlock();
	if (error)
		panic("cannot mount %s on /%s: error %d", type, path, error);
}

void mount_init(void)
{
	struct filesystem *fs;

	tree_lock_write();
	last_device = fs_without_name.device;
	fs = make_filesystem(&rootfs_type);
	if (fs)
		root_path.mount = attach_mount(fs, NULL, rootfs_type.name, 0);
	tree_unlock();
	if (!root_path.mount)
		panic("no memory for the root directory");
	root_inode = fs->root;
	root_path.inode = root_inode;
	if (fs_register(&ramfs_type) || fs_register(&tmpfs_type))
		panic("no room for the first file systems");
}
