// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests kernel/mm/vma_tree.c: random changes against a map from page to area; and the cost does not
 * grow with the number of areas. Cost is counted in basic blocks (blocks.h).
 */

#include <string.h>

#include "unit_test.h"

#include "blocks.h"
#include "../../kernel/mm/vma_tree.h"
#include <lego/kernel.h>

#define PAGE	  4096ul
#define NR_PAGES  150 /* pages of the map, from MM_MIN_ADDR on */
#define MAX_AREAS 65536

/* Limits in basic blocks: for one level of the tree, and for the rest of an operation. */
#define BLOCKS_PER_LEVEL 30
#define BLOCKS_MORE	 60

static struct vma areas[MAX_AREAS];
static struct vma *map[NR_PAGES + 1]; /* the last page is always free */
static struct vma_tree tree;
static unsigned int nr_areas;

static int set_up(void **state)
{
	tree = (struct vma_tree){ 0 };
	memset(map, 0, sizeof(map));
	memset(areas, 0, sizeof(areas));
	nr_areas = 0;
	random_state = 1;
	return 0;
}

static u64 addr_of(u64 page)
{
	return MM_MIN_ADDR + page * PAGE;
}

static u64 page_of(u64 addr)
{
	return (addr - MM_MIN_ADDR) / PAGE;
}

static void fill(u64 page, u64 end, struct vma *vma)
{
	for (; page < end; page++)
		map[page] = vma;
}

/* Returns the last area that ends at or below the page. */
static struct vma *area_below(u64 page)
{
	while (page--) {
		if (map[page])
			return map[page];
	}
	return NULL;
}

static struct vma *area_from(u64 page)
{
	for (; page < NR_PAGES; page++) {
		if (map[page])
			return map[page];
	}
	return NULL;
}

/* Returns the end of the hole that has this page. */
static u64 end_of_hole(u64 page)
{
	while (page < NR_PAGES && !map[page])
		page++;
	return page;
}

static void add_area(u64 page)
{
	u64 end = page + 1 + next_random(end_of_hole(page) - page);
	struct vma *vma = areas;

	while (vma->end)
		vma++;
	vma->start = addr_of(page);
	vma->end = addr_of(end);
	vma_tree_add(&tree, vma, area_below(page));
	fill(page, end, vma);
	nr_areas++;
}

static void remove_area(struct vma *vma)
{
	vma_tree_remove(&tree, vma);
	fill(page_of(vma->start), page_of(vma->end), NULL);
	vma->end = 0;
	nr_areas--;
}

/* Moves the end of an area, down or up. */
static void move_end(struct vma *vma)
{
	u64 start = page_of(vma->start), room = end_of_hole(page_of(vma->end)) - start;
	u64 end = start + 1 + next_random(room);

	fill(start, page_of(vma->end), NULL);
	fill(start, end, vma);
	vma->end = addr_of(end);
	vma_tree_raise_gap(&tree, vma->next);
}

static void move_start(struct vma *vma)
{
	struct vma *below = area_below(page_of(vma->start));
	u64 lowest = below ? page_of(below->end) : 0, end = page_of(vma->end);
	u64 start = lowest + next_random(end - lowest);

	fill(page_of(vma->start), end, NULL);
	fill(start, end, vma);
	vma->start = addr_of(start);
	vma_tree_raise_gap(&tree, vma);
}

/* Lets an area grow over the next one, which becomes empty before it is removed. */
static void merge_with_next(struct vma *vma)
{
	struct vma *upper = vma->next;

	fill(page_of(vma->end), page_of(upper->end), vma);
	vma->end = upper->start = upper->end;
	remove_area(upper);
}

static void change(void)
{
	u64 page = next_random(NR_PAGES);
	struct vma *vma = map[page];

	if (!vma)
		add_area(page);
	else if (next_random(2))
		remove_area(vma);
	else if (vma->next && next_random(2))
		merge_with_next(vma);
	else if (next_random(2))
		move_end(vma);
	else
		move_start(vma);
}

/* Returns the highest free place for nr_pages that ends at or below end. Tries each page. */
static u64 highest_place(u64 end, u64 nr_pages)
{
	u64 nr_free = 0;

	for (u64 page = end; page--;) {
		nr_free = map[page] ? 0 : nr_free + 1;
		if (nr_free == nr_pages)
			return addr_of(page);
	}
	return 0;
}

static void compare(void)
{
	static u64 end;
	u64 nr_pages = 1 + next_random(1 + next_random(NR_PAGES)), place;
	struct vma *next;

	/* The same end several times: then a search goes on from the one before. */
	if (!end || !next_random(10))
		end = 1 + next_random(NR_PAGES);
	place = highest_place(end, nr_pages);

	assert_true(vma_tree_is_sound(&tree, nr_areas));
	for (u64 page = 0; page <= NR_PAGES; page++) {
		assert_ptr_equal(vma_tree_find(&tree, addr_of(page)), area_from(page));
		assert_ptr_equal(vma_tree_find(&tree, addr_of(page) + PAGE - 1), area_from(page));
	}
	assert_int_equal(vma_tree_place(&tree, addr_of(end), nr_pages * PAGE, &next), place);
	if (place)
		assert_ptr_equal(next, area_from(page_of(place)));
}

#define TEST(name) HOST_TEST_WITH(name, set_up, NULL)

TEST(random_changes)
{
	for (int round = 0; round < 20000; round++) {
		change();
		compare();
	}
	while (tree.root) {
		remove_area(tree.root);
		compare();
	}
	assert_int_equal(nr_areas, 0);
}

