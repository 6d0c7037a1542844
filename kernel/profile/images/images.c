// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records which files' code is mapped in each address space, as the number of a code map: see
 * images.h. The hook runs when a VMA becomes executable, a few times in the life of a process.
 * Reading a file's build id takes about 4,000 instructions, so the image of each of the last 64
 * files is kept as long as the file does not change.
 *
 * Equal files and equal maps get the same number, so thousands of processes of a few programs take
 * a few entries. The tables only grow: any record may contain a number, so numbers are never
 * reused. If a table is full, newly mapped code has no name, and is counted.
 */

#include "images.h"

#include "../rows.h"

#define PATH_BYTES 256 /* a longer path reads as "(unreachable)" */

/* A set of items, compared by all of their bytes. The number of an item is its index + 1. */
struct numbering {
	struct rows rows;
	u32 nr;
	u64 nr_lost;
};

#define NUMBERING(name, type, max_)                                                       \
	static type name##_items[max_];                                                   \
	static u16 name##_slots[ROWS_SLOTS(max_)];                                        \
	static struct numbering name = { .rows = {                                        \
						 .rows = name##_items,                    \
						 .slots = name##_slots,                   \
						 .nr = &name.nr,                          \
						 .row_bytes = sizeof(type),               \
						 .key_words = sizeof(type) / sizeof(u64), \
						 .max = max_,                             \
					 } }

static os_lock_t images_lock = OS_LOCK_INIT; /* guards both numberings */
NUMBERING(images, struct image, MAX_IMAGES);
NUMBERING(maps, struct code_map, MAX_CODE_MAPS);
static u64 nr_too_deep;

PF_BUILD_BUG_ON(sizeof(struct image) % 8 || sizeof(struct code_map) % 8);

/* Returns the number of an item. Adds the item if it is new. 0: there is no room. */
static u32 number_of(struct numbering *n, const void *wanted)
{
	unsigned long flags = os_lock(&images_lock);
	const char *item = rows_find(&n->rows, wanted);

	n->nr_lost += !item;
	os_unlock(&images_lock, flags);
	return item ? (item - (const char *)n->rows.rows) / n->rows.row_bytes + 1 : 0;
}

/* The acquires pair with the release in rows_add(). */
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
	return rows_at(&images.rows, number - 1);
}

const struct code_map *code_map_get(u32 number)
{
	return rows_at(&maps.rows, number - 1);
}

struct images_lost images_lost(void)
{
	return (struct images_lost){ pf_read_once(images.nr_lost), pf_read_once(maps.nr_lost),
				     pf_read_once(nr_too_deep) };
}

#define NR_KNOWN    64
#define NUMBER_BITS 10

PF_BUILD_BUG_ON(MAX_IMAGES >= 1 << NUMBER_BITS);

/* Versions of files, and below each the number of its image. The index is that of the version. */
static u64 known[NR_KNOWN];

/* Says whether a file with a known version, which may have another name now, is this image. */
static bool is_known(u64 entry, u64 version, const char *path, os_file_t *file)
{
	const struct image *old;

	if (!version || entry >> NUMBER_BITS != version)
		return false;
	old = image_get(entry & (PF_BIT(NUMBER_BITS) - 1));
	return !strcmp(old->path, path) &&
	       (old->build_id_bytes || old->changed_ns == os_file_changed_ns(file));
}

/* Returns the number of a file; 0: there is no room. */
static u32 image_number(os_file_t *file)
{
	u64 version = os_file_version(file); /* before the content is read */
	u64 *place = &known[version % NR_KNOWN], entry = pf_read_once(*place);
	char text[PATH_BYTES];
	const char *path = os_file_path(file, text, sizeof(text));
	size_t len = strlen(path);
	struct image image;
	u32 number;

	/* If the path is too long, keeps its end, which says more than its start. */
	if (len >= sizeof(image.path))
		path += len + 1 - sizeof(image.path);
	if (is_known(entry, version, path, file))
		return entry & (PF_BIT(NUMBER_BITS) - 1);
	image = (struct image){ .bytes = os_file_bytes(file) };
	memcpy(image.path, path, strlen(path));
	image.build_id_bytes = image_read_build_id(file, image.build_id);
	if (!image.build_id_bytes)
		image.changed_ns = os_file_changed_ns(file);
	number = number_of(&images, &image);
	if (version && number)
		pf_write_once(*place, version << NUMBER_BITS | number);
	return number;
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

static pf_noinline void add_code(struct profile_mm *pm, const os_area_t *area)
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

	if (!file)
		image_jit_add(os_current_pid());
	image_unwind_add(new.image, file);
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

void(profile_area_changed)(struct profile_mm *pm, const os_area_t *area)
{
	os_assert_process_context();
	if (!os_key_on(&profile_off_key) && os_area_is_code(area))
		add_code(pm, area);
}
