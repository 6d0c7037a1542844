// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests kernel/fs/lock_tree.c: random changes against an array; and the cost does not grow with the
 * number of locks. Cost is counted in basic blocks (blocks.h).
 */

#include <string.h>

#include "unit_test.h"

#include "blocks.h"
#include "../../kernel/fs/lock_tree.h"
#include <lego/kernel.h>

#define NR_BYTES  40 /* of the file, in random changes */
#define NR_OWNERS 5
#define MAX_LOCKS 65536

static struct file_lock locks[MAX_LOCKS];
static struct file_lock *held[NR_OWNERS][NR_BYTES]; /* by their first bytes */
static const char owners[MAX_LOCKS];
static struct lock_tree tree;

static int set_up(void **state)
{
	tree = (struct lock_tree){ 0 };
	memset(held, 0, sizeof(held));
	random_state = 1;
	return 0;
}

/* In random changes, the last byte is that of all files. */
static u64 last_of(u64 last)
{
	return last == NR_BYTES - 1 ? LOCK_LAST_BYTE : last;
}

static struct file_lock *add(struct file_lock *lock, u32 owner, u64 start, u64 last, u8 type)
{
	*lock = (struct file_lock){
		.owner = &owners[owner],
		.type = type,
		.start = start,
		.last = last_of(last),
	};
	lock_tree_add(&tree, lock);
	return lock;
}

static struct file_lock *any_at(u32 owner, u64 byte)
{
	for (u64 start = 0; start <= byte; start++) {
		struct file_lock *lock = held[owner][start];

		if (lock && lock->last >= byte)
			return lock;
	}
	return NULL;
}

/* Compares all answers about one range with what the array says. */
static void check_range(u32 owner, u64 start, u64 last, u8 type)
{
	struct file_lock request = {
		.owner = &owners[owner],
		.type = type,
		.start = start,
		.last = last_of(last),
	};
	struct file_lock *found = lock_tree_conflict(&tree, &request), *own = NULL;
	u64 first = UINT64_MAX;

	for (u32 other = 0; other < NR_OWNERS; other++) {
		for (u64 byte = start; byte <= last; byte++) {
			struct file_lock *lock = any_at(other, byte);

			if (lock && other != owner && (type == F_WRLCK || lock->type == F_WRLCK))
				first = min(first, lock->start);
		}
	}
	assert_int_equal(found != NULL, first != UINT64_MAX);
	if (found) {
		assert_int_equal(found->start, first);
		assert_true(found->last >= start);
		assert_ptr_not_equal(found->owner, request.owner);
	}
	for (u64 byte = start; byte < NR_BYTES && !own; byte++)
		own = any_at(owner, byte);
	assert_ptr_equal(lock_tree_owned(&tree, request.owner, start), own);
}

/* Walks over both trees: each lock is there once, in order. */
static void check_walks(u32 nr_held)
{
	u32 nr = 0, nr_owned = 0;
	u64 start = 0;

	for (struct file_lock *lock = lock_tree_first(&tree); lock; lock = lock_tree_next(lock)) {
		assert_true(lock->start >= start);
		start = lock->start;
		nr++;
	}
	for (u32 owner = 0; owner < NR_OWNERS; owner++) {
		struct file_lock *lock = lock_tree_owned(&tree, &owners[owner], 0);

		for (u64 byte = 0; lock; lock = lock_tree_next_owned(lock), nr_owned++) {
			assert_true(lock->start >= byte);
			byte = lock->last + 1;
		}
	}
	assert_int_equal(nr, nr_held);
	assert_int_equal(nr_owned, nr_held);
}

#define TEST(name) HOST_TEST_WITH(name, set_up, NULL)

TEST(random_changes)
{
	u32 nr_held = 0;

	for (u32 i = 0; i < 20000; i++) {
		u32 owner = next_random(NR_OWNERS);
		u64 start = next_random(NR_BYTES), last = start + next_random(NR_BYTES - start);
		struct file_lock *lock = any_at(owner, start);

		if (lock) {
			lock_tree_remove(&tree, lock);
			held[owner][lock->start] = NULL;
			nr_held--;
		} else {
			/* Locks of an owner do not overlap. */
			for (u64 byte = last; byte > start; byte--) {
				if (any_at(owner, byte))
					last = byte - 1;
			}
			held[owner][start] = add(&locks[owner * NR_BYTES + start], owner, start,
						 last, next_random(2));
			nr_held++;
		}
		check_range(next_random(NR_OWNERS), start, last, next_random(2));
		check_range(owner, 0, NR_BYTES - 1, next_random(2));
		if (i % 16 == 0)
			check_walks(nr_held);
	}
}

/* Adds a lock of each of many owners, at the same byte or each at its own; returns the cost. */
static u64 cost_among(u32 nr, bool same_byte)
{
	struct file_lock request = { .owner = &owners[nr], .type = F_RDLCK }, *own;

	set_up(NULL);
	for (u32 i = 0; i < nr; i++)
		add(&locks[i], i, same_byte ? 0 : 2 * i, same_byte ? 0 : 2 * i, F_RDLCK);
	request.start = request.last = same_byte ? 0 : nr / 2 * 2;
	nr_blocks = 0;
	assert_null(lock_tree_conflict(&tree, &request));
	own = add(&locks[nr], nr, request.start, request.last, F_RDLCK);
	assert_ptr_equal(lock_tree_owned(&tree, request.owner, 0), own);
	request.type = F_WRLCK;
	assert_non_null(lock_tree_conflict(&tree, &request));
	lock_tree_remove(&tree, own);
	return nr_blocks;
}

TEST(cost)
{
	for (int same_byte = 0; same_byte < 2; same_byte++) {
		u64 few = cost_among(64, same_byte), many = cost_among(MAX_LOCKS - 1, same_byte);

		/* Paths are 6 and 16 nodes long, and at most 1.44 times that. */
		assert_true(many < 4 * few);
	}
}
