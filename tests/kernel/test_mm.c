// SPDX-License-Identifier: BSD-2-Clause
/* Memory: pages, kmalloc, kernel protections, areas of an address space, and user copies. */

#include <lego/selftest.h>

#include "../../kernel/fs/inode.h"
#include "../../kernel/mm/internal.h"
#include "sleep.h"
#include "test_mm.h"

#include <asm/cpufeature.h>
#include <asm/irqflags.h>
#include <asm/pgtable.h>
#include <asm/setup.h>
#include <asm/tlb.h>
#include <lego/boot.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/leak.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/string.h>
#include <lego/uaccess.h>
#include <lego/vmap.h>

#define MREMAP_MAYMOVE 1

SELFTEST(mm, page_orders)
{
	struct page *pages[MAX_PAGE_ORDER + 1];
	struct leak_counts before, held;

	leak_snapshot(&before);
	for (unsigned int order = 0; order <= MAX_PAGE_ORDER; order++) {
		pages[order] = page_alloc(order, PAGE_ZERO);
		ASSERT(pages[order]);
		EXPECT(IS_ALIGNED(page_to_phys(pages[order]), PAGE_SIZE << order));
		EXPECT_EQ(atomic_read(&pages[order]->refs), 1);
		for (u64 i = 0; i < PAGE_SIZE << order; i += 512)
			EXPECT(((char *)page_address(pages[order]))[i] == 0);
		memset(page_address(pages[order]), 0x5a, PAGE_SIZE << order);
	}
	leak_snapshot(&held);
	EXPECT_EQ(held.pages - before.pages, (2 << MAX_PAGE_ORDER) - 1);
	for (unsigned int order = 0; order <= MAX_PAGE_ORDER; order++)
		page_put(pages[order]);
	EXPECT(leak_check(&before));
	EXPECT(!page_alloc(MAX_PAGE_ORDER + 1, 0));
}

SELFTEST(mm, page_many)
{
	struct leak_counts before;
	struct page *list = NULL;

	leak_snapshot(&before);
	for (int i = 0; i < 5000; i++) {
		struct page *page = page_alloc(0, 0);

		ASSERT(page);
		page->owner = list;
		list = page;
		*(struct page **)page_address(page) = page;
	}
	while (list) {
		struct page *page = list;

		list = page->owner;
		EXPECT(*(struct page **)page_address(page) == page);
		page_get(page);
		page_put(page);
		page_put(page);
	}
	EXPECT(leak_check(&before));
}

SELFTEST(mm, kmalloc_sizes)
{
	u64 live = slab_bytes_live();

	for (size_t size = 0; size <= 20000; size = size < 64 ? size + 1 : size + size / 7) {
		u64 alignment = size < SLAB_LARGE_SIZE ? 8 : SLAB_LARGE_ALIGN;
		char *ptrs[9];

		for (int i = 0; i < 9; i++) {
			ptrs[i] = kmalloc(size);
			ASSERT(ptrs[i]);
			EXPECT(IS_ALIGNED((u64)ptrs[i], alignment));
			memset(ptrs[i], i, size);
		}
		for (int i = 0; i < 9; i++) {
			EXPECT(!size || (ptrs[i][0] == i && ptrs[i][size - 1] == i));
			kfree(ptrs[i]);
		}
	}
	for (size_t size = 16; size <= PAGE_SIZE; size *= 2) {
		char *ptr = kzalloc(size);

		EXPECT(ptr[0] == 0 && ptr[size - 1] == 0);
		kfree(ptr);
	}
	EXPECT(!kmalloc(1UL << 40));
	EXPECT_EQ(slab_bytes_live(), live);
}

/*
 * Empty slabs go back to the page allocator, except those with objects on a CPU's free list. The
 * test stays on one CPU, so few slabs are kept.
 */
SELFTEST(mm, kmalloc_returns_pages)
{
	u64 live = slab_bytes_live(), nr_free;
	cpumask_t allowed = stay_on_cpu();
	void **list = NULL;

	kfree(kmalloc(192));
	nr_free = page_nr_free();
	for (int i = 0; i < 20000; i++) {
		void **object = kmalloc(192);

		ASSERT(object);
		*object = list;
		list = object;
	}
	EXPECT(nr_free - page_nr_free() >= 20000 * 192 / PAGE_SIZE);
	while (list) {
		void **object = list;

		list = *object;
		kfree(object);
	}
	EXPECT_EQ(slab_bytes_live(), live);
	EXPECT(page_nr_free() + 16 >= nr_free);
	sched_set_affinity(current, allowed);
}

