// SPDX-License-Identifier: BSD-2-Clause
/* Sums of sites: of all CPUs, sizes and kinds, also of memory that another CPU has freed. */

#include "unit.h"

#include "../../kernel/profile/memory/memory.h"

#include <stdlib.h>

u64 host_page_bytes, host_kmalloc_bytes; /* the allocators' own counts */

#define NR_OBJECT_SIZES PROFILE_MEMORY_SIZES
#define NR_PAGE_SIZES	PROFILE_MEMORY_ORDERS

#define DEFINE_SITE(name, line, first, nr, use)                                                   \
	static OS_DEFINE_PER_CPU(u64[2 * (nr)], name);                                            \
	static const struct profile_memory_site site_of_##name pf_used pf_section("memory_sites") \
		pf_aligned(8) = { name, "file.c", #name, line, first, nr, use }

DEFINE_SITE(small, 1, 0, NR_OBJECT_SIZES, PROFILE_MEMORY_OF_KERNEL);
DEFINE_SITE(large, 2, 0, NR_OBJECT_SIZES, PROFILE_MEMORY_OF_KERNEL);
DEFINE_SITE(same, 3, 0, NR_OBJECT_SIZES, PROFILE_MEMORY_OF_KERNEL);
DEFINE_SITE(unused, 4, 0, NR_OBJECT_SIZES, PROFILE_MEMORY_OF_KERNEL);
DEFINE_SITE(pages, 5, PROFILE_MEMORY_CLASSES, NR_PAGE_SIZES, PROFILE_MEMORY_OF_KERNEL);
DEFINE_SITE(slabs, 6, PROFILE_MEMORY_CLASSES, NR_PAGE_SIZES, PROFILE_MEMORY_OF_KMALLOC);
DEFINE_SITE(user, 7, PROFILE_MEMORY_CLASSES, NR_PAGE_SIZES, PROFILE_MEMORY_OF_PROGRAMS);
DEFINE_SITE(own, 8, 0, NR_OBJECT_SIZES, PROFILE_MEMORY_OF_PROFILERS);

static struct memory_snapshot snap;

static void allocate(u64 *counts, u32 size, u32 cpu, u64 nr)
{
	os_per_cpu(counts[size], cpu) += nr;
}

static void release(u64 *counts, u32 nr_sizes, u32 size, u32 cpu, u64 nr)
{
	os_per_cpu(counts[nr_sizes + size], cpu) += nr;
}

static int clear(void **state)
{
	for (u32 cpu = 0; cpu < HOST_NR_CPUS; cpu++) {
		memset(&os_per_cpu(small, cpu), 0, sizeof(small));
		memset(&os_per_cpu(large, cpu), 0, sizeof(large));
		memset(&os_per_cpu(same, cpu), 0, sizeof(same));
		memset(&os_per_cpu(pages, cpu), 0, sizeof(pages));
		memset(&os_per_cpu(slabs, cpu), 0, sizeof(slabs));
		memset(&os_per_cpu(user, cpu), 0, sizeof(user));
		memset(&os_per_cpu(own, cpu), 0, sizeof(own));
	}
	memory_mark();
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, clear, NULL)

TEST(nothing_was_allocated)
{
	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(snap.nr_rows, 0);
	assert_int_equal(snap.all.live_bytes, 0);
}

/* A CPU that frees what another one has allocated does not make the other's row negative. */
TEST(cpus_free_each_others_memory)
{
	allocate(small, 3, 0, 10);
	allocate(small, 3, 1, 5);
	release(small, NR_OBJECT_SIZES, 3, HOST_NR_CPUS - 1, 12);
	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(snap.nr_rows, 1);
	assert_string_equal(snap.rows[0].site->function, "small");
	assert_int_equal(snap.rows[0].sums.nr_live, 3);
	assert_int_equal(snap.rows[0].sums.live_bytes, 3 * memory_size_bytes(3));
	assert_int_equal(snap.rows[0].sums.nr, 15);
	assert_int_equal(snap.rows[0].sums.bytes, 15 * memory_size_bytes(3));
}

/* Rows by live bytes, not by objects; then by allocated bytes; then by line. */
TEST(rows_are_sorted)
{
	static const char *const order[] = { "large", "small", "same" };

	allocate(small, 0, 0, 100);
	release(small, NR_OBJECT_SIZES, 0, 0, 100);
	allocate(same, 0, 1, 100);
	release(same, NR_OBJECT_SIZES, 0, 0, 100);
	allocate(large, PROFILE_MEMORY_CLASSES + 2, 0, 1);
	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(snap.nr_rows, 3);
	for (u32 i = 0; i < 3; i++)
		assert_string_equal(snap.rows[i].site->function, order[i]);
	assert_int_equal(snap.rows[0].sums.live_bytes, 4 * OS_PAGE_BYTES);
}

TEST(sizes_and_kinds_are_apart)
{
	host_page_bytes = 77;
	host_kmalloc_bytes = 88;
	allocate(small, 0, 0, 2);
	allocate(large, 0, 1, 3);
	allocate(large, PROFILE_MEMORY_SIZES - 1, 1, 1);
	allocate(pages, 0, 0, 7);
	release(pages, NR_PAGE_SIZES, 0, 1, 4);
	allocate(pages, NR_PAGE_SIZES - 1, 0, 1);

	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(snap.sizes[0].nr_live, 5);
	assert_int_equal(snap.sizes[PROFILE_MEMORY_SIZES - 1].live_bytes, OS_PAGE_BYTES << 10);
	assert_int_equal(snap.all.live_bytes, 5 * memory_size_bytes(0) + (OS_PAGE_BYTES << 10));
	assert_int_equal(snap.allocator_bytes, 88);

	memory_snapshot(&snap, MEMORY_PAGES);
	assert_int_equal(snap.nr_rows, 1);
	assert_int_equal(snap.sizes[0].nr_live, 0);
	assert_int_equal(snap.sizes[PROFILE_MEMORY_CLASSES].nr_live, 3);
	assert_int_equal(snap.all.live_bytes, 3 * OS_PAGE_BYTES + (OS_PAGE_BYTES << 10));
	assert_int_equal(snap.all.nr, 8);
	assert_int_equal(snap.allocator_bytes, 77);
}

/* Growth is what is live now and was not at the mark. A site that has shrunk is in no row. */
TEST(growth_since_the_mark)
{
	allocate(small, 0, 0, 10);
	allocate(large, 3, 1, 5);
	memory_mark();
	allocate(small, 0, 1, 7);
	release(small, NR_OBJECT_SIZES, 0, 0, 4);
	release(large, NR_OBJECT_SIZES, 3, 0, 1);
	allocate(same, 2, 0, 1);
	allocate(pages, 0, 0, 1);
	memory_growth(&snap, MEMORY_KMALLOC);
	assert_int_equal(snap.nr_rows, 2);
	assert_string_equal(snap.rows[0].site->function, "same");
	assert_string_equal(snap.rows[1].site->function, "small");
	assert_int_equal(snap.rows[1].sums.nr_live, 3);
	assert_int_equal(snap.rows[1].sums.live_bytes, 3 * memory_size_bytes(0));
	assert_int_equal(snap.rows[1].sums.nr, 7);
	assert_int_equal(snap.all.live_bytes, 3 * memory_size_bytes(0) + memory_size_bytes(2));
	/* Larger objects, but fewer of them. */
	release(small, NR_OBJECT_SIZES, 0, 0, 13);
	allocate(small, 6, 0, 1);
	memory_growth(&snap, MEMORY_KMALLOC);
	assert_string_equal(snap.rows[0].site->function, "small");
	assert_int_equal(snap.rows[0].sums.nr_live, 0);
	memory_mark();
	memory_growth(&snap, MEMORY_PAGES);
	assert_int_equal(snap.nr_rows, 0);
}

#define MIB_PAGES 256

static const struct memory_row *row_of(const char *name)
{
	for (u32 i = 0; i < snap.nr_rows; i++) {
		if (!strcmp(snap.rows[i].site->function, name))
			return &snap.rows[i];
	}
	return NULL;
}

/* What was live when most pages were in use stays in the rows, also if it is gone. */
TEST(peak_that_is_gone)
{
	allocate(pages, 0, 0, 10);
	memory_mark();
	allocate(pages, 0, 0, 2 * MIB_PAGES);
	profile_memory_note_peak(2 * MIB_PAGES);
	release(pages, NR_PAGE_SIZES, 0, 1, 2 * MIB_PAGES);
	memory_growth(&snap, MEMORY_PAGES);
	assert_int_equal(snap.nr_rows, 1);
	assert_int_equal(snap.rows[0].peak_bytes, 2 << 20);
	assert_int_equal(snap.rows[0].sums.live_bytes, 0);
	assert_int_equal(snap.peak_bytes, 2 << 20);
	memory_snapshot(&snap, MEMORY_PAGES);
	assert_int_equal(row_of("pages")->peak_bytes, (2 << 20) + 10 * OS_PAGE_BYTES);
	/* More than at the peak that was kept: now is the peak. */
	allocate(user, 0, 0, 3 * MIB_PAGES);
	memory_growth(&snap, MEMORY_PAGES);
	assert_int_equal(row_of("user")->peak_bytes, 3 << 20);
	assert_null(row_of("pages"));
	memory_mark();
	memory_growth(&snap, MEMORY_PAGES);
	assert_int_equal(snap.nr_rows, 0);
}

/* The allocator calls again when a 32nd more, and 256 KiB more, is in use. */
TEST(steps_between_peaks)
{
	profile_memory_note_peak(100);
	assert_int_equal(profile_memory_next_peak, 100 + 64);
	profile_memory_note_peak(32000);
	assert_int_equal(profile_memory_next_peak, 33000);
	host_page_bytes = 200 * OS_PAGE_BYTES;
	memory_mark();
	assert_int_equal(profile_memory_next_peak, 200 + 64);
}

/* Objects are added up again only if the pages of kmalloc have changed. */
TEST(objects_at_the_peak)
{
	allocate(small, 0, 0, 100);
	allocate(slabs, 0, 0, MIB_PAGES / 4 - 1);
	profile_memory_note_peak(1);
	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(row_of("small")->peak_bytes, row_of("small")->sums.live_bytes);
	release(slabs, NR_PAGE_SIZES, 0, 0, 1);
	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(row_of("small")->peak_bytes, 0);
	allocate(slabs, 0, 0, 2);
	profile_memory_note_peak(2);
	/* The next call goes on, few sites at a time. */
	assert_int_equal(profile_memory_next_peak, 0);
	profile_memory_note_peak(1);
	assert_int_equal(profile_memory_next_peak, 2 + 64);
	release(small, NR_OBJECT_SIZES, 0, 0, 100);
	release(slabs, NR_PAGE_SIZES, 0, 0, 1);
	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(row_of("small")->peak_bytes, 100 * memory_size_bytes(0));
}

/* Pages of programs, pages of kmalloc, and the profilers' objects are not the kernel's growth. */
TEST(growth_of_the_kernel)
{
	allocate(small, 0, 0, 1);
	allocate(own, 0, 0, 2);
	allocate(pages, 0, 0, 3);
	allocate(slabs, 0, 0, 4);
	allocate(user, 0, 0, 5);
	memory_growth(&snap, MEMORY_KERNEL);
	assert_int_equal(snap.nr_rows, 2);
	assert_string_equal(snap.rows[0].site->function, "pages");
	assert_string_equal(snap.rows[1].site->function, "small");
	assert_int_equal(snap.programs_peak_bytes, 5 * OS_PAGE_BYTES);
	assert_int_equal(snap.profilers_live_bytes, 2 * memory_size_bytes(0));
	/* What was live at the peak counts as much as what is live now. */
	profile_memory_note_peak(12);
	release(pages, NR_PAGE_SIZES, 0, 0, 3);
	allocate(large, PROFILE_MEMORY_CLASSES, 0, 2);
	memory_growth(&snap, MEMORY_KERNEL);
	assert_string_equal(snap.rows[0].site->function, "pages");
	assert_string_equal(snap.rows[1].site->function, "large");
}