/* Builds trees of every size at once; they must be sound and can be changed. */
TEST(build)
{
	for (u64 nr = 0; nr <= NR_PAGES / 2; nr++) {
		set_up(NULL);
		for (u64 i = 0; i < nr; i++) {
			areas[i].start = addr_of(2 * i + i % 2);
			areas[i].end = areas[i].start + PAGE;
			map[2 * i + i % 2] = &areas[i];
			vma_tree_append(&tree, &areas[i]);
		}
		nr_areas = nr;
		vma_tree_build(&tree, nr);
		compare();
		for (int i = 0; i < 20; i++)
			change();
		compare();
	}
}

/* vma_tree_is_sound() finds a wrong value in any field. */
TEST(damage_is_found)
{
	struct vma *vma, good;

	for (int i = 0; i < 100; i++)
		change();
	vma = tree.root->child[1];
	good = *vma;
	assert_true(vma_tree_is_sound(&tree, nr_areas));
	assert_false(vma_tree_is_sound(&tree, nr_areas + 1));
	assert_false(vma_tree_is_sound(&tree, nr_areas - 1));
	vma->height++;
	assert_false(vma_tree_is_sound(&tree, nr_areas));
	*vma = good;
	vma->max_gap = 0;
	assert_false(vma_tree_is_sound(&tree, nr_areas));
	*vma = good;
	vma->start = vma->prev->start;
	assert_false(vma_tree_is_sound(&tree, nr_areas));
	*vma = good;
	vma->child[0] = vma->child[1];
	assert_false(vma_tree_is_sound(&tree, nr_areas));
	*vma = good;
	vma->next = NULL;
	assert_false(vma_tree_is_sound(&tree, nr_areas));
	*vma = good;
	tree.place_above = tree.first;
	tree.place_end = addr_of(NR_PAGES);
	tree.place_bytes = NR_PAGES * PAGE;
	assert_true(vma_tree_is_sound(&tree, nr_areas));
	tree.place_bytes = PAGE;
	assert_false(vma_tree_is_sound(&tree, nr_areas));
}

/* Bounds of holes stay high when holes shrink, until they mislead a search. */
TEST(search_lowers_bounds)
{
	struct vma *next;

	set_up(NULL);
	for (u64 i = 0; i < 8; i++) {
		areas[i].start = addr_of(8 * i);
		areas[i].end = areas[i].start + PAGE;
		map[8 * i] = &areas[i];
		vma_tree_append(&tree, &areas[i]);
	}
	nr_areas = 8;
	vma_tree_build(&tree, nr_areas);
	assert_int_equal(tree.root->max_gap, 7 * PAGE);
	for (u64 i = 0; i < 7; i++) {
		fill(8 * i, 8 * i + 6, &areas[i]);
		areas[i].end = addr_of(8 * i + 6);
	}
	assert_int_equal(tree.root->max_gap, 7 * PAGE);
	assert_int_equal(vma_tree_place(&tree, addr_of(8 * 7), 3 * PAGE, &next), 0);
	for (struct vma *vma = areas[6].child[0]; vma; vma = vma->child[1])
		assert_true(vma->max_gap < 3 * PAGE);
	assert_true(tree.root->child[0]->max_gap < 3 * PAGE);
	compare();
}

static u64 limit(u64 nr)
{
	u64 levels = 0;

	while (nr >> levels)
		levels++;
	return BLOCKS_MORE + BLOCKS_PER_LEVEL * levels * 3 / 2;
}

/*
 * Places nr adjacent areas from the top down, then removes and places some again. Returns the
 * average cost of an operation: a search may also lower the bounds that others left too high.
 */
static u64 average_cost(u64 nr)
{
	u64 end = addr_of(MAX_AREAS);

	nr_blocks = 0;
	for (u64 n = 0; n < 2 * nr; n++) {
		struct vma *vma = &areas[n < nr ? n : next_random(nr)], *next;
		u64 place;

		if (n >= nr)
			vma_tree_remove(&tree, vma);
		place = vma_tree_place(&tree, end, PAGE, &next);
		assert_true(n < nr ? place == end - (n + 1) * PAGE : place == vma->start);
		assert_ptr_equal(next, vma_tree_find(&tree, place));
		vma->start = place;
		vma->end = place + PAGE;
		vma_tree_add(&tree, vma, next ? next->prev : tree.last);
	}
	assert_true(vma_tree_is_sound(&tree, nr));
	return nr_blocks / (2 * nr);
}

TEST(cost_is_logarithmic)
{
	static const u64 nrs[] = { 100, 1000, MAX_AREAS };

	for (size_t i = 0; i < ARRAY_SIZE(nrs); i++) {
		set_up(NULL);
		/* At least 10, to show that blocks are counted. */
		assert_in_range(average_cost(nrs[i]), 10, limit(nrs[i]));
	}
}

/* Finds the place for an area below many that meet, again and again, without a search. */
TEST(search_goes_on)
{
	struct vma *vma = &areas[1000], *next;

	average_cost(1000);
	vma->start = addr_of(MAX_AREAS) - 1001 * PAGE;
	vma->end = vma->start + PAGE;
	for (int i = 0; i < 10; i++) {
		nr_blocks = 0;
		assert_int_equal(vma_tree_place(&tree, addr_of(MAX_AREAS), PAGE, &next),
				 vma->start);
		if (i) /* the first one may lower bounds */
			assert_in_range(nr_blocks, 1, 10);
		assert_ptr_equal(next, tree.first);
		vma_tree_add(&tree, vma, NULL);
		vma_tree_remove(&tree, vma);
	}
}
