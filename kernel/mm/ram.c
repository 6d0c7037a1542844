// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where RAM is, in order, and the NUMA node of each range: from the loader's memory map, whose
 * ranges may overlap or be unsorted, and from ACPI's SRAT. Where RAM overlaps a range of another
 * kind, it is not RAM. A caller asks for one range after the other; nothing is stored.
 */

#include "internal.h"

#include <asm/acpi.h>
#include <lego/boot.h>
#include <lego/page.h>

#define NO_NODE (~0u)

/* The pages of a range: whole pages of RAM, and all that another kind touches. */
static phys_addr_t start_of(const struct boot_region *region)
{
	return region->usable ? ALIGN_UP(region->start, PAGE_SIZE) :
				ALIGN_DOWN(region->start, PAGE_SIZE);
}

static phys_addr_t end_of(const struct boot_region *region)
{
	phys_addr_t end = region->start + region->size_bytes;

	return region->usable ? ALIGN_DOWN(end, PAGE_SIZE) : ALIGN_UP(end, PAGE_SIZE);
}

static bool is_ram(phys_addr_t addr)
{
	bool found = false;

	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		const struct boot_region *region = &boot_info.regions[i];

		if (addr < start_of(region) || addr >= end_of(region))
			continue;
		if (!region->usable)
			return false;
		found = true;
	}
	return found;
}

static u32 node_of(phys_addr_t addr)
{
	for (unsigned int i = 0; i < acpi_info.nr_memory; i++) {
		const struct acpi_memory *memory = &acpi_info.memory[i];

		if (addr >= memory->start && addr - memory->start < memory->size_bytes)
			return memory->node;
	}
	return NO_NODE;
}

static void take_boundary(phys_addr_t *nearest, phys_addr_t after, phys_addr_t boundary)
{
	if (boundary > after && boundary < *nearest)
		*nearest = boundary;
}

/* Returns the first address after addr where something begins or ends. */
static phys_addr_t boundary_after(phys_addr_t addr)
{
	phys_addr_t nearest = ~0ull;

	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		take_boundary(&nearest, addr, start_of(&boot_info.regions[i]));
		take_boundary(&nearest, addr, end_of(&boot_info.regions[i]));
	}
	for (unsigned int i = 0; i < acpi_info.nr_memory; i++) {
		const struct acpi_memory *memory = &acpi_info.memory[i];

		take_boundary(&nearest, addr, ALIGN_UP(memory->start, PAGE_SIZE));
		take_boundary(&nearest, addr,
			      ALIGN_DOWN(memory->start + memory->size_bytes, PAGE_SIZE));
	}
	return nearest;
}

bool ram_next(phys_addr_t *start, phys_addr_t *end, u32 *node)
{
	while (!is_ram(*start)) {
		*start = boundary_after(*start);
		if (*start == ~0ull)
			return false;
	}
	*end = boundary_after(*start);
	*node = node_of(*start);
	return true;
}
