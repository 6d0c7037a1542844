/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_LOCK_TREE_H
#define FS_LOCK_TREE_H

/*
 * The locks of one kind that are held on a file, found by range and by owner. An owner's locks do
 * not overlap. The caller holds the mutex of locks, and owns their memory. The time of each call
 * grows with the logarithm of their number, and that of lock_tree_conflict() with the number of
 * the owner's own locks in the range.
 */

#include "lock.h"

/* All zero: empty. */
struct lock_tree {
	struct lock_node *by_start, *by_owner;
};

void lock_tree_add(struct lock_tree *tree, struct file_lock *lock);
void lock_tree_remove(struct lock_tree *tree, struct file_lock *lock);

/* Returns the lock with the lowest start that conflicts with a request of this kind, or NULL. */
struct file_lock *lock_tree_conflict(const struct lock_tree *tree, const struct file_lock *request);

/* Returns the first lock of the owner that ends at a byte or behind it, or NULL. */
struct file_lock *lock_tree_owned(const struct lock_tree *tree, const void *owner, u64 byte);
/* Return the owner's next lock, and the next lock of any owner, or NULL. */
struct file_lock *lock_tree_next_owned(struct file_lock *lock);
struct file_lock *lock_tree_next(struct file_lock *lock);
struct file_lock *lock_tree_first(const struct lock_tree *tree);

#endif
