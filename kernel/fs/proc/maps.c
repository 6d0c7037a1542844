// SPDX-License-Identifier: BSD-2-Clause
/* /proc/<pid>/maps, smaps and smaps_rollup: the areas of a process, and their pages in memory. */

#include "../mount.h"
#include "../path.h"
#include "internal.h"

#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/slab.h>
#include <lego/string.h>

/* Returns the name of an area without a file. */
static const char *area_name(const struct mm *mm, const struct mm_area_info *area)
{
	if (area->anonymous_shared)
		return "/dev/zero (deleted)";
	if (area->start <= mm->layout.start_stack && mm->layout.start_stack < area->end)
		return "[stack]";
	return area->start < mm->brk && mm->brk_start < area->end ? "[heap]" : "";
}

static void show_area(struct text *text, const struct mm *mm, const struct mm_area_info *area,
		      char *path)
{
	bool named = area->file && !area->anonymous_shared;
	int start = text->len;

	text_printf(text, "%08llx-%08llx %c%c%c%c %08llx 00:%02x %llu ",
		    (unsigned long long)area->start, (unsigned long long)area->end,
		    area->prot & PROT_READ ? 'r' : '-', area->prot & PROT_WRITE ? 'w' : '-',
		    area->prot & PROT_EXEC ? 'x' : '-', area->flags & MAP_SHARED ? 's' : 'p',
		    (unsigned long long)area->file_offset,
		    area->file ? area->file->inode->fs->device : 0,
		    area->file ? (unsigned long long)area->file->inode->number : 0ull);
	/* The name begins in column 74. */
	text_printf(text, "%*s%pE\n", max(73 - (int)(text->len - start), 0), "",
		    named ? file_path(area->file, path, PATH_MAX) : area_name(mm, area));
}

static void show_bytes(struct text *text, const char *name, u64 bytes)
{
	int len = strlen(name);

	text_printf(text, "%s:%*s%8llu kB\n", name, 15 - len, "", (unsigned long long)bytes >> 10);
}

/* Prints the usage. No memory is swapped, locked or in large pages here. */
static void show_usage(struct text *text, const struct mm_usage *usage)
{
	u64 dirty = usage->shared_dirty + usage->private_dirty;

	show_bytes(text, "Rss", usage->shared_clean + usage->private_clean + dirty);
	show_bytes(text, "Pss", usage->proportional >> MM_USAGE_SHIFT);
	show_bytes(text, "Pss_Dirty", usage->proportional_dirty >> MM_USAGE_SHIFT);
	show_bytes(text, "Shared_Clean", usage->shared_clean);
	show_bytes(text, "Shared_Dirty", usage->shared_dirty);
	show_bytes(text, "Private_Clean", usage->private_clean);
	show_bytes(text, "Private_Dirty", usage->private_dirty);
	show_bytes(text, "Referenced", usage->shared_clean + usage->private_clean + dirty);
	show_bytes(text, "Anonymous", usage->anonymous);
	show_bytes(text, "LazyFree", 0);
	show_bytes(text, "AnonHugePages", 0);
	show_bytes(text, "ShmemPmdMapped", 0);
	show_bytes(text, "FilePmdMapped", 0);
	show_bytes(text, "Shared_Hugetlb", 0);
	show_bytes(text, "Private_Hugetlb", 0);
	show_bytes(text, "Swap", 0);
	show_bytes(text, "SwapPss", 0);
	show_bytes(text, "Locked", 0);
}

static void show_area_usage(struct text *text, const struct mm_area_info *area,
			    const struct mm_usage *usage)
{
	show_bytes(text, "Size", area->end - area->start);
	show_bytes(text, "KernelPageSize", PAGE_SIZE);
	show_bytes(text, "MMUPageSize", PAGE_SIZE);
	show_usage(text, usage);
	text_printf(text, "THPeligible:           0\nVmFlags:%s%s%s%s mr mw me\n",
		    area->prot & PROT_READ ? " rd" : "", area->prot & PROT_WRITE ? " wr" : "",
		    area->prot & PROT_EXEC ? " ex" : "", area->flags & MAP_SHARED ? " sh" : "");
}

enum what {
	AREAS,
	AREAS_AND_USAGE,
	ALL_USAGE,
};

static void add_usage(struct mm_usage *sum, const struct mm_usage *usage)
{
	sum->shared_clean += usage->shared_clean;
	sum->shared_dirty += usage->shared_dirty;
	sum->private_clean += usage->private_clean;
	sum->private_dirty += usage->private_dirty;
	sum->anonymous += usage->anonymous;
	sum->proportional += usage->proportional;
	sum->proportional_dirty += usage->proportional_dirty;
}

#define AREAS_AT_A_TIME 32

static int maps_show(struct text *text, struct process *proc, enum what what)
{
	struct mm *mm = process_get_mm(proc);
	struct mm_area_info *areas = kmalloc(AREAS_AT_A_TIME * sizeof(*areas));
	char *path = kmalloc(PATH_MAX);
	struct mm_usage usage, sum = { 0 };
	u64 addr = 0, start = 0;
	unsigned int nr;

	while (mm && areas && path && (nr = mm_get_areas(mm, addr, areas, AREAS_AT_A_TIME))) {
		start = addr ? start : areas[0].start;
		for (unsigned int i = 0; i < nr; i++) {
			if (what != ALL_USAGE)
				show_area(text, mm, &areas[i], path);
			if (what == AREAS)
				continue;
			mm_get_usage(mm, &areas[i], &usage);
			if (what == AREAS_AND_USAGE)
				show_area_usage(text, &areas[i], &usage);
			add_usage(&sum, &usage);
		}
		addr = areas[nr - 1].end;
		mm_put_areas(areas, nr);
		cond_resched();
	}
	if (mm && what == ALL_USAGE) {
		text_printf(text, "%08llx-%08llx ---p 00000000 00:00 0%26s[rollup]\n",
			    (unsigned long long)start, (unsigned long long)addr, "");
		show_usage(text, &sum);
	}
	kfree(path);
	kfree(areas);
	if (mm)
		mm_put(mm);
	return path && areas ? 0 : -ENOMEM;
}

int proc_show_maps(struct text *text, struct process *proc)
{
	return maps_show(text, proc, AREAS);
}

int proc_show_smaps(struct text *text, struct process *proc)
{
	return maps_show(text, proc, AREAS_AND_USAGE);
}

int proc_show_smaps_rollup(struct text *text, struct process *proc)
{
	return maps_show(text, proc, ALL_USAGE);
}