static void *foreign[64][64];

static void alloc_on_cpu(void *unused)
{
	unsigned int cpu = smp_processor_id();

	for (int i = 0; i < 64; i++)
		foreign[cpu][i] = kmalloc(16 + 40 * i);
}

/* Objects are allocated on every CPU and freed on this one. */
SELFTEST(mm, kmalloc_other_cpus)
{
	u64 live = slab_bytes_live();
	unsigned int cpu;

	for (int round = 0; round < 20; round++) {
		smp_call_mask(cpu_online_mask, alloc_on_cpu, NULL);
		for_each_online_cpu(cpu) {
			for (int i = 0; i < 64; i++) {
				EXPECT(foreign[cpu][i]);
				kfree(foreign[cpu][i]);
			}
		}
	}
	EXPECT_EQ(slab_bytes_live(), live);
}

/* Returns whether writing a byte faults. The byte keeps its value. */
static bool write_faults(void *ptr)
{
	long fault = 1;

	asm volatile("1:	lock orb $0, (%[ptr])\n"
		     "	xorl	%k[fault], %k[fault]\n"
		     "2:\n" ASM_EXCEPTION("1b", "2b")
		     : [fault] "+r"(fault)
		     : [ptr] "r"(ptr)
		     : "memory", "cc");
	return fault;
}

SELFTEST(mm, kernel_protections)
{
	u64 text = (u64)write_faults;
	static int data;

	EXPECT(!write_faults(&data));
	EXPECT(!write_faults(phys_to_virt(virt_to_phys(&data))));
	EXPECT(write_faults((void *)text));
	EXPECT(write_faults(phys_to_virt(virt_to_phys((void *)text))));
	EXPECT(write_faults(__rodata_start));
	EXPECT(write_faults(phys_to_virt(virt_to_phys(__rodata_start))));
	EXPECT(write_faults(NULL));
	EXPECT(!(kernel_pte(text) & PTE_NX));
	EXPECT(kernel_pte((u64)__rodata_start) & PTE_NX);
	EXPECT(kernel_pte((u64)&data) & PTE_NX);
	EXPECT_EQ(kernel_pgd[0], 0);
}

/* No page of the kernel half is both writable and executable. */
SELFTEST(mm, kernel_write_xor_execute)
{
	for (u64 addr = (u64)_text; addr < (u64)_end; addr += PAGE_SIZE) {
		u64 entry = kernel_pte(addr);

		EXPECT(entry & PTE_PRESENT && (!(entry & PTE_WRITE) || entry & PTE_NX));
		entry = kernel_pte((u64)phys_to_virt(virt_to_phys((void *)addr)));
		EXPECT(entry & PTE_NX);
	}
	EXPECT(!kernel_pte((u64)_end));
	for (u64 addr = PAGE_OFFSET; addr < PAGE_OFFSET + (256UL << 20); addr += LARGE_PAGE_SIZE)
		EXPECT(!kernel_pte(addr) || kernel_pte(addr) & PTE_NX);
}

SELFTEST(mm, kernel_stack_guards)
{
	char *stack = kernel_stack_alloc(), *again;

	ASSERT(stack);
	EXPECT(!write_faults(stack));
	EXPECT(!write_faults(stack + KERNEL_STACK_SIZE - 1));
	EXPECT(write_faults(stack - 1));
	EXPECT(write_faults(stack + KERNEL_STACK_SIZE));
	kernel_stack_free(stack);
	again = kernel_stack_alloc();
	EXPECT(again == stack);
	kernel_stack_free(again);
}

