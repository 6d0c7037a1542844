/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_IMAGES_HOOKS_H
#define PROFILE_IMAGES_HOOKS_H

/* The hooks of images, a part of <profile/profile.h>. */

struct profile_images_task {
	pf_may_be_empty;
};
struct profile_images_process {
	pf_may_be_empty;
};

/* Embedded in struct mm as `profile`. */
struct profile_mm {
#ifdef CONFIG_PROFILE_IMAGES
	u32 code_map; /* number of its code map: see images/images.h; 0: no code yet */
#endif
#ifdef CONFIG_PROFILE_MEMORY_CHAINS
	u64 memory_pass; /* for os_process_pages(): the last pass that has read it */
#endif
	pf_may_be_empty;
};

#ifdef CONFIG_PROFILE_IMAGES
/*
 * Adds an area that is new, larger, or has other rights to the code map of its address space, if it
 * is executable. The caller keeps others from changing the areas. Process context; sleeps.
 */
void profile_area_changed(struct profile_mm *pm, const os_area_t *area);
/* Without a call for other areas, if the header of hooks has the macro, which is expanded here. */
#ifdef os_area_is_code
#define profile_area_changed(pm, area)                        \
	do {                                                  \
		if (os_area_is_code(area))                    \
			(profile_area_changed)((pm), (area)); \
	} while (0)
#endif

/* Copies the number of the code map when an address space is copied. */
static inline void profile_mm_copy(struct profile_mm *to, const struct profile_mm *from)
{
	to->code_map = from->code_map;
}
#else
#define profile_area_changed(pm, area) ((void)0)
#define profile_mm_copy(to, from)      ((void)0)
#endif

/* Returns the number of the code map of an address space; 0: none. Any context. */
static inline u32 profile_code_map(const struct profile_mm *pm)
{
#ifdef CONFIG_PROFILE_IMAGES
	return pf_read_once(pm->code_map);
#else
	return 0;
#endif
}

#endif
