// SPDX-License-Identifier: BSD-2-Clause
/* Memory of several processes: copies of address spaces, shared mappings, moving and looking. */

#include <lego/selftest.h>

#include "../../kernel/fs/inode.h"
#include "sleep.h"
#include "test_mm.h"

#include <asm/pgtable.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/leak.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/string.h>
#include <lego/uaccess.h>

static u64 entry_of(struct mm *mm, u64 addr)
{
	u64 *pte = pgtable_find(mm->pgd, addr);

	return pte ? *pte : 0;
}

static u64 peek(u64 addr)
{
	u64 value = ~0UL;

	EXPECT_EQ(get_user(value, (u64 *)addr), 0);
	return value;
}

/* Neither process sees the writes of the other; the last owner of a page writes to it in place. */
SELFTEST(mm_process, copy_on_write)
{
	struct mm *parent, *child;
	phys_addr_t first, second;
	struct leak_counts before;

	leak_snapshot(&before);
	parent = mm_alloc();
	ASSERT(parent);
	EXPECT_EQ(map_fixed(parent, USER_BASE, 3 * PAGE_SIZE), 0);
	parent->brk_start = parent->brk = USER_BASE + 0x100000;
	EXPECT_EQ(mm_set_brk(parent, parent->brk + 5), parent->brk_start + 5);
	set_mm(parent);
	EXPECT_EQ(put_user(1UL, (u64 *)USER_BASE), 0);
	EXPECT_EQ(put_user(2UL, (u64 *)(USER_BASE + PAGE_SIZE)), 0);
	first = entry_of(parent, USER_BASE) & PTE_ADDR_MASK;
	second = entry_of(parent, USER_BASE + PAGE_SIZE) & PTE_ADDR_MASK;
	child = mm_copy(parent);
	ASSERT(child);
	EXPECT_EQ(child->nr_vmas, 2);
	EXPECT_EQ(child->nr_pages, 2);
	EXPECT(child->brk_start == parent->brk_start && child->brk == parent->brk);
	EXPECT_EQ(child->mmap_base, parent->mmap_base);
	EXPECT_EQ(atomic_read(&phys_to_page(first)->refs), 2);
	EXPECT_EQ(entry_of(child, USER_BASE), entry_of(parent, USER_BASE));
	EXPECT(!(entry_of(child, USER_BASE) & PTE_WRITE));
	/*
	 * The parent has written to the page before. Its CPU must not use a stale writable TLB
	 * entry.
	 */
	EXPECT_EQ(put_user(10UL, (u64 *)USER_BASE), 0);
	EXPECT((entry_of(parent, USER_BASE) & PTE_ADDR_MASK) != first);
	EXPECT_EQ(atomic_read(&phys_to_page(first)->refs), 1);
	set_mm(child);
	EXPECT_EQ(peek(USER_BASE), 1);
	EXPECT_EQ(put_user(11UL, (u64 *)USER_BASE), 0);
	EXPECT_EQ(entry_of(child, USER_BASE) & PTE_ADDR_MASK, first);
	EXPECT_EQ(put_user(12UL, (u64 *)(USER_BASE + PAGE_SIZE)), 0);
	EXPECT_EQ(put_user(13UL, (u64 *)(USER_BASE + 2 * PAGE_SIZE)), 0);
	EXPECT_EQ(child->nr_pages, 3);
	set_mm(parent);
	EXPECT_EQ(peek(USER_BASE), 10);
	EXPECT_EQ(peek(USER_BASE + PAGE_SIZE), 2);
	EXPECT_EQ(peek(USER_BASE + 2 * PAGE_SIZE), 0);
	EXPECT_EQ(entry_of(parent, USER_BASE + PAGE_SIZE) & PTE_ADDR_MASK, second);
	mm_put(child);
	EXPECT_EQ(put_user(3UL, (u64 *)(USER_BASE + PAGE_SIZE)), 0);
	EXPECT_EQ(entry_of(parent, USER_BASE + PAGE_SIZE) & PTE_ADDR_MASK, second);
	leave_mm(parent);
	EXPECT(leak_check(&before));
}

