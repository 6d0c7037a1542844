// SPDX-License-Identifier: BSD-2-Clause
/*
 * First C code: console, traps, then what the loader says about the machine. PVH's struct
 * hvm_start_info (Xen, public/arch-x86/hvm/start_info.h) and all it points to lie in the low 4 GiB,
 * which head.S has mapped; the physical memory map in it may be in any order, overlap, and end
 * anywhere.
 */
#include <lego/boot.h>

#include <asm/desc.h>
#include <asm/setup.h>
#include <asm/uart.h>
#include <lego/bug.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/sort.h>
#include <lego/string.h>

#define START_INFO_MAGIC 0x336ec578
#define MAPPED_BYTES	 (4ULL << 30)
#define MEMMAP_RAM	 1
#define MAX_PHYS	 (64ULL << 40) /* what fits between PAGE_OFFSET and VMAP_START */
#define MAX_MEMMAP	 MAX_BOOT_REGIONS

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

/* NULL if not all of it is mapped. */
static const void *boot_data(u64 phys, u64 size_bytes)
{
	if (!phys || size_bytes > MAPPED_BYTES || phys > MAPPED_BYTES - size_bytes)
		return NULL;
	return phys_to_virt(phys);
}

static void copy_cmdline(u64 phys)
{
	const char *cmdline = boot_data(phys, MAX_CMDLINE);

	if (!cmdline)
		return;
	if (strscpy(boot_info.cmdline, cmdline, MAX_CMDLINE) < 0)
		printk("boot: the command line is cut to %d characters\n", MAX_CMDLINE - 1);
	printk("Command line: %s\n", boot_info.cmdline);
}

/* Pages: RAM shrinks to whole ones, everything else grows. */
static struct boot_region page_region(const struct memmap_entry *entry)
{
	bool usable = entry->type == MEMMAP_RAM;
	u64 start = min(entry->start, (u64)MAX_PHYS);
	u64 end = start + min(entry->size_bytes, MAX_PHYS - start);

	start = usable ? ALIGN_UP(start, PAGE_SIZE) : ALIGN_DOWN(start, PAGE_SIZE);
	end = usable ? ALIGN_DOWN(end, PAGE_SIZE) : ALIGN_UP(end, PAGE_SIZE);
	return (struct boot_region){
		.start = start,
		.size_bytes = end > start ? end - start : 0,
		.usable = usable,
	};
}

static int compare_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void add_region(u64 start, u64 end, bool usable)
{
	struct boot_region *last = &boot_info.regions[boot_info.nr_regions];

	if (boot_info.nr_regions && last[-1].usable == usable &&
	    last[-1].start + last[-1].size_bytes == start) {
		last[-1].size_bytes = end - last[-1].start;
		return;
	}
	if (boot_info.nr_regions == MAX_BOOT_REGIONS) {
		printk("boot: memory map too long, memory at %#llx ignored\n",
		       (unsigned long long)start);
		return;
	}
	*last = (struct boot_region){ .start = start, .size_bytes = end - start, .usable = usable };
	boot_info.nr_regions++;
}

/* What the entries say about [start, end), which no entry covers in part: anything else beats RAM.
 */
static void add_interval(const struct boot_region *raw, unsigned int nr, u64 start, u64 end)
{
	bool covered = false, usable = true;

	for (unsigned int i = 0; i < nr; i++) {
		if (raw[i].start > start || raw[i].start + raw[i].size_bytes < end)
			continue;
		covered = true;
		usable &= raw[i].usable;
	}
	if (covered)
		add_region(start, end, usable);
}

/* Cut all entries at every entry's borders, and merge equal neighbours again. */
static void sanitise_memmap(const struct memmap_entry *entries, unsigned int nr_entries)
{
	static struct boot_region raw[MAX_MEMMAP];
	static u64 borders[2 * MAX_MEMMAP];
	unsigned int nr = 0;

	for (unsigned int i = 0; i < nr_entries; i++) {
		raw[nr] = page_region(&entries[i]);
		if (!raw[nr].size_bytes)
			continue;
		borders[2 * nr] = raw[nr].start;
		borders[2 * nr + 1] = raw[nr].start + raw[nr].size_bytes;
		nr++;
	}
	sort(borders, 2 * nr, sizeof(borders[0]), compare_u64);
	for (unsigned int i = 1; i < 2 * nr; i++)
		if (borders[i - 1] != borders[i])
			add_interval(raw, nr, borders[i - 1], borders[i]);
}

static void read_memmap(const struct start_info *info)
{
	const struct memmap_entry *entries;
	u32 nr = info->nr_memmap;
	u64 nr_bytes = 0;

	if (nr > MAX_MEMMAP) {
		printk("boot: only %u of %u memory map entries are used\n", MAX_MEMMAP, nr);
		nr = MAX_MEMMAP;
	}
	entries = boot_data(info->memmap, nr * sizeof(*entries));
	if (info->version < 1 || !entries || !nr)
		panic("the loader gave no memory map");
	sanitise_memmap(entries, nr);

	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		const struct boot_region *region = &boot_info.regions[i];

		printk("Memory: [0x%012llx-0x%012llx] %s\n", (unsigned long long)region->start,
		       (unsigned long long)(region->start + region->size_bytes - 1),
		       region->usable ? "usable" : "reserved");
		if (region->usable)
			nr_bytes += region->size_bytes;
	}
	printk("Memory: %llu KiB usable\n", (unsigned long long)nr_bytes >> 10);
}

static bool is_ram(u64 start, u64 size_bytes)
{
	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		const struct boot_region *region = &boot_info.regions[i];

		if (region->usable && start >= region->start && size_bytes <= region->size_bytes &&
		    start - region->start <= region->size_bytes - size_bytes)
			return true;
	}
	return false;
}

static void find_initrd(const struct start_info *info)
{
	const struct start_module *module = boot_data(info->modules, sizeof(*module));

	if (!info->nr_modules || !module || !module->size_bytes)
		return;
	if (!is_ram(module->start, module->size_bytes)) {
		printk("boot: initramfs at %#llx, %llu bytes, is not in RAM: ignored\n",
		       (unsigned long long)module->start, (unsigned long long)module->size_bytes);
		return;
	}
	boot_info.initrd_start = module->start;
	boot_info.initrd_size_bytes = module->size_bytes;
	printk("Initramfs: %#llx, %llu KiB\n", (unsigned long long)module->start,
	       (unsigned long long)module->size_bytes >> 10);
}

void boot_info_init(void)
{
	const struct start_info *info = boot_data(boot_start_info, sizeof(*info));

	if (!info || info->magic != START_INFO_MAGIC)
		panic("not started by a PVH loader: no start info at %#x", boot_start_info);
	copy_cmdline(info->cmdline);
	read_memmap(info);
	find_initrd(info);
	boot_info.rsdp = info->rsdp;
}

void setup_arch(void)
{
	percpu_save_initial();
	idt_init();
	cpu_init(0);
	sched_idle_task(0)->kernel_stack = boot_stack;
	uart_early_init();
	boot_info_init();
}
