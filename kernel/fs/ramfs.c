// SPDX-License-Identifier: BSD-2-Clause
/*
 * The trees of inodes. Positions only grow, and entries are appended, so directories are sorted by
 * position.
 *
 * If the inode's own name is removed and it has others, it takes over one of them. So an inode with
 * names always has one itself.
 */

#include "lock.h"
#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/leak.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/time.h>

struct inode *root_inode;
DEFINE_RW_MUTEX(tree_lock);
static struct task *tree_writer __cacheline_aligned; /* NULL: none */

static u64 last_number; /* atomic */
/* Guarded by tree_lock. Positions 0 to 2 mean ".", ".." and the end of these two. */
static u64 last_position = 2;

void tree_lock_read(void)
{
	rw_mutex_lock_read(&tree_lock);
}

void tree_lock_write(void)
{
	rw_mutex_lock_write(&tree_lock);
	WRITE_ONCE(tree_writer, current);
}

void tree_unlock(void)
{
	if (tree_is_writer()) {
		WRITE_ONCE(tree_writer, NULL);
		rw_mutex_unlock_write(&tree_lock);
	} else {
		rw_mutex_unlock_read(&tree_lock);
	}
}

bool tree_is_writer(void)
{
	return READ_ONCE(tree_writer) == current;
}

static struct inode *alloc_inode(struct filesystem *fs, const char *name, u32 mode)
{
	struct inode *inode = kzalloc(sizeof(*inode));

	if (!inode)
		return NULL;
	inode->name = kstrdup(name);
	if (!inode->name) {
		kfree(inode);
		return NULL;
	}
	inode->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
	inode->fs = fs;
	inode->mode = mode;
	inode->mtime_ns = clock_realtime_ns();
	inode->atime_ns = inode->mtime_ns;
	inode->ctime_ns = inode->mtime_ns;
	if (current && current->proc) {
		inode->uid = current->proc->creds.fsuid;
		inode->gid = current->proc->creds.fsgid;
	}
	atomic_set(&inode->refs, 1);
	list_init(&inode->sibling);
	list_init(&inode->children);
	list_init(&inode->links);
	list_init(&inode->link_node);
	mutex_init(&inode->write_lock);
	spin_lock_init(&inode->data_lock);
	leak_count(LEAK_INODES, 1);
	return inode;
}

struct inode *inode_get(struct inode *inode)
{
	DEBUG_ASSERT(atomic_read(&inode->refs) > 0);
	atomic_inc(&inode->refs);
	return inode;
}

static void release_inode(struct inode *inode)
{
	DEBUG_ASSERT(list_empty(&inode->sibling) && list_empty(&inode->children));
	DEBUG_ASSERT(list_empty(&inode->links) && list_empty(&inode->link_node));
	DEBUG_ASSERT(!inode->nr_mounts && !inode->nr_subdirs);
	if (inode->ops && inode->ops->free)
		inode->ops->free(inode);
	inode_free_data(inode);
	lock_free(inode);
	if (inode->parent)
		space_uncharge_inode(inode);
	kfree(inode->target);
	kfree(inode->name);
	kfree(inode);
	leak_count(LEAK_INODES, -1);
}

void inode_put(struct inode *inode)
{
	DEBUG_ASSERT(!inode || atomic_read(&inode->refs) > 0);
	/*
	 * A loop, not a recursion: removed directories can form a long chain, each referenced only
	 * by the one below.
	 */
	while (inode && atomic_dec_and_test(&inode->refs)) {
		struct inode *parent = inode->parent, *linked = inode->linked;

		release_inode(inode);
		if (linked)
			inode_put(linked); /* it has no ->linked itself */
		inode = parent;
	}
}

void inode_touch(struct inode *inode)
{
	inode->mtime_ns = clock_realtime_ns();
	inode->ctime_ns = inode->mtime_ns;
}

struct inode *inode_alloc_unnamed(const char *name, u32 mode)
{
	return alloc_inode(&fs_without_name, name, mode);
}

struct inode *tree_create_root(struct filesystem *fs, u32 mode)
{
	return alloc_inode(fs, "", S_IFDIR | mode);
}

/* A hash table of the entries of all directories, by directory and name. */
#define LOG2_NAMES 13
static struct inode *names[1 << LOG2_NAMES];

static struct inode **names_of(const struct inode *parent, const char *name, size_t len)
{
	u64 hash = (u64)parent;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (u8)name[i]) * 0x9e3779b97f4a7c15;
	return &names[hash >> (64 - LOG2_NAMES)];
}

static void add_name(struct inode *entry)
{
	struct inode **first = names_of(entry->parent, entry->name, strlen(entry->name));

	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(tree_is_writer());
	entry->next_by_name = *first;
	*first = entry;
}

static void remove_name(struct inode *entry)
{
	struct inode **at = names_of(entry->parent, entry->name, strlen(entry->name));

	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(tree_is_writer());
	while (*at != entry)
		at = &(*at)->next_by_name;
	*at = entry->next_by_name;
}