/* Copies a page without access and a read-only one; then copies the copy. */
SELFTEST(mm_process, copy_protected)
{
	struct mm *parent, *child, *grandchild;
	struct leak_counts before;

	leak_snapshot(&before);
	parent = mm_alloc();
	ASSERT(parent);
	EXPECT_EQ(map_fixed(parent, USER_BASE, 2 * PAGE_SIZE), 0);
	set_mm(parent);
	EXPECT_EQ(put_user(1UL, (u64 *)USER_BASE), 0);
	EXPECT_EQ(put_user(2UL, (u64 *)(USER_BASE + PAGE_SIZE)), 0);
	EXPECT_EQ(mm_protect(parent, USER_BASE, PAGE_SIZE, 0), 0);
	EXPECT_EQ(mm_protect(parent, USER_BASE + PAGE_SIZE, PAGE_SIZE, PROT_READ), 0);
	child = mm_copy(parent);
	ASSERT(child);
	grandchild = mm_copy(child);
	ASSERT(grandchild);
	set_mm(child);
	EXPECT_EQ(put_user(3UL, (u64 *)(USER_BASE + PAGE_SIZE)), -EFAULT);
	EXPECT_EQ(put_user(3UL, (u64 *)USER_BASE), -EFAULT);
	EXPECT_EQ(mm_protect(child, USER_BASE, 2 * PAGE_SIZE, RW), 0);
	EXPECT_EQ(peek(USER_BASE), 1);
	EXPECT_EQ(put_user(3UL, (u64 *)USER_BASE), 0);
	EXPECT_EQ(put_user(4UL, (u64 *)(USER_BASE + PAGE_SIZE)), 0);
	set_mm(grandchild);
	EXPECT_EQ(mm_protect(grandchild, USER_BASE, 2 * PAGE_SIZE, RW), 0);
	EXPECT_EQ(peek(USER_BASE), 1);
	EXPECT_EQ(peek(USER_BASE + PAGE_SIZE), 2);
	mm_put(child);
	mm_put(parent);
	leave_mm(grandchild);
	EXPECT(leak_check(&before));
}

/* Parent and child share one memory. It is freed with the last of them. */
SELFTEST(mm_process, shared_anonymous)
{
	struct mm *parent, *child;
	u64 addr = USER_BASE, nr;
	struct leak_counts before;

	leak_snapshot(&before);
	parent = mm_alloc();
	ASSERT(parent);
	EXPECT_EQ(mm_map(parent, addr, 3 * PAGE_SIZE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
			 NULL, 0),
		  addr);
	set_mm(parent);
	EXPECT_EQ(put_user(1UL, (u64 *)addr), 0);
	child = mm_copy(parent);
	ASSERT(child);
	EXPECT_EQ(put_user(2UL, (u64 *)addr), 0);
	EXPECT_EQ(entry_of(parent, addr) & (PTE_WRITE | PTE_BORROWED), PTE_WRITE);
	set_mm(child);
	EXPECT_EQ(peek(addr), 2);
	EXPECT_EQ(put_user(3UL, (u64 *)addr), 0);
	EXPECT_EQ(put_user(4UL, (u64 *)(addr + PAGE_SIZE)), 0);
	/* Unmapping in the child removes its page table entries; the memory stays. */
	EXPECT_EQ(mm_unmap(child, addr, PAGE_SIZE), 0);
	EXPECT_EQ(mm_fault(child, addr, PROT_READ, false), -EFAULT);
	EXPECT_EQ(mm_key_of(child, addr + PAGE_SIZE).offset, PAGE_SIZE);
	EXPECT(mm_key_of(child, addr + PAGE_SIZE).object ==
	       mm_key_of(parent, addr + PAGE_SIZE).object);
	set_mm(parent);
	mm_put(child);
	EXPECT_EQ(peek(addr), 3);
	EXPECT_EQ(peek(addr + PAGE_SIZE), 4);
	EXPECT_EQ(peek(addr + 2 * PAGE_SIZE), 0);
	nr = parent->nr_pages;
	EXPECT_EQ(nr, 3);
	leave_mm(parent);
	EXPECT(leak_check(&before));
}

