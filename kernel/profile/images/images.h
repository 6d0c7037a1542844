/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_IMAGES_H
#define PROFILE_IMAGES_H

/*
 * Images: the files that user code is mapped from, and where. images.c gives them numbers. So a
 * record of a sample or a wait needs one number to resolve its user addresses, even when its
 * process is gone. profiler.c prints the files and maps.
 */

#include "../util.h"
#include "os.h"

#define IMAGE_PATH_BYTES     216
#define IMAGE_BUILD_ID_BYTES 20 /* SHA-1; the linker's other kinds are shorter */

#define MAX_IMAGES	   512
#define MAX_CODE_MAPS	   2048
#define MAX_CODE_MAP_DEPTH 128

/* A file with code. The whole struct is its key; path and build id are padded with zeros. */
struct image {
	u64 bytes;	    /* size of the file */
	u64 changed_ns;	    /* when it was changed, for a file without a build id; else 0 */
	u32 build_id_bytes; /* 0: it has none */
	u8 build_id[IMAGE_BUILD_ID_BYTES];
	char path[IMAGE_PATH_BYTES];
};

/*
 * The code in an address space, as a list: the area that was mapped last, and the map before it,
 * `parent`. An area hides older ones that it overlaps. Processes that map the same files at the
 * same addresses in the same order have the same map. The whole struct is its key.
 */
struct code_map {
	u32 parent; /* 0: none */
	u32 image;  /* 0: no file is known; the area only hides older ones */
	u64 start, end;
	u64 file_offset; /* at start */
};

/* Mappings of code that have no name in exports, since boot. */
struct images_lost {
	u64 nr_images;	 /* because there were MAX_IMAGES files */
	u64 nr_maps;	 /* because there were MAX_CODE_MAPS maps */
	u64 nr_too_deep; /* because the process had MAX_CODE_MAP_DEPTH areas */
};

/* Numbers begin with 1. An image or a map never changes or moves. Any context. */
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

/*
 * unwind.c: makes the table of a file that is mapped as this image, if it has none yet. Process
 * context; sleeps.
 */
void image_unwind_add(u32 image, os_file_t *file);

/*
 * jit.c: a process has code of no file. Exports have the names that it gives to its functions. Any
 * context.
 */
void image_jit_add(int pid);

/* symbols.c: the second one frees the tables of symbols, at the end of a reader's turn. */
void image_symbols_init(void);
void image_symbols_free(void);

#endif
