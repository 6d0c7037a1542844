// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two trees of the same locks. One is in the order of their starts, and each node stores the last
 * byte of any lock of its subtree, and of any that excludes others: so a search enters only
 * subtrees that reach the range, and a search for locks that conflict with a shared one passes
 * over shared ones, of which there may be many for the same bytes. The other is in the order of
 * owners, and of starts for each owner.
 */

#include "lock_tree.h"

#define AVL_NODE struct lock_node
#include <lego/avl.h>

static struct file_lock *lock_of(struct lock_node *by_start)
{
	return by_start ? container_of(by_start, struct file_lock, by_start) : NULL;
}

static struct file_lock *owned_of(struct lock_node *by_owner)
{
	return by_owner ? container_of(by_owner, struct file_lock, by_owner) : NULL;
}

static struct lock_node *first_below(struct lock_node *node)
{
	while (node && node->child[0])
		node = node->child[0];
	return node;
}

static struct lock_node *next_of(struct lock_node *node)
{
	if (node->child[1])
		return first_below(node->child[1]);
	while (node->parent && node->parent->child[1] == node)
		node = node->parent;
	return node->parent;
}

/* Returns one more than the last byte of a lock; of one that does not exclude others, 0. */
static u64 end_of(const struct file_lock *lock, bool exclusive)
{
	return exclusive && lock->type != F_WRLCK ? 0 : lock->last + 1;
}

static void set_max_ends(struct lock_node *node)
{
	struct file_lock *lock = lock_of(node);

	for (int exclusive = 0; exclusive < 2; exclusive++) {
		u64 end = end_of(lock, exclusive);

		for (int side = 0; side < 2; side++) {
			if (node->child[side])
				end = max(end, lock_of(node->child[side])->max_end[exclusive]);
		}
		lock->max_end[exclusive] = end;
	}
}

static void set_rotated_ends(struct lock_node *lower, struct lock_node *upper)
{
	set_max_ends(lower);
	set_max_ends(upper);
}

/* Called when the subtree of a node has changed. NULL: no node is left above. */
static void update_by_start(struct lock_tree *tree, struct lock_node *node)
{
	for (struct lock_node *above = node; above; above = above->parent)
		set_max_ends(above);
	avl_rebalance(&tree->by_start, node, set_rotated_ends);
}

/* An owner is an address; locks of one are in the order of their starts. */
static bool is_before(const struct file_lock *lock, const void *owner, u64 start)
{
	return lock->owner != owner ? (u64)lock->owner < (u64)owner : lock->start < start;
}

static void add_by_start(struct lock_tree *tree, struct file_lock *lock)
{
	struct lock_node *parent = NULL, *node = tree->by_start;
	bool after = false;

	for (; node; node = node->child[after]) {
		parent = node;
		after = lock_of(node)->start <= lock->start;
	}
	avl_link(&tree->by_start, &lock->by_start, parent, after);
	set_max_ends(&lock->by_start);
	update_by_start(tree, parent);
}

static void add_by_owner(struct lock_tree *tree, struct file_lock *lock)
{
	struct lock_node *parent = NULL, *node = tree->by_owner;
	bool after = false;

	for (; node; node = node->child[after]) {
		parent = node;
		after = is_before(owned_of(node), lock->owner, lock->start);
	}
	parent = avl_link(&tree->by_owner, &lock->by_owner, parent, after);
	avl_rebalance(&tree->by_owner, parent, NULL);
}

void lock_tree_add(struct lock_tree *tree, struct file_lock *lock)
{
	add_by_start(tree, lock);
	add_by_owner(tree, lock);
}

void lock_tree_remove(struct lock_tree *tree, struct file_lock *lock)
{
	struct lock_node *start = &lock->by_start, *owner = &lock->by_owner;

	update_by_start(tree, avl_unlink(&tree->by_start, start, next_of(start)));
	avl_rebalance(&tree->by_owner, avl_unlink(&tree->by_owner, owner, next_of(owner)), NULL);
}

/* Whether a subtree has a lock, or one that excludes others, that ends behind a byte. */
static bool reaches(struct lock_node *node, u64 byte, bool exclusive)
{
	return node && lock_of(node)->max_end[exclusive] > byte;
}

/*
 * Returns the first lock of a subtree, or one that excludes others, that overlaps the range of the
 * request. If a lock on the lower side ends behind the start of the range, the first is there, or
 * that lock begins behind the range, as do all that come after it.
 */
static struct lock_node *first_in_subtree(struct lock_node *node, const struct file_lock *request,
					  bool exclusive)
{
	while (reaches(node, request->start, exclusive)) {
		struct file_lock *lock = lock_of(node);

		if (reaches(node->child[0], request->start, exclusive)) {
			node = node->child[0];
			continue;
		}
		if (lock->start > request->last)
			break;
		if (end_of(lock, exclusive) > request->start)
			return node;
		node = node->child[1];
	}
	return NULL;
}

/* Returns the next such lock of the tree after a node. */
static struct lock_node *next_in_range(struct lock_node *node, const struct file_lock *request,
				       bool exclusive)
{
	for (;;) {
		struct lock_node *below = node->child[1];

		if (reaches(below, request->start, exclusive))
			return first_in_subtree(below, request, exclusive);
		while (node->parent && node->parent->child[1] == node)
			node = node->parent;
		node = node->parent;
		if (!node || lock_of(node)->start > request->last)
			return NULL;
		if (end_of(lock_of(node), exclusive) > request->start)
			return node;
	}
}

struct file_lock *lock_tree_conflict(const struct lock_tree *tree, const struct file_lock *request)
{
	bool exclusive = request->type == F_RDLCK;
	struct lock_node *node;

	if (request->type == F_UNLCK)
		return NULL;
	node = first_in_subtree(tree->by_start, request, exclusive);
	while (node && lock_of(node)->owner == request->owner)
		node = next_in_range(node, request, exclusive);
	return lock_of(node);
}

struct file_lock *lock_tree_owned(const struct lock_tree *tree, const void *owner, u64 byte)
{
	struct lock_node *node = tree->by_owner, *found = NULL;

	while (node) {
		const struct file_lock *lock = owned_of(node);
		bool before = lock->owner != owner ? (u64)lock->owner < (u64)owner :
						     lock->last < byte;

		if (!before)
			found = node;
		node = node->child[before];
	}
	return found && owned_of(found)->owner == owner ? owned_of(found) : NULL;
}

struct file_lock *lock_tree_next_owned(struct file_lock *lock)
{
	struct file_lock *next = owned_of(next_of(&lock->by_owner));

	return next && next->owner == lock->owner ? next : NULL;
}

struct file_lock *lock_tree_next(struct file_lock *lock)
{
	return lock_of(next_of(&lock->by_start));
}

struct file_lock *lock_tree_first(const struct lock_tree *tree)
{
	return lock_of(first_below(tree->by_start));
}
