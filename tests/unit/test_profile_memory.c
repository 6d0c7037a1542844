// SPDX-License-Identifier: BSD-2-Clause
/* Sums of sites: of all CPUs, sizes and kinds, also of memory that another CPU has freed. */

#include "unit.h"

#include "../../kernel/profile/memory/memory.h"

#include <stdlib.h>

u64 host_page_bytes, host_kmalloc_bytes; /* the allocators' own counts */

#define NR_OBJECT_SIZES PROFILE_MEMORY_SIZES
#define NR_PAGE_SIZES	PROFILE_MEMORY_ORDERS

#define DEFINE_SITE(name, line, first, nr)                                                        \
	static OS_DEFINE_PER_CPU(u64[2 * (nr)], name);                                            \
	static const struct profile_memory_site site_of_##name pf_used pf_section("memory_sites") \
		pf_aligned(8) = { name, "file.c", #name, line, first, nr }

DEFINE_SITE(small, 1, 0, NR_OBJECT_SIZES);
DEFINE_SITE(large, 2, 0, NR_OBJECT_SIZES);
DEFINE_SITE(same, 3, 0, NR_OBJECT_SIZES);
DEFINE_SITE(unused, 4, 0, NR_OBJECT_SIZES);
DEFINE_SITE(pages, 5, PROFILE_MEMORY_CLASSES, NR_PAGE_SIZES);

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
	}
	return 0;
}

static void nothing_was_allocated(void **state)
{
	memory_snapshot(&snap, MEMORY_KMALLOC);
	assert_int_equal(snap.nr_rows, 0);
	assert_int_equal(snap.all.live_bytes, 0);
}

/* A CPU that frees what another one has allocated does not make the other's row negative. */
static void cpus_free_each_others_memory(void **state)
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
static void rows_are_sorted(void **state)
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

static void sizes_and_kinds_are_apart(void **state)
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
static void growth_since_the_mark(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_was_allocated, clear),
		cmocka_unit_test_setup(cpus_free_each_others_memory, clear),
		cmocka_unit_test_setup(rows_are_sorted, clear),
		cmocka_unit_test_setup(sizes_and_kinds_are_apart, clear),
		cmocka_unit_test_setup(growth_since_the_mark, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