SELFTEST(mm, vma_split_and_merge)
{
	u64 live = slab_bytes_live();
	struct mm *mm = mm_alloc();

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 0x9000), 0);
	EXPECT_EQ(mm->nr_vmas, 1);
	EXPECT_EQ(map_fixed(mm, USER_BASE + 0x9000, 0x1000), 0);
	EXPECT_EQ(mm->nr_vmas, 1);
	EXPECT_EQ(mm_unmap(mm, USER_BASE + 0x4000, 0x1000), 0);
	EXPECT_EQ(mm->nr_vmas, 2);
	EXPECT_EQ(mm->areas.first->end, USER_BASE + 0x4000);
	EXPECT_EQ(mm->areas.last->start, USER_BASE + 0x5000);
	EXPECT_EQ(map_fixed(mm, USER_BASE + 0x4000, 0x1000), 0);
	EXPECT_EQ(mm->nr_vmas, 1);
	EXPECT_EQ(mm_protect(mm, USER_BASE + 0x1000, 0x2000, PROT_READ), 0);
	EXPECT_EQ(mm->nr_vmas, 3);
	EXPECT_EQ(mm_protect(mm, USER_BASE + 0x8000, 0x3000, PROT_READ), -ENOMEM);
	EXPECT_EQ(mm_protect(mm, USER_BASE, 0xa000, RW), 0);
	EXPECT_EQ(mm->nr_vmas, 1);
	EXPECT_EQ(mm->areas.first->start, USER_BASE);
	EXPECT_EQ(mm->areas.first->end, USER_BASE + 0xa000);
	EXPECT_EQ(mm_unmap(mm, 0, TASK_SIZE), 0);
	EXPECT_EQ(mm->nr_vmas, 0);
	mm_put(mm);
	EXPECT_EQ(slab_bytes_live(), live);
}

/*
 * At the limit, unmapping whole areas or their ends works. A hole or a partial change of access
 * would add an area, and fails. As in Linux, a new mapping may go one above the limit.
 */
