// SPDX-License-Identifier: BSD-2-Clause
/*
 * The multiboot2 information (Multiboot2 Specification version 2.0, section 3.6): its size, then
 * tags of a type and a size each, 8-byte aligned, to a tag of type 0. The first tag of each type
 * counts. Before a tag is read, it is checked to be inside; before a field is read, its tag is
 * checked to be long enough.
 */
#include "info.h"

#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/printk.h>
#include <lego/string.h>

enum tag_type {
	TAG_END = 0,
	TAG_CMDLINE = 1,
	TAG_LOADER = 2,
	TAG_MODULE = 3,
	TAG_MEMMAP = 6,
	TAG_RSDP_V1 = 14,
	TAG_RSDP_V2 = 15,
	NR_TAGS,
};

#define MEMMAP_RAM 1
#define TAG_ALIGN  8

struct info {
	u32 total_bytes;
	u32 reserved;
};

struct tag {
	u32 type;
	u32 size_bytes;
};

struct module_tag {
	struct tag tag;
	u32 start;
	u32 end;
	char cmdline[];
};

struct memmap_tag {
	struct tag tag;
	u32 entry_bytes;
	u32 entry_version;
	char entries[];
};

struct memmap_entry {
	u64 start;
	u64 size_bytes;
	u32 type;
	u32 reserved;
};

/* Returns the text in the rest of a tag; NULL if it has no NUL. */
static const char *tag_text(const struct tag *tag)
{
	const char *text = (const char *)(tag + 1);
	size_t max_bytes = tag->size_bytes - sizeof(*tag);

	return strnlen(text, max_bytes) < max_bytes ? text : NULL;
}

static void read_module(const struct tag *tag)
{
	const struct module_tag *module = (const struct module_tag *)tag;

	if (tag->size_bytes >= sizeof(*module) && module->end > module->start)
		boot_set_initrd(module->start, module->end - module->start);
}

static void read_memmap(const struct tag *tag)
{
	const struct memmap_tag *memmap = (const struct memmap_tag *)tag;
	u32 left_bytes, entry_bytes;
	const char *at = memmap->entries;

	if (tag->size_bytes < sizeof(*memmap))
		return;
	left_bytes = tag->size_bytes - sizeof(*memmap);
	entry_bytes = memmap->entry_bytes;
	if (entry_bytes < sizeof(struct memmap_entry))
		return;
	for (; left_bytes >= entry_bytes; left_bytes -= entry_bytes, at += entry_bytes) {
		struct memmap_entry entry;

		memcpy(&entry, at, sizeof(entry));
		boot_add_memory(entry.start, entry.size_bytes, entry.type == MEMMAP_RAM);
	}
}

static void read_tag(const struct tag *tag)
{
	u32 content_bytes = tag->size_bytes - sizeof(*tag);
	const char *text;

	switch (tag->type) {
	case TAG_CMDLINE:
		text = tag_text(tag);
		if (text)
			boot_set_cmdline(text);
		break;
	case TAG_LOADER:
		text = tag_text(tag);
		if (text)
			printk("Loader: %s\n", text);
		break;
	case TAG_MODULE:
		read_module(tag);
		break;
	case TAG_MEMMAP:
		read_memmap(tag);
		break;
	case TAG_RSDP_V1:
		/* Version 2 is preferred, and may come before or after version 1. */
		if (!boot_info.rsdp)
			boot_set_rsdp(tag + 1, content_bytes);
		break;
	case TAG_RSDP_V2:
		boot_set_rsdp(tag + 1, content_bytes);
		break;
	}
}

void multiboot2_read(u64 phys)
{
	const struct info *info = boot_data(phys, sizeof(*info));
	u32 at = sizeof(*info), total_bytes = info ? info->total_bytes : 0;
	bool seen[NR_TAGS] = {};

	if (!info || phys % TAG_ALIGN || !boot_data(phys, total_bytes))
		panic("the multiboot2 information at %#llx, %u bytes, is not in memory we can read",
		      (unsigned long long)phys, total_bytes);
	/* at is aligned and never beyond total_bytes by more than the alignment: no overflow. */
	while (at < total_bytes && total_bytes - at >= sizeof(struct tag)) {
		const struct tag *tag = (const void *)((const char *)info + at);

		if (tag->type == TAG_END)
			return;
		if (tag->size_bytes < sizeof(*tag) || tag->size_bytes > total_bytes - at)
			break;
		if (tag->type < NR_TAGS && !seen[tag->type]) {
			seen[tag->type] = true;
			read_tag(tag);
		}
		at += ALIGN_UP(tag->size_bytes, TAG_ALIGN);
	}
	printk("boot: the multiboot2 information is damaged at byte %u of %u\n", at, total_bytes);
}