u64 tree_keep_order(struct inode *entry, u64 position)
{
	ASSERT_HELD(&tree_lock);
	if (entry->position < position) {
		list_del(&entry->sibling);
		entry->position = ++last_position;
		list_add_tail(&entry->sibling, &entry->parent->children);
	}
	return entry->position;
}

/* Inserts an entry into its directory, to which it has a reference already. */
static void insert_entry(struct inode *entry)
{
	struct inode *parent = entry->parent;

	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(list_empty(&parent->children) ||
		     list_last_entry(&parent->children, struct inode, sibling)->position <=
			     last_position);
	entry->position = ++last_position;
	list_add_tail(&entry->sibling, &parent->children);
	add_name(entry);
	if (S_ISDIR(entry->mode))
		parent->nr_subdirs++;
	inode_touch(parent);
}

static void take_out(struct inode *entry)
{
	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(!list_empty(&entry->sibling));
	DEBUG_ASSERT(!S_ISDIR(entry->mode) || entry->parent->nr_subdirs);
	list_del(&entry->sibling);
	remove_name(entry);
	if (S_ISDIR(entry->mode))
		entry->parent->nr_subdirs--;
	inode_touch(entry->parent);
}

/*
 * Inherits the group of a set-group-ID directory. Only members of the group can make set-group-ID
 * programs.
 */
static void inherit_group(struct inode *inode, const struct inode *parent)
{
	inode->gid = parent->gid;
	if (S_ISDIR(inode->mode))
		inode->mode |= S_ISGID;
	else if (inode->mode & S_IXGRP && !inode_group_allowed(inode->gid))
		inode->mode &= ~S_ISGID;
}

/* Makes an inode for a directory, but does not insert it. */
static struct inode *create_inode(struct inode *parent, const char *name, u32 mode)
{
	struct inode *inode;

	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(S_ISDIR(parent->mode));
	if (parent->removed)
		return ERR_PTR(-ENOENT);
	inode = alloc_inode(parent->fs, name, mode);
	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (!space_charge_inode(inode, !current->proc)) {
		inode_put(inode);
		return ERR_PTR(-ENOSPC);
	}
	if (parent->mode & S_ISGID)
		inherit_group(inode, parent);
	inode->parent = inode_get(parent);
	return inode;
}

struct inode *tree_create(struct inode *parent, const char *name, u32 mode)
{
	struct inode *inode = create_inode(parent, name, mode);

	if (!IS_ERR(inode))
		insert_entry(inode);
	return inode;
}

struct inode *tree_create_removed(struct inode *parent, u32 mode)
{
	struct inode *inode = create_inode(parent, "#", mode);

	if (!IS_ERR(inode))
		inode->removed = true;
	return inode;
}

/* Gives the entry, which is in no directory, a parent and a name. Takes over the name. */
static void place_entry(struct inode *entry, struct inode *parent, char *name)
{
	struct inode *old_parent = entry->parent;

	kfree(entry->name);
	entry->name = name;
	entry->parent = inode_get(parent);
	insert_entry(entry);
	entry_inode(entry)->ctime_ns = clock_realtime_ns();
	inode_put(old_parent);
}

static int give_name(struct inode *inode, struct inode *parent, const char *name)
{
	char *copy;

	if (parent->removed)
		return -ENOENT;
	copy = kstrdup(name);
	if (!copy)
		return -ENOMEM;
	inode->removed = false;
	inode->may_get_name = false;
	place_entry(inode_get(inode), parent, copy);
	return 0;
}

int tree_link(struct inode *parent, const char *name, struct inode *inode)
{
	struct inode *entry;

	if (inode->may_get_name)
		return give_name(inode, parent, name);
	entry = tree_create(parent, name, inode->mode);
	if (IS_ERR(entry))
		return (int)PTR_ERR(entry);
	DEBUG_ASSERT(!S_ISDIR(inode->mode) && !inode->linked);
	entry->linked = inode_get(inode);
	list_add_tail(&entry->link_node, &inode->links);
	inode->ctime_ns = clock_realtime_ns();
	return 0;
}

unsigned int tree_nr_links(const struct inode *inode)
{
	unsigned int nr = !inode->removed;
	struct list_head *node;

	ASSERT_HELD(&tree_lock);
	if (S_ISDIR(inode->mode))
		return inode->removed ? 0 : 2 + inode->nr_subdirs;
	for (node = inode->links.next; node != &inode->links; node = node->next)
		nr++;
	return nr;
}

void tree_populate(struct inode *dir)
{
	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(tree_is_writer() || !dir->ops);
	if (dir->ops && dir->ops->populate && !dir->removed)
		dir->ops->populate(dir);
}

