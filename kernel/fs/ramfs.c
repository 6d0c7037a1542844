// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/time.h>

/*
 * The tree of names. Numbers only grow, and children are appended: their lists are sorted by
 * number.
 */

struct inode *root_inode;
DEFINE_MUTEX(tree_lock);

static u64 last_number; /* guarded by tree_lock */

static struct inode *alloc(const char *name, u32 mode)
{
	struct inode *inode = kzalloc(sizeof(*inode));

	if (!inode)
		return NULL;
	inode->name = kstrdup(name);
	if (!inode->name) {
		kfree(inode);
		return NULL;
	}
	inode->number = ++last_number;
	inode->mode = mode;
	inode->mtime_ns = clock_realtime_ns();
	atomic_set(&inode->refs, 1);
	list_init(&inode->sibling);
	list_init(&inode->children);
	mutex_init(&inode->write_lock);
	spin_lock_init(&inode->data_lock);
	return inode;
}

struct inode *inode_get(struct inode *inode)
{
	atomic_inc(&inode->refs);
	return inode;
}

void inode_put(struct inode *inode)
{
	/* A loop: removed directories can be a long chain, each held only by the one below. */
	while (atomic_dec_and_test(&inode->refs)) {
		struct inode *parent = inode->parent;

		inode_free_data(inode);
		kfree(inode->target);
		kfree(inode->name);
		kfree(inode);
		inode = parent;
	}
}

struct inode *tree_create(struct inode *parent, const char *name, u32 mode)
{
	struct inode *inode;

	if (parent->removed)
		return ERR_PTR(-ENOENT);
	inode = alloc(name, mode);
	if (!inode)
		return ERR_PTR(-ENOMEM);
	inode->parent = inode_get(parent);
	list_add_tail(&inode->sibling, &parent->children);
	parent->mtime_ns = inode->mtime_ns;
	return inode;
}

struct inode *tree_find(struct inode *parent, const char *name, size_t len)
{
	struct inode *inode;

	list_for_each_entry(inode, &parent->children, sibling) {
		if (!strncmp(inode->name, name, len) && !inode->name[len])
			return inode;
	}
	return NULL;
}

void tree_remove(struct inode *inode)
{
	BUG_ON(inode->removed || !list_empty(&inode->children));
	list_del(&inode->sibling);
	inode->removed = true;
	inode->parent->mtime_ns = clock_realtime_ns();
	inode_put(inode);
}

static void create_root(void)
{
	root_inode = alloc("", S_IFDIR | 0755);
	if (!root_inode)
		panic("no memory for the root directory");
	root_inode->parent = root_inode;
}

void fs_init(void)
{
	create_root();
	device_init();
}
