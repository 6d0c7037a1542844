/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_IMAGES_H
#define PROFILE_IMAGES_H

/*
 * Images: the files that user code is mapped from, and where. images.c numbers them, so that a
 * record of a sample or a wait says with one number what its user addresses belong to, also when
 * its process is gone. profiler.c prints them.
 */

#include "../util.h"

#define IMAGE_PATH_BYTES     216
#define IMAGE_BUILD_ID_BYTES 20 /* SHA-1; the linker's other kinds are shorter */

#define MAX_IMAGES	   512
#define MAX_CODE_MAPS	   2048
#define MAX_CODE_MAP_DEPTH 128

/* A file with code. All of it is its key, with zeros behind the ends of path and build id. */
struct image {
	u64 bytes;	    /* the file's size */
	u32 build_id_bytes; /* 0: it has none */
	u8 build_id[IMAGE_BUILD_ID_BYTES];
	char path[IMAGE_PATH_BYTES];
};

/*
 * The code in an address space: an area, and what was mapped before, which is the map `parent`. An
 * area hides older ones that it overlaps. Processes that map the same files to the same places in
 * the same order have the same map. All of it is its key.
 */
struct code_map {
	u32 parent; /* 0: none */
	u32 image;  /* 0: hides what was there; no file is known */
	u64 start, end;
	u64 file_offset; /* of start */
};

/* Mappings of code that have no name in exports, since boot. */
struct images_lost {
	u64 nr_images;	 /* of new files, when there were MAX_IMAGES */
	u64 nr_maps;	 /* when there were MAX_CODE_MAPS */
	u64 nr_too_deep; /* behind MAX_CODE_MAP_DEPTH others of their process */
};

/* They never change or move. Numbers begin with 1. Any context. */
u32 images_nr(void);
u32 code_maps_nr(void);
const struct image *image_get(u32 number);
const struct code_map *code_map_get(u32 number);
struct images_lost images_lost(void);

/*
 * Copies the build id of an ELF file: the first note of type NT_GNU_BUILD_ID. Returns its length,
 * or 0 if there is none, or if it is longer than IMAGE_BUILD_ID_BYTES. Process context; sleeps.
 */
u32 image_read_build_id(os_file_t *file, u8 build_id[IMAGE_BUILD_ID_BYTES]);

#endif