/* Writes to a shared mapping reach the file; writes to a private one do not. */
SELFTEST(mm_process, shared_file)
{
	struct file *file = file_open("/mm-shared", O_CREAT | O_RDWR, 0600), *reader;
	struct mm *mm = mm_alloc();
	u64 shared = USER_BASE, private = USER_BASE + 0x100000, value = 7;

	ASSERT(mm && !IS_ERR(file));
	reader = file_open("/mm-shared", O_RDONLY, 0);
	ASSERT(!IS_ERR(reader));
	mutex_lock(&file->inode->write_lock);
	EXPECT_EQ(inode_truncate(file->inode, 2 * PAGE_SIZE + 8), 0);
	EXPECT_EQ(mm_map(mm, shared, 4 * PAGE_SIZE, RW, MAP_SHARED | MAP_FIXED, file, 0), shared);
	EXPECT_EQ(mm_map(mm, private, 4 * PAGE_SIZE, RW, MAP_PRIVATE | MAP_FIXED, reader, 0),
		  private);
	EXPECT_EQ(mm_map(mm, 0, PAGE_SIZE, RW, MAP_SHARED, reader, 0), -EACCES);
	set_mm(mm);
	EXPECT_EQ(put_user(5UL, (u64 *)(shared + PAGE_SIZE)), 0);
	EXPECT_EQ(file_read_at(file, &value, 8, PAGE_SIZE), 8);
	EXPECT_EQ(value, 5);
	EXPECT_EQ(inode_write(file->inode, &(u64){ 6 }, 8, PAGE_SIZE + 8, false), 8);
	EXPECT_EQ(peek(shared + PAGE_SIZE + 8), 6);
	EXPECT_EQ(peek(private + PAGE_SIZE), 5);
	EXPECT_EQ(put_user(9UL, (u64 *)(private + PAGE_SIZE)), 0);
	EXPECT_EQ(peek(shared + PAGE_SIZE), 5);
	EXPECT_EQ(peek(shared + 2 * PAGE_SIZE + 8), 0);
	/* Bytes written behind the end of the file are zero after the file has grown over them. */
	EXPECT_EQ(put_user(9UL, (u64 *)(shared + 2 * PAGE_SIZE + 16)), 0);
	EXPECT_EQ(inode_truncate(file->inode, 3 * PAGE_SIZE), 0);
	EXPECT_EQ(peek(shared + 2 * PAGE_SIZE + 16), 0);
	EXPECT_EQ(inode_truncate(file->inode, 2 * PAGE_SIZE + 8), 0);
	EXPECT_EQ(put_user(9UL, (u64 *)(shared + 2 * PAGE_SIZE + 16)), 0);
	EXPECT_EQ(inode_write(file->inode, &(u64){ 6 }, 8, 2 * PAGE_SIZE + 64, false), 8);
	EXPECT_EQ(peek(shared + 2 * PAGE_SIZE + 16), 0);
	EXPECT_EQ(mm_fault(mm, shared + 3 * PAGE_SIZE, PROT_WRITE, false), -ENXIO);
	EXPECT_EQ(mm_fault(mm, private + 3 * PAGE_SIZE, PROT_READ, false), -ENXIO);
	/* The truncation unmaps the pages behind it everywhere, private copies included. */
	EXPECT_EQ(inode_truncate(file->inode, 8), 0);
	EXPECT_EQ(get_user(value, (u64 *)(shared + PAGE_SIZE)), -EFAULT);
	EXPECT_EQ(mm_fault(mm, shared + PAGE_SIZE, PROT_READ, false), -ENXIO);
	EXPECT_EQ(mm_fault(mm, private + PAGE_SIZE, PROT_READ, false), -ENXIO);
	EXPECT_EQ(mm_fault(mm, shared, PROT_WRITE, false), FAULT_FILE);
	EXPECT_EQ(inode_truncate(file->inode, 0), 0);
	mutex_unlock(&file->inode->write_lock);
	EXPECT_EQ(mm_fault(mm, shared, PROT_READ, false), -ENXIO);
	EXPECT_EQ(mm_unmap(mm, shared, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(mm_map(mm, shared, PAGE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, reader, 0),
		  shared);
	EXPECT_EQ(mm_protect(mm, shared, PAGE_SIZE, RW), -EACCES);
	leave_mm(mm);
	file_put(reader);
	tree_lock_write();
	tree_remove(file->inode);
	tree_unlock();
	file_put(file);
}

/* Each kind of fault returns its own error. */
SELFTEST(mm_process, fault_results)
{
	struct mm *mm = mm_alloc();

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 3 * PAGE_SIZE), 0);
	EXPECT_EQ(mm_protect(mm, USER_BASE + PAGE_SIZE, PAGE_SIZE, PROT_READ), 0);
	EXPECT_EQ(mm_protect(mm, USER_BASE + 2 * PAGE_SIZE, PAGE_SIZE, 0), 0);
	EXPECT_EQ(mm_fault(mm, USER_BASE - 1, PROT_READ, false), -EFAULT);
	EXPECT_EQ(mm_fault(mm, USER_BASE + 3 * PAGE_SIZE, PROT_READ, false), -EFAULT);
	EXPECT_EQ(mm_fault(mm, USER_BASE, PROT_EXEC, false), -EACCES);
	EXPECT_EQ(mm_fault(mm, USER_BASE + PAGE_SIZE, PROT_WRITE, false), -EACCES);
	EXPECT_EQ(mm_fault(mm, USER_BASE + 2 * PAGE_SIZE, PROT_READ, false), -EACCES);
	EXPECT_EQ(mm_fault(mm, USER_BASE + PAGE_SIZE, PROT_READ, false), FAULT_ANONYMOUS);
	EXPECT_EQ(mm_map(mm, 0, (page_nr_total() + 1) * PAGE_SIZE, RW, ANON, NULL, 0), -ENOMEM);
	EXPECT(mm_map(mm, 0, (page_nr_total() + 1) * PAGE_SIZE, 0, ANON, NULL, 0) > 0);
	mm_put(mm);
}