SELFTEST(mm, unmap_at_the_limit)
{
	struct mm *mm = mm_alloc();
	u64 addr = USER_BASE;

	ASSERT(mm);
	while (mm_map(mm, addr, 3 * PAGE_SIZE, RW, ANON | MAP_FIXED, NULL, 0) == (long)addr)
		addr += 4 * PAGE_SIZE;
	EXPECT_EQ(mm->nr_vmas, MM_MAX_AREAS + 1);
	EXPECT_EQ(mm_unmap(mm, USER_BASE + PAGE_SIZE, PAGE_SIZE), -ENOMEM);
	EXPECT_EQ(mm_protect(mm, USER_BASE, PAGE_SIZE, PROT_READ), -ENOMEM);
	EXPECT_EQ(mm_protect(mm, USER_BASE, 3 * PAGE_SIZE, PROT_READ), 0);
	EXPECT_EQ(mm_move(mm, USER_BASE, PAGE_SIZE, 2 * PAGE_SIZE, MREMAP_MAYMOVE, 0), -ENOMEM);
	EXPECT_EQ(mm_move(mm, USER_BASE, 3 * PAGE_SIZE, 4 * PAGE_SIZE, 0, 0), (long)USER_BASE);
	EXPECT_EQ(mm_move(mm, USER_BASE, 4 * PAGE_SIZE, 3 * PAGE_SIZE, 0, 0), (long)USER_BASE);
	EXPECT_EQ(mm->nr_vmas, MM_MAX_AREAS + 1);
	EXPECT_EQ(mm_unmap(mm, USER_BASE, PAGE_SIZE), 0);
	EXPECT_EQ(mm_unmap(mm, USER_BASE + 2 * PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(mm->nr_vmas, MM_MAX_AREAS + 1);
	EXPECT_EQ(mm_unmap(mm, USER_BASE + 4 * PAGE_SIZE, 7 * PAGE_SIZE), 0);
	EXPECT_EQ(mm->nr_vmas, MM_MAX_AREAS - 1);
	EXPECT_EQ(mm_protect(mm, addr - 3 * PAGE_SIZE, PAGE_SIZE, PROT_READ), -ENOMEM);
	EXPECT_EQ(mm->nr_vmas, MM_MAX_AREAS - 1);
	EXPECT_EQ(mm_unmap(mm, addr - 3 * PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(mm->nr_vmas, MM_MAX_AREAS);
	EXPECT_EQ(mm_unmap(mm, addr - 7 * PAGE_SIZE, PAGE_SIZE), -ENOMEM);
	EXPECT_EQ(map_fixed(mm, addr, PAGE_SIZE), 0);
	EXPECT_EQ(mm->nr_vmas, MM_MAX_AREAS + 1);
	EXPECT_EQ(map_fixed(mm, addr + 2 * PAGE_SIZE, PAGE_SIZE), -ENOMEM);
	mm_put(mm);
}

SELFTEST(mm, vma_placement)
{
	struct mm *mm = mm_alloc();
	u64 base;
	long a, b;

	ASSERT(mm);
	base = mm->mmap_base;
	a = mm_map(mm, 0, 0x3000, RW, ANON, NULL, 0);
	EXPECT_EQ(a, base - 0x3000);
	b = mm_map(mm, 0, 0x1000, PROT_READ, ANON, NULL, 0);
	EXPECT_EQ(b, base - 0x4000);
	EXPECT_EQ(mm_unmap(mm, a + 0x1000, 0x1000), 0);
	EXPECT_EQ(mm_map(mm, 0, 0x2000, RW, ANON, NULL, 0), base - 0x6000);
	EXPECT_EQ(mm_map(mm, 0, 0x1000, PROT_READ, ANON, NULL, 0), a + 0x1000);
	EXPECT_EQ(mm_map(mm, a, 0x1000, RW, ANON | MAP_FIXED_NOREPLACE, NULL, 0), -EEXIST);
	EXPECT_EQ(mm_map(mm, USER_BASE, 0x1000, RW, ANON, NULL, 0), USER_BASE);
	EXPECT(mm_map(mm, USER_BASE, 0x1000, RW, ANON, NULL, 0) != USER_BASE);
	EXPECT_EQ(mm_map(mm, 0, 0, RW, ANON, NULL, 0), -EINVAL);
	EXPECT_EQ(mm_map(mm, 0, ~0UL, RW, ANON, NULL, 0), -ENOMEM);
	EXPECT_EQ(mm_map(mm, 0, TASK_SIZE, RW, ANON, NULL, 0), -ENOMEM);
	EXPECT_EQ(mm_map(mm, TASK_SIZE, 0x1000, RW, ANON | MAP_FIXED, NULL, 0), -ENOMEM);
	EXPECT_EQ(mm_map(mm, 0, 0x1000, RW, ANON | MAP_FIXED, NULL, 0), -EPERM);
	EXPECT_EQ(mm_unmap(mm, TASK_SIZE, 0x1000), -EINVAL);
	EXPECT_EQ(mm_unmap(mm, 0x1000, ~0UL), -EINVAL);
	EXPECT_EQ(mm_unmap(mm, 0x1000, 0), -EINVAL);
	mm_put(mm);
}

SELFTEST(mm, brk)
{
	struct mm *mm = mm_alloc();

	ASSERT(mm);
	mm->brk_start = mm->brk = USER_BASE;
	EXPECT_EQ(mm_set_brk(mm, 0), USER_BASE);
	EXPECT_EQ(mm_set_brk(mm, USER_BASE + 0x2345), USER_BASE + 0x2345);
	EXPECT_EQ(mm_set_brk(mm, USER_BASE + 0x9000), USER_BASE + 0x9000);
	EXPECT_EQ(mm->nr_vmas, 1);
	EXPECT_EQ(map_fixed(mm, USER_BASE + 0x10000, 0x1000), 0);
	EXPECT_EQ(mm_set_brk(mm, USER_BASE + 0x11000), USER_BASE + 0x9000);
	EXPECT_EQ(mm_set_brk(mm, ~0UL), USER_BASE + 0x9000);
	EXPECT_EQ(mm_set_brk(mm, USER_BASE + 1), USER_BASE + 1);
	EXPECT_EQ(mm->areas.first->end, USER_BASE + 0x1000);
	EXPECT_EQ(mm_set_brk(mm, USER_BASE), USER_BASE);
	EXPECT_EQ(mm->nr_vmas, 1);
	mm_put(mm);
}

SELFTEST(mm, user_copies)
{
	char __user *user = (char *)USER_BASE;
	struct leak_counts before;
	struct mm *mm;
	char buf[64];
	u32 word, old = 0;

	leak_snapshot(&before);
	mm = mm_alloc();
	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	set_mm(mm);
	memset(buf, 0x5a, sizeof(buf));
	EXPECT_EQ(copy_from_user(buf, user, sizeof(buf)), 0);
	EXPECT(buf[0] == 0 && buf[63] == 0);
	EXPECT_EQ(mm->nr_pages, 1);
	EXPECT_EQ(copy_to_user(user + PAGE_SIZE - 3, "across", 7), 0);
	EXPECT_EQ(strncpy_from_user(buf, user + PAGE_SIZE - 3, sizeof(buf)), 6);
	EXPECT(!strcmp(buf, "across"));
	EXPECT_EQ(strncpy_from_user(buf, user + PAGE_SIZE - 3, 6), -ENAMETOOLONG);
	EXPECT_EQ(copy_to_user(user + 2 * PAGE_SIZE - 3, "across", 7), -EFAULT);
	EXPECT_EQ(copy_to_user(user + 2 * PAGE_SIZE - 17, buf, 33), -EFAULT);
	EXPECT_EQ(clear_user(user + PAGE_SIZE - 3, 5), 0);
	EXPECT_EQ(copy_from_user(buf, user + PAGE_SIZE - 3, 7), 0);
	EXPECT(buf[4] == 0 && buf[5] == 's');
	EXPECT_EQ(clear_user(user + 2 * PAGE_SIZE - 1, 2), -EFAULT);
	EXPECT_EQ(put_user(7, (u32 *)user), 0);
	EXPECT_EQ(user_cmpxchg_u32((u32 *)user, 7, 9, &old), 0);
	EXPECT_EQ(old, 7);
	EXPECT_EQ(user_cmpxchg_u32((u32 *)user, 7, 11, &old), 0);
	EXPECT_EQ(old, 9);
	EXPECT_EQ(get_user(word, (u32 *)user), 0);
	EXPECT_EQ(word, 9);
	EXPECT_EQ(user_cmpxchg_u32((u32 *)(user + 2 * PAGE_SIZE), 7, 9, &old), -EFAULT);
	leave_mm(mm);
	EXPECT(leak_check(&before));
}

SELFTEST(mm, user_bad_pointers)
{
	static const u64 bad[] = { 0,
				   8,
				   USER_BASE,
				   TASK_SIZE - 8,
				   TASK_SIZE,
				   1UL << 63,
				   PAGE_OFFSET + 0x1000,
				   (u64)_text,
				   ~0UL - 0xfff };
	struct mm *mm = mm_alloc();
	char buf[16];
	u32 old;

	ASSERT(mm);
	set_mm(mm);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		void *ptr = (void *)bad[i];

		EXPECT_EQ(copy_from_user(buf, ptr, 16), -EFAULT);
		EXPECT_EQ(copy_to_user(ptr, buf, 16), -EFAULT);
		EXPECT_EQ(clear_user(ptr, 16), -EFAULT);
		EXPECT_EQ(strncpy_from_user(buf, ptr, 16), -EFAULT);
		EXPECT_EQ(user_cmpxchg_u32(ptr, 0, 0, &old), -EFAULT);
	}
	EXPECT_EQ(copy_from_user(buf, (void *)USER_BASE, ~0UL), -EFAULT);
	EXPECT_EQ(copy_from_user(buf, NULL, 0), 0);
	leave_mm(mm);
}

SELFTEST(mm, user_protections)
{
	struct mm *mm = mm_alloc();
	u64 __user *user = (u64 *)USER_BASE;
	u64 value = 0;

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, PAGE_SIZE), 0);
	set_mm(mm);
	EXPECT_EQ(put_user(42, user), 0);
	EXPECT_EQ(mm_protect(mm, USER_BASE, PAGE_SIZE, PROT_READ), 0);
	EXPECT_EQ(put_user(43, user), -EFAULT);
	EXPECT_EQ(get_user(value, user), 0);
	EXPECT_EQ(value, 42);
	EXPECT_EQ(mm_protect(mm, USER_BASE, PAGE_SIZE, 0), 0);
	EXPECT_EQ(get_user(value, user), -EFAULT);
	EXPECT_EQ(mm->nr_pages, 1);
	EXPECT_EQ(mm_protect(mm, USER_BASE, PAGE_SIZE, RW), 0);
	EXPECT_EQ(get_user(value, user), 0);
	EXPECT_EQ(value, 42);
	/* The kernel reaches user pages only through the copies. */
	EXPECT(write_faults(user) == cpu_has_smap());
	EXPECT_EQ(mm_unmap(mm, USER_BASE, PAGE_SIZE), 0);
	EXPECT_EQ(get_user(value, user), -EFAULT);
	leave_mm(mm);
}

/* A private mapping shares the file's page until it writes to it; the file never changes. */
SELFTEST(mm, user_file_pages)
{
	u64 __user *user = (u64 *)USER_BASE;
	u64 value = 0, back = 0;
	struct leak_counts before;
	struct file *file;
	char *content;
	struct mm *mm;

	leak_snapshot(&before);
	file = file_open("/mm-test", O_CREAT | O_RDWR, 0600);
	content = kmalloc(6000);
	mm = mm_alloc();
	ASSERT(mm && content && !IS_ERR(file));
	memset(content, 0x11, 6000);
	mutex_lock(&file->inode->write_lock);
	EXPECT_EQ(inode_write(file->inode, content, 6000, 0, false), 6000);
	mutex_unlock(&file->inode->write_lock);
	EXPECT_EQ(mm_map(mm, USER_BASE, 3 * PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0),
		  USER_BASE);
	EXPECT_EQ(mm_map_segment(mm, USER_BASE + 0x10000, 2 * PAGE_SIZE, RW, file, 0, 100),
		  USER_BASE + 0x10000);
	set_mm(mm);
	EXPECT_EQ(get_user(value, user), 0);
	EXPECT_EQ(value, 0x1111111111111111);
	EXPECT(*pgtable_find(mm->pgd, USER_BASE) & PTE_BORROWED);
	/* Behind the end of the file: zeros in its last page, a fault in the next page. */
	EXPECT_EQ(get_user(value, user + 1023), 0);
	EXPECT_EQ(value, 0);
	EXPECT_EQ(get_user(value, user + 1024), -EFAULT);
	EXPECT_EQ(mm_protect(mm, USER_BASE, PAGE_SIZE, RW), 0);
	EXPECT_EQ(put_user(7, user), 0);
	EXPECT(!(*pgtable_find(mm->pgd, USER_BASE) & PTE_BORROWED));
	EXPECT_EQ(file_read_at(file, &back, 8, 0), 8);
	EXPECT_EQ(back, 0x1111111111111111);
	user = (u64 *)(USER_BASE + 0x10000);
	EXPECT_EQ(get_user(value, user + 12), 0);
	EXPECT_EQ(value, 0x11111111);
	EXPECT_EQ(get_user(value, user + 512), 0);
	EXPECT_EQ(value, 0);
	leave_mm(mm);
	tree_lock_write();
	tree_remove(file->inode);
	tree_unlock();
	file_put(file);
	kfree(content);
	EXPECT(leak_check(&before));
}

#define MIN_SHOOTDOWNS 20
#define MAX_SHOOTDOWNS 200

static struct mm *shared_mm;
static bool stop_readers;
static unsigned int nr_readers, nr_begun;
static u64 nr_bad_values;

/* Reads and marks a page that the test keeps replacing. Only 0 or the mark may be read. */
static int read_shared(void *unused)
{
	u64 value = 0;

	mm_get(shared_mm);
	set_mm(shared_mm);
	__atomic_add_fetch(&nr_begun, 1, __ATOMIC_SEQ_CST);
	while (!READ_ONCE(stop_readers)) {
		if (get_user(value, (u64 *)USER_BASE) || (value != 0 && value != 0xee))
			WRITE_ONCE(nr_bad_values, nr_bad_values + 1);
		if (put_user(0xee, (u64 *)USER_BASE))
			WRITE_ONCE(nr_bad_values, nr_bad_values + 1);
		cond_resched();
	}
	leave_mm(shared_mm);
	__atomic_sub_fetch(&nr_readers, 1, __ATOMIC_SEQ_CST);
	task_exit(0);
}

/* A freed page must not be reused while a CPU can still reach it by its old address. */
SELFTEST(mm, user_shootdown)
{
	struct leak_counts before;
	unsigned int cpu;
	u64 enough_ns;

	leak_snapshot(&before);
	shared_mm = mm_alloc();
	ASSERT(shared_mm);
	stop_readers = false;
	nr_bad_values = nr_begun = 0;
	EXPECT_EQ(map_fixed(shared_mm, USER_BASE, PAGE_SIZE), 0);
	for_each_online_cpu(cpu) {
		struct task *task = kthread_create(read_shared, NULL, "reader");

		ASSERT(!IS_ERR(task));
		__atomic_add_fetch(&nr_readers, 1, __ATOMIC_SEQ_CST);
		sched_set_affinity(task, BIT(cpu));
		task_wake(task);
	}
	EXPECT(becomes(READ_ONCE(nr_begun) == READ_ONCE(nr_readers)));
	enough_ns = clock_monotonic_ns() + ENOUGH_NS;
	for (int i = 0; i < MAX_SHOOTDOWNS; i++) {
		struct page *page;

		if (i >= MIN_SHOOTDOWNS && clock_monotonic_ns() >= enough_ns)
			break;
		/*
		 * Replaces the page under the readers. The old page may be the next one allocated,
		 * so fills that one at once.
		 */
		EXPECT_EQ(map_fixed(shared_mm, USER_BASE, PAGE_SIZE), 0);
		page = page_alloc(0, 0);
		ASSERT(page);
		memset(page_address(page), 0x77, 64);
		page_put(page);
		cond_resched();
	}
	WRITE_ONCE(stop_readers, true);
	while (READ_ONCE(nr_readers)) {
		cpu_relax();
		schedule();
	}
	EXPECT_EQ(nr_bad_values, 0);
	mm_put(shared_mm);
	EXPECT(leak_check(&before)); /* also waits until the readers have exited */
}

/* Unmaps a page as MADV_DONTNEED does, up to where it has dropped the lock. */
static void take_page(struct mm *mm, u64 addr, struct pages_taken *taken)
{
	u64 end = addr + PAGE_SIZE;

	EXPECT_EQ(put_user(1UL, (u64 *)addr), 0);
	rw_mutex_lock_read(&mm->lock);
	pages_take(mm, vma_find(mm, addr), &addr, end, taken);
	rw_mutex_unlock_read(&mm->lock);
	EXPECT_EQ(addr, end);
	EXPECT_EQ(taken->nr, 1);
}

static bool flushes(struct mm *mm, long error, u64 *generation)
{
	bool flushed = mm->tlb_generation != *generation;

	EXPECT_EQ(error, 0);
	*generation = mm->tlb_generation;
	return flushed;
}

/* A change of a page that another call has unmapped, but not flushed, flushes it; others do not. */
SELFTEST(mm, take_pages)
{
	static struct pages_taken taken, more;
	u64 first = USER_BASE, second = USER_BASE + PAGE_SIZE, third = second + PAGE_SIZE;
	struct mm *mm = mm_alloc();
	u64 generation;

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, first, 3 * PAGE_SIZE), 0);
	set_mm(mm);
	take_page(mm, second, &taken);
	generation = mm->tlb_generation;
	EXPECT(!flushes(mm, mm_protect(mm, first, PAGE_SIZE, PROT_READ), &generation));
	EXPECT(flushes(mm, mm_protect(mm, second, PAGE_SIZE, PROT_READ), &generation));
	EXPECT(!flushes(mm, mm_unmap(mm, third, PAGE_SIZE), &generation));
	EXPECT(flushes(mm, mm_unmap(mm, second, PAGE_SIZE), &generation));
	EXPECT_EQ(map_fixed(mm, first, 3 * PAGE_SIZE), 0);
	take_page(mm, third, &more);
	pages_free_taken(mm, &taken);
	generation = mm->tlb_generation;
	EXPECT(flushes(mm, mm_unmap(mm, first, 3 * PAGE_SIZE), &generation));
	pages_free_taken(mm, &more);
	EXPECT_EQ(map_fixed(mm, first, PAGE_SIZE), 0);
	generation = mm->tlb_generation;
	EXPECT(!flushes(mm, mm_unmap(mm, first, PAGE_SIZE), &generation));
	EXPECT_EQ(mm->nr_pages, 0);
	leave_mm(mm);
}

#define MADV_DONTNEED 4
long sys_madvise(const struct pt_regs *regs);

static long discard(u64 addr)
{
	const struct pt_regs regs = { .rdi = addr, .rsi = PAGE_SIZE, .rdx = MADV_DONTNEED };

	return sys_madvise(&regs);
}

/* A discard returns after a flush of what another one has unmapped, but not flushed yet. */
SELFTEST(mm, second_discard)
{
	static struct pages_taken taken;
	struct mm *mm = mm_alloc();
	u64 generation;

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	set_mm(mm);
	take_page(mm, USER_BASE, &taken);
	generation = mm->tlb_generation;
	EXPECT(!flushes(mm, discard(USER_BASE + PAGE_SIZE), &generation));
	EXPECT(flushes(mm, discard(USER_BASE), &generation));
	pages_free_taken(mm, &taken);
	generation = mm->tlb_generation;
	EXPECT(!flushes(mm, discard(USER_BASE), &generation));
	leave_mm(mm);
}
