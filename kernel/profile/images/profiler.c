// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints images and code maps, for exports: a row for each. To find the file of a user address, a
 * reader takes the map of its record and follows `parent` to the first area that contains the
 * address. Reports only count code that had no room.
 */

#include "images.h"

#include "../profiler.h"
#include "../table.h"

enum {
	IMAGE,
	PATH,
	BYTES,
	BUILD_ID,
	NR_IMAGE_COLUMNS,
};

static const struct column image_columns[NR_IMAGE_COLUMNS] = {
	[IMAGE] = { NULL, "image", COLUMN_COUNT },
	[PATH] = { NULL, "path", COLUMN_TEXT },
	[BYTES] = { NULL, "bytes", COLUMN_COUNT },
	[BUILD_ID] = { NULL, "build_id", COLUMN_TEXT },
};

enum {
	MAP,
	PARENT,
	MAP_IMAGE,
	START,
	END,
	OFFSET,
	NR_MAP_COLUMNS,
};

static const struct column map_columns[NR_MAP_COLUMNS] = {
	[MAP] = { NULL, "code_map", COLUMN_COUNT },
	[PARENT] = { NULL, "parent", COLUMN_COUNT },
	[MAP_IMAGE] = { NULL, "image", COLUMN_COUNT },
	[START] = { NULL, "start", COLUMN_ADDRESS },
	[END] = { NULL, "end", COLUMN_ADDRESS },
	[OFFSET] = { NULL, "offset", COLUMN_ADDRESS },
};

static void print_image(u32 number)
{
	const struct image *image = image_get(number);
	char build_id[2 * IMAGE_BUILD_ID_BYTES + 1] = "";
	struct cell cells[NR_IMAGE_COLUMNS] = {
		[IMAGE] = cell_nr(number),
		[PATH] = cell_text(image->path),
		[BYTES] = cell_nr(image->bytes),
	};

	for (u32 i = 0; i < image->build_id_bytes; i++)
		os_snprintf(build_id + 2 * i, 3, "%02x", image->build_id[i]);
	if (image->build_id_bytes)
		cells[BUILD_ID] = cell_text(build_id);
	table_row(cells);
}

static void print_map(u32 number)
{
	const struct code_map *map = code_map_get(number);
	struct cell cells[NR_MAP_COLUMNS] = {
		[MAP] = cell_nr(number),	   [PARENT] = cell_nr(map->parent),
		[MAP_IMAGE] = cell_nr(map->image), [START] = cell_nr(map->start),
		[END] = cell_nr(map->end),	   [OFFSET] = cell_nr(map->file_offset),
	};

	table_row(cells);
}

static void print_lost(void)
{
	struct images_lost lost = images_lost();

	if (lost.nr_images + lost.nr_maps + lost.nr_too_deep)
		table_note("mappings of code without room, so without names in exports: "
			   "%lu files, %lu areas, %lu of processes with too many",
			   lost.nr_images, lost.nr_maps, lost.nr_too_deep);
}

static void print_images(const void *unused)
{
	static const struct table table = TABLE(image_columns);

	table_begin(&table, "Images");
	for (u32 i = 1, nr = images_nr(); i <= nr; i++)
		print_image(i);
	table_end_without_total();
	print_lost();
}

static void print_maps(const void *unused)
{
	static const struct table table = TABLE(map_columns);

	table_begin(&table, "Code maps");
	for (u32 i = 1, nr = code_maps_nr(); i <= nr; i++)
		print_map(i);
	table_end_without_total();
}

static void print(const struct report *unused)
{
	print_lost();
}

static const struct profiler_file files[] = {
	{ "profile/images.json", .print = print_images, .is_json = true },
	{ "profile/code_maps.json", .print = print_maps, .is_json = true },
	{ 0 },
};

/*
 * Printed after samples and waits, so that each image that they refer to is printed, too, and
 * before the events, for which an export may have no room.
 */
PROFILER(images) = {
	.name = "images",
	.place = 37,
	.init = image_symbols_init,
	.print = print,
	.end_reading = image_symbols_free,
	.files = PROFILER_FILES(files),
};
