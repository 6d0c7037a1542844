// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records which files' code is mapped in each address space, as the number of a code map: see
 * images.h. The hook runs when a VMA becomes executable, a few times in the life of a process. Most
 * of its cost is reading the file's build id, about 4,000 instructions.
 *
 * Equal files and equal maps get the same number, so thousands of processes of a few programs take
 * a few entries. The tables only grow: any record may contain a number, so numbers are never
 * reused. If a table is full, newly mapped code has no name, and is counted.
 */

#include "images.h"

#include <lego/stack_walk.h>

#define PATH_BYTES 256 /* a longer path reads as "(unreachable)" */

/* A set of items, compared by all of their bytes. The number of an item is its index + 1. */
struct numbering {
	void *items;
	u32 *slots; /* a hash table of numbers, twice as many as items; 0: free */
	u32 item_bytes, max;
	u32 nr; /* published with release */
	u64 nr_lost;
};

static os_lock_t images_lock = OS_LOCK_INIT; /* guards both numberings */
static struct image image_items[MAX_IMAGES];
static u32 image_slots[2 * MAX_IMAGES];
static struct numbering images = {
	.items = image_items,
	.slots = image_slots,
	.item_bytes = sizeof(struct image),
	.max = MAX_IMAGES,
};
static struct code_map map_items[MAX_CODE_MAPS];
static u32 map_slots[2 * MAX_CODE_MAPS];
static struct numbering maps = {
	.items = map_items,
	.slots = map_slots,
	.item_bytes = sizeof(struct code_map),
	.max = MAX_CODE_MAPS,
};
static u64 nr_too_deep;

PF_BUILD_BUG_ON(sizeof(struct image) % 8 || sizeof(struct code_map) % 8);

static const void *item(const struct numbering *n, u32 number)
{
	return (const char *)n->items + (number - 1) * (size_t)n->item_bytes;
}

static u32 first_slot(const struct numbering *n, const u64 *words)
{
	u64 hash = 0;

	for (u32 i = 0; i < n->item_bytes / sizeof(u64); i++)
		hash = stack_hash(hash, words[i]);
	return (hash >> 32) % (2 * n->max);
}

/* Returns the number of an item. Adds the item if it is new. 0: there is no room. */
static u32 number_of(struct numbering *n, const void *wanted)
{
	unsigned long flags = os_lock(&images_lock);
	u32 number, slot;

	for (slot = first_slot(n, wanted); n->slots[slot]; slot = (slot + 1) % (2 * n->max)) {
		if (!memcmp(item(n, n->slots[slot]), wanted, n->item_bytes))
			break;
	}
	number = n->slots[slot];
	if (!number && n->nr == n->max) {
		n->nr_lost++;
	} else if (!number) {
		number = n->slots[slot] = n->nr + 1;
		memcpy((char *)n->items + n->nr * (size_t)n->item_bytes, wanted, n->item_bytes);
		/* Pairs with the acquires in images_nr() and code_maps_nr(). */
		pf_store_release(&n->nr, number);
	}
	os_unlock(&images_lock, flags);
	return number;
}

u32 images_nr(void)
{
	return pf_load_acquire(&images.nr);
}

u32 code_maps_nr(void)
{
	return pf_load_acquire(&maps.nr);
}

const struct image *image_get(u32 number)
{
	return item(&images, number);
}

const struct code_map *code_map_get(u32 number)
{
	return item(&maps, number);
}

struct images_lost images_lost(void)
{
	return (struct images_lost){ pf_read_once(images.nr_lost), pf_read_once(maps.nr_lost),
				     pf_read_once(nr_too_deep) };
}

/* Returns the number of a file; 0: there is no room. */
static u32 image_number(os_file_t *file)
{
	struct image image = { .bytes = os_file_bytes(file) };
	char text[PATH_BYTES];
	const char *path = os_file_path(file, text, sizeof(text));
	size_t len = strlen(path);

	/* If the path is too long, keeps its end, which says more than its start. */
	if (len >= sizeof(image.path))
		path += len + 1 - sizeof(image.path);
	memcpy(image.path, path, strlen(path));
	image.build_id_bytes = image_read_build_id(file, image.build_id);
	return number_of(&images, &image);
}

static bool overlap(const struct code_map *a, const struct code_map *b)
{
	return a->start < b->end && b->start < a->end;
}

static bool is_inside(const struct code_map *inner, const struct code_map *outer)
{
	return inner->start >= outer->start && inner->end <= outer->end;
}

/* Returns the newest area of the map new->parent that overlaps the new area, or NULL. */
static const struct code_map *find_overlap(const struct code_map *new)
{
	const struct code_map *old;

	for (u32 number = new->parent; number; number = old->parent) {
		old = code_map_get(number);
		if (overlap(old, new))
			return old;
	}
	return NULL;
}

/*
 * Returns the map new->parent, without areas that the new one covers completely, and with the new
 * one.
 */
static u32 map_with(const struct code_map *new)
{
	u32 kept[MAX_CODE_MAP_DEPTH], nr = 0, number;
	struct code_map map;

	for (number = new->parent; number; number = code_map_get(number)->parent) {
		if (is_inside(code_map_get(number), new))
			continue;
		if (nr == MAX_CODE_MAP_DEPTH - 1) {
			__atomic_fetch_add(&nr_too_deep, 1, __ATOMIC_RELAXED);
			return 0;
		}
		kept[nr++] = number;
	}
	while (nr--) {
		map = *code_map_get(kept[nr]);
		map.parent = number;
		number = number_of(&maps, &map);
		if (!number)
			return 0;
	}
	map = *new;
	map.parent = number;
	return number_of(&maps, &map);
}

static void add_code(struct profile_mm *pm, const os_area_t *area)
{
	os_file_t *file = os_area_file(area);
	struct code_map new = {
		.parent = pm->code_map,
		.image = file ? image_number(file) : 0,
		.start = os_area_start(area),
		.end = os_area_end(area),
	};
	const struct code_map *old = find_overlap(&new);
	u32 number;

	if (new.image)
		new.file_offset = os_area_file_offset(area);
	if (old ? old->image == new.image &&is_inside(&new, old) &&
			    new.file_offset - new.start == old->file_offset - old->start :
		  !new.image)
		return; /* the map has it already */
	number = map_with(&new);
	/*
	 * Without room, hides the old area: no name is better than that of the file mapped before.
	 */
	if (number || old)
		pf_write_once(pm->code_map, number);
	/*
	 * The same addresses are other code now, so new samples must not be added to old records.
	 */
	if (old)
		os_change_task_keys();
}

void profile_area_changed(struct profile_mm *pm, const os_area_t *area)
{
	os_assert_process_context();
	if (os_area_is_code(area))
		add_code(pm, area);
}
