// SPDX-License-Identifier: BSD-2-Clause
/* The accessed and dirty bits of user pages say what was done with them since they were cleared. */

#include <lego/selftest.h>

#include "test_mm.h"

#include <asm/pgtable.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/profile.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/uaccess.h>

#define NR_PAGES 8

static char *page_of(unsigned int i)
{
	return (char *)USER_BASE + i * PAGE_SIZE;
}

/* Maps pages, touches them, and clears their bits. Returns the address space, which is loaded. */
static struct mm *begin_test(void)
{
	struct mm *mm = mm_alloc();
	bool flush = false;

	if (!mm)
		return NULL;
	set_mm(mm);
	if (map_fixed(mm, USER_BASE, NR_PAGES * PAGE_SIZE)) {
		leave_mm(mm);
		return NULL;
	}
	for (unsigned int i = 0; i < NR_PAGES; i++)
		EXPECT_EQ(put_user(1, page_of(i)), 0);
	EXPECT(mm_begin_accessed(mm));
	for (unsigned int i = 0; i < NR_PAGES; i++) {
		u64 addr = (u64)page_of(i);

		EXPECT(mm_clear_accessed(mm, &addr, USER_BASE + NR_PAGES * PAGE_SIZE, &flush));
		EXPECT_EQ(addr, (u64)page_of(i));
	}
	mm_end_accessed(mm);
	EXPECT(flush);
	mm_flush_accessed(mm);
	return mm;
}

static enum profile_page_use use_of(struct mm *mm, unsigned int i)
{
	enum profile_page_use use;

	EXPECT(mm_begin_accessed(mm));
	use = mm_page_use(mm, (u64)page_of(i));
	mm_end_accessed(mm);
	return use;
}

SELFTEST(working_set, reads_and_writes)
{
	struct mm *mm = begin_test();
	char c;

	ASSERT(mm);
	for (unsigned int i = 0; i < NR_PAGES; i++)
		EXPECT_EQ(use_of(mm, i), PROFILE_PAGE_UNUSED);
	EXPECT_EQ(get_user(c, page_of(0)), 0);
	EXPECT_EQ(put_user(2, page_of(1)), 0);
	EXPECT_EQ(use_of(mm, 0), PROFILE_PAGE_READ);
	EXPECT_EQ(use_of(mm, 1), PROFILE_PAGE_WRITTEN);
	EXPECT_EQ(put_user(2, page_of(0)), 0);
	EXPECT_EQ(use_of(mm, 0), PROFILE_PAGE_WRITTEN);
	for (unsigned int i = 2; i < NR_PAGES; i++)
		EXPECT_EQ(use_of(mm, i), PROFILE_PAGE_UNUSED);
	leave_mm(mm);
}

/* Without the flush, the CPU has no reason to look at the page table again. */
SELFTEST(working_set, bits_are_set_again_after_a_flush)
{
	struct mm *mm = begin_test();

	ASSERT(mm);
	for (unsigned int round = 0; round < 3; round++) {
		u64 addr = (u64)page_of(3);
		bool flush = false;

		EXPECT_EQ(put_user(round, page_of(3)), 0);
		EXPECT_EQ(use_of(mm, 3), PROFILE_PAGE_WRITTEN);
		EXPECT(mm_begin_accessed(mm));
		EXPECT(mm_clear_accessed(mm, &addr, addr + PAGE_SIZE, &flush));
		mm_end_accessed(mm);
		EXPECT(flush);
		mm_flush_accessed(mm);
		EXPECT_EQ(use_of(mm, 3), PROFILE_PAGE_UNUSED);
		flush = false;
		EXPECT(mm_begin_accessed(mm));
		EXPECT(mm_clear_accessed(mm, &addr, addr + PAGE_SIZE, &flush));
		mm_end_accessed(mm);
		EXPECT(!flush); /* no TLB has it */
	}
	leave_mm(mm);
}

/* What the kernel does with a page is no use of it. */
SELFTEST(working_set, changed_pages_do_not_tell)
{
	struct mm *mm = begin_test(), *copy;

	ASSERT(mm);
	EXPECT_EQ(mm_protect(mm, (u64)page_of(0), PAGE_SIZE, PROT_READ), 0);
	EXPECT_EQ(mm_unmap(mm, (u64)page_of(1), PAGE_SIZE), 0);
	EXPECT_EQ(use_of(mm, 0), PROFILE_PAGE_CHANGED);
	EXPECT_EQ(use_of(mm, 1), PROFILE_PAGE_CHANGED);
	EXPECT_EQ(use_of(mm, 2), PROFILE_PAGE_UNUSED);
	copy = mm_copy(mm);
	EXPECT(copy);
	EXPECT_EQ(use_of(mm, 2), PROFILE_PAGE_CHANGED);
	if (copy)
		mm_put(copy);
	leave_mm(mm);
}

