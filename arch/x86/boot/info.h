/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BOOT_INFO_H
#define BOOT_INFO_H

/*
 * Between the readers of the boot protocols and boot_info. All on the boot CPU, on head.S's page
 * table: what loaders leave lies in the low 4 GiB, which that maps, and outside the image; it is
 * used up before any page is allocated.
 */

#include <lego/types.h>

/* The loader's data at phys; NULL if phys is 0 or not all of it is mapped. */
const void *boot_data(u64 phys, u64 size_bytes);

/* Copied; what does not fit is cut, with a warning. */
void boot_set_cmdline(const char *cmdline);

/* One entry of the memory map; any numbers will do. */
void boot_add_memory(u64 start, u64 size_bytes, bool usable);

/* The initramfs: checked against the memory map when that is complete. */
void boot_set_initrd(u64 start, u64 size_bytes);

/* A loader's copy of ACPI's RSDP, of which another is made; ignored if of no size an RSDP has. */
void boot_set_rsdp(const void *rsdp, u32 size_bytes);

/* Read what a loader of either kind left at phys. Panics if it is not what it should be. */
void pvh_read(u64 phys);
void multiboot2_read(u64 phys);

#endif
