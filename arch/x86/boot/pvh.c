// SPDX-License-Identifier: BSD-2-Clause
/* PVH's struct hvm_start_info: Xen, public/arch-x86/hvm/start_info.h. */
#include "info.h"

#include <lego/boot.h>
#include <lego/bug.h>

#define START_INFO_MAGIC 0x336ec578
#define MEMMAP_RAM	 1
#define MAX_ENTRIES	 4096

struct start_info {
	u32 magic;
	u32 version;
	u32 flags;
	u32 nr_modules;
	u64 modules;
	u64 cmdline;
	u64 rsdp;
	/* Version 1 on. */
	u64 memmap;
	u32 nr_memmap;
	u32 reserved;
};

struct start_module {
	u64 start;
	u64 size_bytes;
	u64 cmdline;
	u64 reserved;
};

struct memmap_entry {
	u64 start;
	u64 size_bytes;
	u32 type;
	u32 reserved;
};

static void read_memmap(const struct start_info *info)
{
	u32 nr = min(info->nr_memmap, (u32)MAX_ENTRIES);
	const struct memmap_entry *entries = boot_data(info->memmap, nr * sizeof(*entries));

	if (info->version < 1 || !entries)
		return;
	for (u32 i = 0; i < nr; i++)
		boot_add_memory(entries[i].start, entries[i].size_bytes,
				entries[i].type == MEMMAP_RAM);
}

void pvh_read(u64 phys)
{
	const struct start_info *info = boot_data(phys, sizeof(*info));
	const struct start_module *module;
	const char *cmdline;

	if (!info || info->magic != START_INFO_MAGIC)
		panic("started by no loader that we know: no PVH start info at %#llx",
		      (unsigned long long)phys);
	cmdline = boot_data(info->cmdline, MAX_CMDLINE);
	if (cmdline)
		boot_set_cmdline(cmdline);
	read_memmap(info);
	module = boot_data(info->modules, sizeof(*module));
	if (info->nr_modules && module)
		boot_set_initrd(module->start, module->size_bytes);
	boot_info.rsdp = info->rsdp;
}