SELFTEST(working_set, next_page_and_count)
{
	struct mm *mm = begin_test();
	u64 end = USER_BASE + NR_PAGES * PAGE_SIZE, addr = USER_BASE;
	bool flush = false;

	ASSERT(mm);
	EXPECT_EQ(mm_count_pages(mm, USER_BASE, end), NR_PAGES);
	EXPECT_EQ(mm_unmap(mm, USER_BASE, 3 * PAGE_SIZE), 0);
	EXPECT_EQ(mm_count_pages(mm, USER_BASE, end), NR_PAGES - 3);
	EXPECT_EQ(mm_count_pages(mm, USER_BASE, USER_BASE + 4 * PAGE_SIZE), 1);
	EXPECT(mm_begin_accessed(mm));
	EXPECT(mm_clear_accessed(mm, &addr, end, &flush));
	EXPECT_EQ(addr, USER_BASE + 3 * PAGE_SIZE);
	addr = USER_BASE;
	EXPECT(!mm_clear_accessed(mm, &addr, USER_BASE + 3 * PAGE_SIZE, &flush));
	mm_end_accessed(mm);
	leave_mm(mm);
}

SELFTEST(working_set, physical_pages)
{
	u64 end = USER_BASE + NR_PAGES * PAGE_SIZE, addr = USER_BASE, pages[NR_PAGES], nr = 0;
	struct mm *mm = begin_test();

	ASSERT(mm);
	EXPECT_EQ(mm_unmap(mm, (u64)page_of(1), PAGE_SIZE), 0);
	for (unsigned int i = 0; i < NR_PAGES; i++) {
		if (i != 1)
			EXPECT_EQ(put_user(i, page_of(i)), 0);
	}
	EXPECT_EQ(mm_copy_physical(mm, &addr, end, pages, 3), 3);
	EXPECT_EQ(addr, (u64)page_of(4));
	for (unsigned int i = 0; i < 3; i++)
		EXPECT_EQ(*(u8 *)phys_to_virt(pages[i]), i ? i + 1 : 0);
	while (addr < end)
		nr += mm_copy_physical(mm, &addr, end, pages, NR_PAGES);
	EXPECT_EQ(nr, NR_PAGES - 4);
	EXPECT_EQ(*(u8 *)phys_to_virt(pages[nr - 1]), NR_PAGES - 1);
	leave_mm(mm);
}

/* Ranges of RAM are in order, and have all pages that can be allocated. */
SELFTEST(working_set, ram)
{
	u64 start = 0, end = 0, total = 0;
	void *object = kmalloc(PAGE_SIZE);
	bool has_object = false;
	u32 node;

	ASSERT(object);
	while (ram_next(&start, &end, &node)) {
		EXPECT(start < end);
		EXPECT_EQ((start | end) % PAGE_SIZE, 0);
		total += end - start;
		has_object |= virt_to_phys(object) >= start && virt_to_phys(object) < end;
		start = end;
	}
	EXPECT(has_object);
	kfree(object);
	EXPECT(total >= page_nr_total() * PAGE_SIZE);
}

SELFTEST(working_set, ranges)
{
	struct profile_user_range ranges[3];
	struct mm *mm = begin_test();

	ASSERT(mm);
	/* Two areas with different rights are one range; the others have gaps before them. */
	EXPECT_EQ(mm_protect(mm, (u64)page_of(4), PAGE_SIZE, PROT_READ), 0);
	for (u64 i = 1; i < 4; i++)
		EXPECT_EQ(map_fixed(mm, USER_BASE + (i << 20), PAGE_SIZE), 0);
	EXPECT_EQ(mm_get_ranges(mm, ranges, 3), 3);
	EXPECT_EQ(ranges[0].start, USER_BASE);
	EXPECT_EQ(ranges[0].end, USER_BASE + NR_PAGES * PAGE_SIZE);
	EXPECT_EQ(ranges[0].kind, MM_ANONYMOUS);
	EXPECT_EQ(ranges[2].start, USER_BASE + (2 << 20));
	EXPECT_EQ(ranges[2].end, USER_BASE + (3 << 20) + PAGE_SIZE);
	leave_mm(mm);
}

/* Dirty bits are cleared, but what /proc/<pid>/smaps says of shared memory stays the same. */
SELFTEST(working_set, usage_stays_the_same)
{
	struct mm *mm = begin_test();
	u64 addr = USER_BASE + (1 << 20);
	struct mm_usage before, after;
	struct mm_area_info area;
	bool flush = false;

	ASSERT(mm);
	EXPECT_EQ(mm_map(mm, addr, PAGE_SIZE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
		  (long)addr);
	EXPECT_EQ(put_user(1, (char *)addr), 0);
	EXPECT_EQ(mm_get_areas(mm, addr, &area, 1), 1);
	mm_get_usage(mm, &area, &before);
	EXPECT_EQ(before.private_dirty + before.shared_dirty, PAGE_SIZE);
	EXPECT(mm_begin_accessed(mm));
	EXPECT(mm_clear_accessed(mm, &addr, addr + PAGE_SIZE, &flush));
	mm_end_accessed(mm);
	mm_flush_accessed(mm);
	mm_get_usage(mm, &area, &after);
	EXPECT(!memcmp(&before, &after, sizeof(before)));
	mm_put_areas(&area, 1);
	leave_mm(mm);
}