void tree_populate_name(struct inode *dir, const char *name, size_t len)
{
	ASSERT_HELD(&tree_lock);
	if (!dir->ops || !dir->ops->populate_name)
		tree_populate(dir);
	else if (!dir->removed)
		dir->ops->populate_name(dir, name, len);
}

struct inode *tree_find(struct inode *parent, const char *name, size_t len)
{
	struct inode *inode;

	ASSERT_HELD(&tree_lock);
	inode = *names_of(parent, name, len);
	while (inode &&
	       (inode->parent != parent || strncmp(inode->name, name, len) || inode->name[len]))
		inode = inode->next_by_name;
	return inode;
}

/* Swaps an inode with another name of it. Returns the other entry, which can then be removed. */
static struct inode *swap_with_link(struct inode *inode)
{
	struct inode *link = list_first_entry(&inode->links, struct inode, link_node);
	struct list_head *before = link->sibling.prev;
	struct inode *parent = inode->parent;
	u64 position = inode->position;
	char *name = inode->name;

	ASSERT_HELD(&tree_lock);
	remove_name(inode);
	remove_name(link);
	list_del(&link->sibling);
	list_add(&link->sibling, &inode->sibling);
	list_del(&inode->sibling);
	list_add(&inode->sibling, before == &inode->sibling ? &link->sibling : before);
	inode->parent = link->parent;
	inode->position = link->position;
	inode->name = link->name;
	link->parent = parent;
	link->position = position;
	link->name = name;
	add_name(inode);
	add_name(link);
	return link;
}

void tree_remove(struct inode *entry)
{
	ASSERT_HELD(&tree_lock);
	BUG_ON(entry->removed || !list_empty(&entry->children));
	if (!list_empty(&entry->links))
		entry = swap_with_link(entry);
	take_out(entry);
	entry->removed = true;
	entry_inode(entry)->ctime_ns = clock_realtime_ns();
	if (entry->linked)
		list_del(&entry->link_node);
	inode_put(entry);
}

int tree_move(struct inode *entry, struct inode *parent, const char *name)
{
	char *copy = kstrdup(name);

	ASSERT_HELD(&tree_lock);
	DEBUG_ASSERT(!parent->removed && !entry->removed);
	if (!copy)
		return -ENOMEM;
	take_out(entry);
	place_entry(entry, parent, copy);
	return 0;
}

void tree_exchange(struct inode *a, struct inode *b)
{
	struct inode *parent = a->parent;
	char *name = a->name;

	ASSERT_HELD(&tree_lock);
	take_out(a);
	take_out(b);
	a->parent = b->parent;
	a->name = b->name;
	b->parent = parent;
	b->name = name;
	insert_entry(a);
	insert_entry(b);
	entry_inode(a)->ctime_ns = entry_inode(b)->ctime_ns = clock_realtime_ns();
}

void tree_remove_below(struct inode *top)
{
	struct inode *inode = top, *parent;

	ASSERT_HELD(&tree_lock);
	/* Go down to an entry without children, remove it, and continue at its parent. */
	for (;;) {
		while (!list_empty(&inode->children))
			inode = list_first_entry(&inode->children, struct inode, sibling);
		if (inode == top)
			break;
		parent = inode->parent;
		tree_remove(inode);
		inode = parent;
	}
	DEBUG_ASSERT(!top->nr_subdirs);
}

u64 tree_count(struct inode *top)
{
	struct inode *inode = top;
	u64 nr = 0;

	ASSERT_HELD(&tree_lock);
	while (inode) {
		nr++;
		if (!list_empty(&inode->children)) {
			inode = list_first_entry(&inode->children, struct inode, sibling);
			continue;
		}
		/* Go up to an entry that has a next one in its directory. */
		while (inode != top && inode->sibling.next == &inode->parent->children)
			inode = inode->parent;
		inode = inode == top ? NULL :
				       list_entry(inode->sibling.next, struct inode, sibling);
	}
	return nr;
}

void tree_remove_all(struct inode *inode)
{
	tree_remove_below(inode);
	tree_remove(inode);
}

struct inode *tree_make_directory(struct inode *parent, const char *name, size_t len, u32 mode)
{
	struct inode *inode = tree_find(parent, name, len);
	char copy[NAME_MAX + 1];

	if (inode)
		return inode;
	if (len > NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	memcpy(copy, name, len);
	copy[len] = '\0';
	return tree_create(parent, copy, S_IFDIR | mode);
}

struct inode *tree_make_directories(struct inode *top, const char *path, u32 mode,
				    const char **name)
{
	struct inode *at = top;
	const char *slash;

	for (; !IS_ERR(at) && (slash = strchr(path, '/')); path = slash + 1)
		at = tree_make_directory(at, path, slash - path, mode);
	*name = path;
	return at;
}

void fs_init(void)
{
	mount_init();
	device_init();
	proc_init();
	sysfs_init();
	if (IS_ENABLED(CONFIG_PROFILE_TRACE))
		tracefs_init();
}
