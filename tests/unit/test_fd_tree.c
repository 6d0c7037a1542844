// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests kernel/fs/fd_tree.c: random changes against an array, failing allocations, and that the
 * cost does not grow with the number of descriptors. Cost is counted in basic blocks (blocks.h).
 */

#include <stdlib.h>

#include "unit_test.h"

#include "blocks.h"
#include <lego/fd_tree.h>

#define NR_FDS 20000 /* size of the array */
#define SPARSE (1 << 20)

static struct fd_tree tree;
static void *model[NR_FDS];
static int nr_live, nr_allowed; /* nodes */

void *kzalloc(size_t size);
void kfree(const void *ptr);

void *kzalloc(size_t size)
{
	if (nr_live == nr_allowed)
		return NULL;
	nr_live++;
	return calloc(1, size);
}

void kfree(const void *ptr)
{
	nr_live--;
	free((void *)ptr);
}

static int set_up(void **state)
{
	tree = (struct fd_tree){ 0 };
	fd_tree_init(&tree);
	for (int fd = 0; fd < NR_FDS; fd++)
		model[fd] = NULL;
	nr_allowed = 1 << 20;
	random_state = 1;
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(nr_live, tree.nr_nodes);
	fd_tree_free(&tree);
	assert_int_equal(nr_live, 0);
	return 0;
}

static void set(int fd, void *value)
{
	struct fd_node *leaf = fd_tree_make_leaf(&tree, fd);

	assert_non_null(leaf);
	fd_tree_set(&tree, leaf, fd, value);
}

/*
 * Returns the first descriptor from fd on whose slot in the array is set, or not set; NR_FDS if
 * there is none.
 */
static int find(int fd, bool is_set)
{
	while (fd < NR_FDS && !model[fd] == is_set)
		fd++;
	return fd;
}

static void check_from(int fd)
{
	int next = find(fd, true);

	assert_int_equal(fd_tree_next(&tree, fd), next < NR_FDS ? next : -1);
	assert_int_equal(fd_tree_next_free(&tree, fd), find(fd, false));
	assert_ptr_equal(fd_tree_get(&tree, fd), model[fd]);
}

#define TEST(name) HOST_TEST_WITH(name, set_up, tear_down)

/* Mostly sets, then mostly clears, so that whole nodes become full and empty again. */
TEST(random_changes)
{
	for (int n = 0; n < 200000; n++) {
		bool fills = n / 50000 % 2 == 0;
		int fd = next_random(5000);

		model[fd] = next_random(10) < (fills ? 9 : 1) ? &model[fd] : NULL;
		set(fd, model[fd]);
		if (n % 16 == 0)
			check_from(next_random(NR_FDS));
	}
}

TEST(lowest_free)
{
	for (int fd = 0; fd < NR_FDS; fd++) {
		assert_int_equal(fd_tree_next_free(&tree, 0), fd);
		set(fd, model);
	}
	for (int n = 0; n < 1000; n++) {
		int fd = next_random(NR_FDS);

		set(fd, NULL);
		assert_int_equal(fd_tree_next_free(&tree, 0), fd);
		assert_int_equal(fd_tree_next_free(&tree, fd + 1), NR_FDS);
		set(fd, model);
	}
}

/* Two distant descriptors: the tree has few nodes, and a search skips the gap. */
TEST(sparse)
{
	set(SPARSE - 1, model);
	set(70, model);
	assert_in_range(tree.nr_nodes, 6, 8);
	assert_int_equal(fd_tree_next(&tree, 0), 70);
	assert_int_equal(fd_tree_next(&tree, 71), SPARSE - 1);
	assert_int_equal(fd_tree_next(&tree, SPARSE), -1);
	assert_int_equal(fd_tree_next_free(&tree, 70), 71);
	assert_int_equal(fd_tree_next_free(&tree, SPARSE - 1), SPARSE);
	assert_null(fd_tree_get(&tree, 5000));
	assert_null(fd_tree_leaf(&tree, INT32_MAX));
}

TEST(copy)
{
	struct fd_tree other = { 0 };

	fd_tree_init(&other);
	for (int fd = 0; fd < 300; fd++)
		set(fd, model + fd);
	fd_tree_leaf(&tree, 130)->marks = 5;
	for (int fd = 0; (fd = fd_tree_next(&tree, fd)) >= 0; fd += FD_TREE_SLOTS)
		assert_true(fd_tree_copy_leaf(&other, &tree, fd));
	assert_int_equal(fd_tree_leaf(&other, 130)->marks, 5);
	for (int fd = 0; fd < 300; fd++)
		assert_ptr_equal(fd_tree_get(&other, fd), model + fd);
	assert_int_equal(fd_tree_next_free(&other, 0), 300);
	fd_tree_free(&other);
}

/* Whichever allocation fails, the tree is unchanged and can be freed. */
TEST(no_memory)
{
	set(5, model);
	for (nr_allowed = 0; !fd_tree_make_leaf(&tree, SPARSE - 1); nr_allowed++) {
		assert_ptr_equal(fd_tree_get(&tree, 5), model);
		assert_int_equal(fd_tree_next(&tree, 6), -1);
		assert_int_equal(fd_tree_next_free(&tree, 5), 6);
	}
	assert_int_equal(nr_allowed, 6);
}

/* Fills nr descriptors, then frees and retakes some. Returns the highest cost of a round. */
static u64 worst_cost(int nr)
{
	u64 worst = 0;

	for (int fd = 0; fd < nr; fd++)
		set(fd, model);
	for (int n = 0; n < 1000; n++) {
		int fd = next_random(nr);

		nr_blocks = 0;
		set(fd, NULL);
		assert_int_equal(fd_tree_next_free(&tree, 0), fd);
		set(fd, model);
		assert_int_equal(fd_tree_next(&tree, fd), fd);
		assert_ptr_equal(fd_tree_get(&tree, fd), model);
		worst = max(worst, nr_blocks);
	}
	return worst;
}

TEST(cost_is_flat)
{
	u64 few = worst_cost(100), many = worst_cost(NR_FDS);

	assert_in_range(few, 10, 200); /* at least 10, to show that blocks are counted */
	assert_in_range(many, few, 2 * few);
}