#define MAYMOVE 1
#define FIXED	2

SELFTEST(mm_process, move)
{
	u64 a = USER_BASE, to, other;
	struct leak_counts before;
	struct mm *mm, *child;

	leak_snapshot(&before);
	mm = mm_alloc();
	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, a, 4 * PAGE_SIZE), 0);
	set_mm(mm);
	for (u64 i = 0; i < 4; i++)
		EXPECT_EQ(put_user(i + 1, (u64 *)(a + i * PAGE_SIZE)), 0);
	/* Grows and shrinks in place. */
	EXPECT_EQ(mm_move(mm, a, 4 * PAGE_SIZE, 6 * PAGE_SIZE, 0, 0), a);
	EXPECT_EQ(peek(a + 5 * PAGE_SIZE), 0);
	EXPECT_EQ(mm_move(mm, a, 6 * PAGE_SIZE, 4 * PAGE_SIZE, 0, 0), a);
	EXPECT_EQ(mm_fault(mm, a + 4 * PAGE_SIZE, PROT_READ, false), -EFAULT);
	/* Another area is in the way. Then the area may move, with pages shared with the child. */
	EXPECT_EQ(map_fixed(mm, a + 5 * PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(mm_move(mm, a, 4 * PAGE_SIZE, 6 * PAGE_SIZE, 0, 0), -ENOMEM);
	child = mm_copy(mm);
	ASSERT(child);
	EXPECT_EQ(put_user(5UL, (u64 *)a), 0);
	to = mm_move(mm, a, 4 * PAGE_SIZE, 6 * PAGE_SIZE, MAYMOVE, 0);
	EXPECT(!IS_ERR_VALUE(to) && to != a);
	EXPECT_EQ(mm_fault(mm, a, PROT_READ, false), -EFAULT);
	EXPECT_EQ(peek(to), 5);
	EXPECT_EQ(peek(to + PAGE_SIZE), 2);
	EXPECT_EQ(put_user(6UL, (u64 *)(to + PAGE_SIZE)), 0);
	set_mm(child);
	EXPECT_EQ(peek(a), 1);
	EXPECT_EQ(peek(a + PAGE_SIZE), 2);
	set_mm(mm);
	mm_put(child);
	/* Moves the middle of an area over another area. */
	other = a + 0x40000000;
	EXPECT_EQ(map_fixed(mm, other, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(put_user(77UL, (u64 *)other), 0);
	EXPECT_EQ(mm_move(mm, to + PAGE_SIZE, 2 * PAGE_SIZE, 2 * PAGE_SIZE, MAYMOVE | FIXED, other),
		  other);
	EXPECT_EQ(peek(other), 6);
	EXPECT_EQ(peek(other + PAGE_SIZE), 3);
	EXPECT_EQ(peek(other + 2 * PAGE_SIZE), 0);
	EXPECT_EQ(peek(to), 5);
	EXPECT_EQ(mm_fault(mm, to + PAGE_SIZE, PROT_READ, false), -EFAULT);
	EXPECT_EQ(peek(to + 3 * PAGE_SIZE), 4);
	EXPECT_EQ(mm_move(mm, to, 4 * PAGE_SIZE, 8 * PAGE_SIZE, MAYMOVE, 0), -EFAULT);
	EXPECT_EQ(mm_move(mm, to, PAGE_SIZE, 2 * PAGE_SIZE, MAYMOVE | FIXED, to + 1), -EINVAL);
	EXPECT_EQ(mm_move(mm, to, PAGE_SIZE, PAGE_SIZE, MAYMOVE | FIXED, to), -EINVAL);
	EXPECT_EQ(mm_move(mm, to, PAGE_SIZE, PAGE_SIZE, FIXED, other), -EINVAL);
	leave_mm(mm);
	EXPECT(leak_check(&before));
}

/* Reads the list of areas, and the memory, of another process. */
SELFTEST(mm_process, inspect)
{
	struct mm_area_info areas[4];
	struct mm *mm = mm_alloc();
	char buf[16];

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	EXPECT_EQ(mm_protect(mm, USER_BASE, PAGE_SIZE, PROT_READ), 0);
	EXPECT_EQ(mm_map(mm, USER_BASE + 0x10000, PAGE_SIZE, RW,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
		  USER_BASE + 0x10000);
	EXPECT_EQ(mm_get_areas(mm, 0, areas, 2), 2);
	EXPECT(areas[0].start == USER_BASE && areas[0].prot == PROT_READ && !areas[0].file);
	mm_put_areas(areas, 2);
	EXPECT_EQ(mm_get_areas(mm, areas[1].end, areas, 4), 1);
	EXPECT(areas[0].anonymous_shared && areas[0].file && areas[0].flags == MAP_SHARED);
	mm_put_areas(areas, 1);
	set_mm(mm);
	EXPECT_EQ(copy_to_user((void *)(USER_BASE + 2 * PAGE_SIZE - 4), "text", 4), 0);
	set_mm(NULL);
	EXPECT_EQ(mm_access(mm, USER_BASE + 2 * PAGE_SIZE - 4, buf, 16), 4);
	EXPECT(!memcmp(buf, "text", 4));
	EXPECT_EQ(mm_access(mm, USER_BASE + 2 * PAGE_SIZE, buf, 16), -EFAULT);
	EXPECT_EQ(mm_access(mm, TASK_SIZE - 8, buf, 16), -EFAULT);
	EXPECT_EQ(mm_access(mm, ~0UL - 8, buf, 16), -EFAULT);
	EXPECT_EQ(mm_access(mm, USER_BASE + PAGE_SIZE - 8, buf, 16), 16);
	EXPECT(buf[0] == 0);
	mm_put(mm);
}

/* The flags of MADV_DONTFORK and MADV_WIPEONFORK. */
SELFTEST(mm_process, copy_advised)
{
	struct mm *mm = mm_alloc(), *child;

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, PAGE_SIZE), 0);
	EXPECT_EQ(map_fixed(mm, USER_BASE + 2 * PAGE_SIZE, PAGE_SIZE), 0);
	set_mm(mm);
	EXPECT_EQ(put_user(1UL, (u64 *)USER_BASE), 0);
	EXPECT_EQ(put_user(1UL, (u64 *)(USER_BASE + 2 * PAGE_SIZE)), 0);
	mm->areas.first->flags |= VMA_DONT_FORK;
	mm->areas.last->flags |= VMA_WIPE_ON_FORK;
	child = mm_copy(mm);
	ASSERT(child);
	EXPECT_EQ(child->nr_vmas, 1);
	EXPECT_EQ(mm_fault(child, USER_BASE, PROT_READ, false), -EFAULT);
	set_mm(child);
	EXPECT_EQ(peek(USER_BASE + 2 * PAGE_SIZE), 0);
	set_mm(mm);
	EXPECT_EQ(peek(USER_BASE + 2 * PAGE_SIZE), 1);
	mm_put(child);
	leave_mm(mm);
}

/* Allocates all single pages, and returns them as a linked list. */
static struct page *exhaust(void)
{
	struct page *list = NULL, *page;

	while ((page = page_alloc(0, 0))) {
		page->owner = list;
		list = page;
	}
	return list;
}

static void release(struct page *list)
{
	while (list) {
		struct page *page = list;

		list = page->owner;
		page_put(page);
	}
}

/* Copies while memory runs out, later in each round. The parent is unchanged, and nothing leaks. */
SELFTEST(mm_process, copy_out_of_memory)
{
	cpumask_t allowed = stay_on_cpu(); /* other CPUs cache free pages */
	struct leak_counts before;
	struct mm *parent, *child;
	bool worked = false;

	leak_snapshot(&before);
	parent = mm_alloc();
	ASSERT(parent);
	EXPECT_EQ(map_fixed(parent, USER_BASE, 2 * PAGE_SIZE), 0);
	/* Each area needs a page table of its own. */
	for (u64 i = 1; i < 24; i++)
		EXPECT_EQ(map_fixed(parent, USER_BASE + (i << 30), PAGE_SIZE), 0);
	set_mm(parent);
	for (u64 i = 0; i < 24; i++)
		EXPECT_EQ(put_user(i, (u64 *)(USER_BASE + (i << 30))), 0);
	for (u64 nr = 0; nr < 80 && !worked; nr += 3) {
		struct page *list = exhaust(), *spare = list;

		/* Frees nr pages. */
		for (u64 i = 0; i < nr && list; i++) {
			spare = list;
			list = list->owner;
			page_put(spare);
		}
		/*
		 * User pages are not taken from the reserve, and a kernel thread has no process to
		 * kill.
		 */
		EXPECT_EQ(mm_fault(parent, USER_BASE + PAGE_SIZE, PROT_WRITE, false), -ENOMEM);
		child = mm_copy(parent);
		if (child) {
			worked = true;
			mm_put(child);
		}
		release(list);
		for (u64 i = 0; i < 24; i++) {
			u64 addr = USER_BASE + (i << 30);

			EXPECT_EQ(atomic_read(&pte_page(entry_of(parent, addr))->refs), 1);
			EXPECT_EQ(peek(addr), i);
			EXPECT_EQ(put_user(i, (u64 *)addr), 0);
		}
	}
	EXPECT(worked);
	leave_mm(parent);
	sched_set_affinity(current, allowed);
	EXPECT(leak_check(&before));
}

/*
 * Without memory for page tables, the move of a part of a shared area fails and does not split it.
 */
SELFTEST(mm_process, move_out_of_memory)
{
	cpumask_t allowed = stay_on_cpu();
	u64 middle = USER_BASE + PAGE_SIZE, to = USER_BASE + (1UL << 30);
	struct leak_counts before;
	struct page *list;
	struct mm *mm;

	leak_snapshot(&before);
	mm = mm_alloc();
	ASSERT(mm);
	EXPECT_EQ(mm_map(mm, USER_BASE, 3 * PAGE_SIZE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
			 NULL, 0),
		  USER_BASE);
	set_mm(mm);
	EXPECT_EQ(put_user(7UL, (u64 *)middle), 0);
	list = exhaust();
	EXPECT_EQ(mm_move(mm, middle, PAGE_SIZE, PAGE_SIZE, MAYMOVE | FIXED, to), -ENOMEM);
	release(list);
	EXPECT_EQ(mm->nr_vmas, 1);
	EXPECT_EQ(peek(middle), 7);
	EXPECT_EQ(mm_move(mm, middle, PAGE_SIZE, PAGE_SIZE, MAYMOVE | FIXED, to), to);
	EXPECT_EQ(mm->nr_vmas, 3);
	EXPECT_EQ(peek(to), 7);
	leave_mm(mm);
	sched_set_affinity(current, allowed);
	EXPECT(leak_check(&before));
}

#define MIN_COPIES 20
#define MAX_COPIES 150

static struct mm *written_mm;
static bool stop_writers;
static unsigned int nr_writers, nr_begun;
static u64 nr_bad_values;
static u64 nr_copies_written;

/* Counts in one word of a page while the test copies the address space. No count may be lost. */
static int count_in_page(void *arg)
{
	u64 __user *word = (u64 *)(USER_BASE + (u64)arg * 8), want = 0, value = 0;

	mm_get(written_mm);
	set_mm(written_mm);
	__atomic_add_fetch(&nr_begun, 1, __ATOMIC_SEQ_CST);
	while (!READ_ONCE(stop_writers)) {
		if (get_user(value, word) || value != want || put_user(++want, word))
			WRITE_ONCE(nr_bad_values, nr_bad_values + 1);
		cond_resched();
	}
	__atomic_add_fetch(&nr_copies_written, want, __ATOMIC_SEQ_CST);
	leave_mm(written_mm);
	__atomic_sub_fetch(&nr_writers, 1, __ATOMIC_SEQ_CST);
	task_exit(0);
}

/* Threads write to one page while the test copies it on write for children. */
SELFTEST(mm_process, copy_under_writers)
{
	u64 enough_ns, sum = 0;
	struct mm *children[4] = {};
	struct leak_counts before;
	unsigned int cpu;

	leak_snapshot(&before);
	written_mm = mm_alloc();
	ASSERT(written_mm);
	stop_writers = false;
	nr_bad_values = nr_copies_written = nr_begun = 0;
	EXPECT_EQ(map_fixed(written_mm, USER_BASE, PAGE_SIZE), 0);
	for_each_online_cpu(cpu) {
		struct task *task = kthread_create(count_in_page, (void *)(u64)cpu, "writer");

		ASSERT(!IS_ERR(task));
		__atomic_add_fetch(&nr_writers, 1, __ATOMIC_SEQ_CST);
		sched_set_affinity(task, BIT(cpu));
		task_wake(task);
	}
	EXPECT(becomes(READ_ONCE(nr_begun) == READ_ONCE(nr_writers)));
	enough_ns = clock_monotonic_ns() + ENOUGH_NS;
	for (unsigned int i = 0; i < MAX_COPIES; i++) {
		struct mm **child = &children[i % ARRAY_SIZE(children)];

		if (i >= MIN_COPIES && clock_monotonic_ns() >= enough_ns)
			break;
		if (*child)
			mm_put(*child);
		*child = mm_copy(written_mm);
		EXPECT(*child);
		cond_resched();
	}
	WRITE_ONCE(stop_writers, true);
	while (READ_ONCE(nr_writers)) {
		cpu_relax();
		schedule();
	}
	EXPECT_EQ(nr_bad_values, 0);
	set_mm(written_mm);
	for_each_online_cpu(cpu)
		sum += peek(USER_BASE + cpu * 8);
	EXPECT_EQ(sum, nr_copies_written);
	set_mm(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		mm_put(children[i]);
	mm_put(written_mm);
	EXPECT(leak_check(&before)); /* also waits until the writers have exited */
}
