/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BOOT_INFO_H
#define BOOT_INFO_H

/*
 * The interface between the readers of the boot protocols and boot_info. Everything runs on the
 * boot CPU, with head.S's page table. The loader's data is in the low 4 GiB, which that table maps,
 * outside the image. It is read before any page is allocated.
 */

#include <lego/types.h>

/* Returns the loader's data at phys; NULL if phys is 0 or not all of it is mapped. */
const void *boot_data(u64 phys, u64 size_bytes);

/* Copies the command line. Truncates it, with a warning, if it does not fit. */
void boot_set_cmdline(const char *cmdline);

/* Adds an entry of the memory map. Any numbers are accepted. */
void boot_add_memory(u64 start, u64 size_bytes, bool usable);

/* Sets the place of the initramfs. It is checked when the memory map is complete. */
void boot_set_initrd(u64 start, u64 size_bytes);

/* Copies the loader's copy of ACPI's RSDP. Ignores it if its size is not that of an RSDP. */
void boot_set_rsdp(const void *rsdp, u32 size_bytes);

/* Read the data that a loader of either kind left at phys. Panic if it is invalid. */
void pvh_read(u64 phys);
void multiboot2_read(u64 phys);

#endif
