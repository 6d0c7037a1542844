// SPDX-License-Identifier: BSD-2-Clause
/*
 * Allocates memory before the page allocator works: from the free ranges of RAM, in the loader's
 * order, each from its start. The loader's ranges may overlap or be unsorted. Where RAM overlaps a
 * range of another kind, it is not used.
 *
 * memory_start=<address> makes the page allocator's memory begin there. The kernel's image and the
 * early allocations lie below, so their sizes do not decide which pages are allocated later:
 * kernels of different sizes do the same work in the page allocator.
 */

#include "internal.h"

#include <asm/setup.h>
#include <lego/assert.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/params.h>
#include <lego/string.h>

#define LOW_MEMORY_END (1UL << 20)
#define MAX_RANGES     (2 * MAX_BOOT_REGIONS + 8)

static struct early_range ranges[MAX_RANGES];
static unsigned int nr_ranges;
static bool ready, closed;
static phys_addr_t memory_start; /* 0: right behind the early allocations */

static int set_memory_start(const char *value)
{
	u64 start;

	if (parse_u64(value, &start) || start % PAGE_SIZE)
		return -EINVAL;
	memory_start = start;
	return 0;
}
/*
 * Pages are allocated from this physical address on, whatever the image's size, for exact
 * comparisons.
 */
BOOT_PARAM(memory_start, "memory_start", "<address of a page>", set_memory_start);

static void range_add(phys_addr_t start, phys_addr_t end)
{
	DEBUG_ASSERT(!closed);
	if (start >= end)
		return;
	if (nr_ranges == MAX_RANGES)
		panic("the memory map has too many pieces");
	ranges[nr_ranges++] = (struct early_range){ start, end };
}

/* Removes [start, end) from all ranges. */
static void range_carve(phys_addr_t start, phys_addr_t end)
{
	for (unsigned int i = nr_ranges; i-- > 0;) {
		struct early_range *range = &ranges[i];
		phys_addr_t range_end = range->end;

		if (end <= range->start || start >= range_end)
			continue;
		range->end = max(range->start, min(start, range_end));
		range_add(end, range_end);
	}
}

static void ranges_init(void)
{
	const struct boot_region *region;
	phys_addr_t initrd_end = boot_info.initrd_start + boot_info.initrd_size_bytes;

	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		phys_addr_t start, end;

		region = &boot_info.regions[i];
		if (!region->usable)
			continue;
		start = ALIGN_UP(region->start, PAGE_SIZE);
		end = ALIGN_DOWN(region->start + region->size_bytes, PAGE_SIZE);
		range_carve(start, end);
		range_add(start, end);
	}
	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		region = &boot_info.regions[i];
		if (!region->usable && region->size_bytes)
			range_carve(ALIGN_DOWN(region->start, PAGE_SIZE),
				    ALIGN_UP(region->start + region->size_bytes, PAGE_SIZE));
	}
	range_carve(0, LOW_MEMORY_END);
	range_carve(virt_to_phys(_text), virt_to_phys(_end));
	if (boot_info.initrd_size_bytes)
		range_carve(ALIGN_DOWN(boot_info.initrd_start, PAGE_SIZE),
			    ALIGN_UP(initrd_end, PAGE_SIZE));
	ready = true;
}

phys_addr_t early_alloc_pages(u64 nr_pages)
{
	BUG_ON(closed);
	if (!ready)
		ranges_init();
	for (unsigned int i = 0; i < nr_ranges; i++) {
		struct early_range *range = &ranges[i];
		phys_addr_t phys = range->start, end = range->end;

		if (memory_start)
			end = max(phys, min(end, memory_start));
		if ((end - phys) >> PAGE_SHIFT < nr_pages)
			continue;
		range->start += nr_pages << PAGE_SHIFT;
		return phys;
	}
	panic("not enough memory to boot: no %llu pages in one piece%s",
	      (unsigned long long)nr_pages, memory_start ? " below memory_start" : "");
}

phys_addr_t page_alloc_early(void)
{
	phys_addr_t phys = early_alloc_pages(1);

	memset(phys_to_virt(phys), 0, PAGE_SIZE);
	return phys;
}

const struct early_range *early_ranges(unsigned int *nr)
{
	if (memory_start)
		range_carve(0, memory_start);
	closed = true;
	*nr = nr_ranges;
	return ranges;
}

phys_addr_t early_ram_end(void)
{
	phys_addr_t end = 0;

	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		const struct boot_region *region = &boot_info.regions[i];

		if (region->usable)
			end = max(end, region->start + region->size_bytes);
	}
	return end;
}
