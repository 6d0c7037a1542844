// SPDX-License-Identifier: BSD-2-Clause
/* The most memory that an address space has had, by kind. */

#include <lego/selftest.h>

#include "test_mm.h"

#include <lego/mm.h>
#include <lego/sched.h>
#include <lego/uaccess.h>

/* Maps nr pages with these flags, and writes to each. */
static u64 map_and_touch(struct mm *mm, u64 nr, u32 flags)
{
	long addr = mm_map(mm, 0, nr * PAGE_SIZE, RW, MAP_ANONYMOUS | flags, NULL, 0);

	EXPECT(addr > 0);
	for (u64 i = 0; i < nr; i++)
		EXPECT_EQ(put_user(1UL, (u64 *)(addr + i * PAGE_SIZE)), 0);
	return addr;
}

/*
 * The pages of an address space by kind, when it had most: of areas that are next to each other, of
 * a part of the heap that has moved, and of a copy.
 */
SELFTEST(mm_peak, by_kind)
{
	struct mm *mm = mm_alloc(), *child;
	u64 peak[NR_MM_KINDS], stack, heap = USER_BASE, tables;

	ASSERT(mm);
	mm->brk_start = mm->brk = heap;
	set_mm(mm);
	EXPECT_EQ(mm_set_brk(mm, heap + 5 * PAGE_SIZE), heap + 5 * PAGE_SIZE);
	for (u64 i = 0; i < 5; i++)
		EXPECT_EQ(put_user(1UL, (u64 *)(heap + i * PAGE_SIZE)), 0);
	stack = map_and_touch(mm, 3, MAP_PRIVATE | MAP_STACK);
	EXPECT_EQ(map_and_touch(mm, 4, MAP_PRIVATE), stack - 4 * PAGE_SIZE);
	map_and_touch(mm, 2, MAP_SHARED);
	EXPECT_EQ(mm->nr_vmas, 4);
	tables = mm->nr_tables;
	child = mm_copy(mm);
	ASSERT(child);
	/* Two of the anonymous pages and two of the stack. The rest is less than the peak. */
	EXPECT_EQ(mm_unmap(mm, stack - 2 * PAGE_SIZE, 4 * PAGE_SIZE), 0);
	EXPECT(mm_move(mm, heap + PAGE_SIZE, PAGE_SIZE, 2 * PAGE_SIZE, 1, 0) > 0);
	map_and_touch(mm, 3, MAP_SHARED);
	EXPECT_EQ(mm->nr_pages, 13);
	mm_get_peak(mm, peak);
	EXPECT(peak[MM_HEAP] == 5 && peak[MM_STACK] == 3 && peak[MM_ANONYMOUS] == 4);
	EXPECT(peak[MM_SHARED] == 2 && peak[MM_FILE] == 0 && peak[MM_TABLES] == tables);
	/* A new peak. */
	map_and_touch(mm, 2, MAP_PRIVATE);
	mm_get_peak(mm, peak);
	EXPECT(peak[MM_HEAP] == 5 && peak[MM_STACK] == 1 && peak[MM_ANONYMOUS] == 4);
	EXPECT_EQ(peak[MM_SHARED], 5);
	EXPECT_EQ(mm_set_brk(mm, heap), heap);
	EXPECT_EQ(mm->nr_of_kind[MM_HEAP], 1); /* the part that has moved */
	leave_mm(mm);
	/* Shared pages are not in the copy. */
	mm_get_peak(child, peak);
	EXPECT(peak[MM_HEAP] == 5 && peak[MM_STACK] == 3 && peak[MM_ANONYMOUS] == 4);
	EXPECT_EQ(peak[MM_SHARED], 0);
	mm_put(child);
}

static u64 kernel_at_peak(const struct mm *mm)
{
	u64 peak[NR_MM_KINDS];

	mm_get_peak(mm, peak);
	return peak[MM_KERNEL];
}

static u64 kernel_pages(u64 nr_threads, u64 nr_areas)
{
	return DIV_ROUND_UP(nr_threads * (KERNEL_STACK_SIZE + sizeof(struct task)) +
				    nr_areas * sizeof(struct vma),
			    PAGE_SIZE);
}

/*
 * The kernel's part of the peak: the most threads and areas at a time with the most pages. Threads
 * that come later, with fewer pages, are not in it.
 */
SELFTEST(mm_peak, of_kernel)
{
	struct mm *mm = mm_alloc();
	u64 area;

	ASSERT(mm);
	set_mm(mm);
	mm_add_threads(mm, 1);
	area = map_and_touch(mm, 2, MAP_PRIVATE);
	EXPECT_EQ(kernel_at_peak(mm), kernel_pages(1, 1));
	mm_add_threads(mm, 5);
	mm_add_threads(mm, -3);
	EXPECT_EQ(kernel_at_peak(mm), kernel_pages(6, 1));
	EXPECT_EQ(mm_unmap(mm, area, PAGE_SIZE), 0);
	mm_add_threads(mm, 20);
	EXPECT_EQ(kernel_at_peak(mm), kernel_pages(6, 1));
	mm_add_threads(mm, -20);
	map_and_touch(mm, 2, MAP_SHARED);
	EXPECT_EQ(kernel_at_peak(mm), kernel_pages(3, 2));
	leave_mm(mm);
}

/* An area that goes with the first pages that are unmapped after the peak is in it. */
SELFTEST(mm_peak, of_kernel_before_munmap)
{
	u64 nr = PAGE_SIZE / sizeof(struct vma) + 1;
	struct mm *mm = mm_alloc();

	ASSERT(mm);
	set_mm(mm);
	for (u64 i = 1; i < nr; i++)
		EXPECT_EQ(map_fixed(mm, USER_BASE + i * 2 * PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(mm_unmap(mm, map_and_touch(mm, 1, MAP_PRIVATE), PAGE_SIZE), 0);
	EXPECT_EQ(kernel_at_peak(mm), kernel_pages(0, nr));
	leave_mm(mm);
}
