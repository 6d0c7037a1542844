// SPDX-License-Identifier: BSD-2-Clause
/*
 * Maps device memory and kernel stacks. Addresses are allocated once, upwards, with a guard page
 * after each range. Device mappings are never freed. Freed stacks stay mapped, in a list linked
 * through their lowest word, so there are never more stacks than the largest number of threads that
 * existed at a time.
 */

#include <lego/vmap.h>

#include <asm/pgtable.h>
#include <lego/assert.h>
#include <lego/kernel.h>
#include <lego/page.h>
#include <lego/spinlock.h>

#define STACK_PAGES (KERNEL_STACK_SIZE / PAGE_SIZE)

struct free_stack {
	struct free_stack *next;
};

static DEFINE_SPINLOCK(vmap_lock); /* taken with interrupts off */
static u64 vmap_next = VMAP_START + PAGE_SIZE;
static struct free_stack *free_stacks;
static u64 nr_stacks, nr_free_stacks;

/* Allocates a range of addresses with all page tables. Returns 0 if that fails. */
static u64 range_alloc(u64 size_bytes)
{
	u64 virt = vmap_next;

	ASSERT_HELD(&vmap_lock);
	DEBUG_ASSERT(size_bytes && !(size_bytes % PAGE_SIZE));
	if (size_bytes + PAGE_SIZE > VMAP_END - virt)
		return 0;
	for (u64 done = 0; done < size_bytes; done += PAGE_SIZE)
		if (!pgtable_alloc(kernel_pgd, virt + done))
			return 0;
	vmap_next += size_bytes + PAGE_SIZE;
	return virt;
}

volatile void *ioremap(phys_addr_t phys, size_t size_bytes)
{
	phys_addr_t start = ALIGN_DOWN(phys, PAGE_SIZE);
	phys_addr_t end = phys + size_bytes;
	unsigned long flags;
	u64 virt;

	if (!size_bytes || end < phys || end > PTE_ADDR_MASK)
		return NULL;
	end = ALIGN_UP(end, PAGE_SIZE);
	flags = spin_lock_irqsave(&vmap_lock);
	virt = range_alloc(end - start);
	if (virt)
		kernel_map(virt, start, end - start, PTE_KERNEL_DEVICE);
	spin_unlock_irqrestore(&vmap_lock, flags);
	return virt ? (void *)(virt + (phys - start)) : NULL;
}

static void *stack_create(void)
{
	struct page *pages[STACK_PAGES];
	unsigned int nr = 0;
	unsigned long flags;
	u64 virt;

	for (; nr < STACK_PAGES; nr++) {
		pages[nr] = page_alloc(0, 0);
		if (!pages[nr])
			goto out_free;
	}
	flags = spin_lock_irqsave(&vmap_lock);
	virt = range_alloc(KERNEL_STACK_SIZE);
	for (unsigned int i = 0; virt && i < STACK_PAGES; i++)
		kernel_map(virt + i * PAGE_SIZE, page_to_phys(pages[i]), PAGE_SIZE, PTE_KERNEL);
	nr_stacks += virt != 0;
	spin_unlock_irqrestore(&vmap_lock, flags);
	if (virt)
		return (void *)virt;
out_free:
	while (nr-- > 0)
		page_put(pages[nr]);
	return NULL;
}

void *kernel_stack_alloc(void)
{
	unsigned long flags = spin_lock_irqsave(&vmap_lock);
	struct free_stack *stack = free_stacks;

	DEBUG_ASSERT(!stack == !nr_free_stacks && nr_free_stacks <= nr_stacks);
	if (stack) {
		free_stacks = stack->next;
		nr_free_stacks--;
	}
	spin_unlock_irqrestore(&vmap_lock, flags);
	return stack ? stack : stack_create();
}

void kernel_stack_free(void *ptr)
{
	struct free_stack *stack = ptr;
	unsigned long flags = spin_lock_irqsave(&vmap_lock);

	DEBUG_ASSERT(nr_free_stacks < nr_stacks);
	stack->next = free_stacks;
	free_stacks = stack;
	nr_free_stacks++;
	spin_unlock_irqrestore(&vmap_lock, flags);
}

u64 vmap_nr_stacks(void)
{
	return READ_ONCE(nr_stacks) - READ_ONCE(nr_free_stacks);
}

u64 vmap_nr_stack_pages(void)
{
	u64 nr = READ_ONCE(nr_stacks) * STACK_PAGES, end = READ_ONCE(vmap_next) + LARGE_PAGE_SIZE;

	/* A last-level table covers 2 MiB. The upper tables are made once, at boot. */
	for (u64 virt = VMAP_START; virt < end; virt += LARGE_PAGE_SIZE)
		nr += pgtable_find(kernel_pgd, virt) != NULL;
	return nr;
}
