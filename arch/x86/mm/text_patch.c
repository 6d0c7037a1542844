// SPDX-License-Identifier: BSD-2-Clause
#include <asm/text_patch.h>

#include <asm/irqflags.h>
#include <asm/pgtable.h>
#include <asm/setup.h>
#include <lego/bug.h>
#include <lego/kernel.h>
#include <lego/smp.h>

/* The last two pages of the vmap area are the alias: vmap.c never gives out its end. */
#define ALIAS (VMAP_END - 2 * PAGE_SIZE)

static void map_alias(u64 alias, const void *text)
{
	u64 *pte = pgtable_alloc(kernel_pgd, alias);

	if (!pte)
		panic("no memory to patch the kernel's code");
	WRITE_ONCE(*pte, ALIGN_DOWN(virt_to_phys(text), PAGE_SIZE) | PTE_KERNEL);
	invlpg(alias);
}

static void unmap_alias(u64 alias)
{
	WRITE_ONCE(*pgtable_find(kernel_pgd, alias), 0);
	invlpg(alias);
}

void text_write(void *addr, const void *bytes, size_t n)
{
	volatile u8 *to = (u8 *)ALIAS + (u64)addr % PAGE_SIZE;
	const u8 *from = bytes;
	unsigned long flags;

	BUG_ON((u64)addr < (u64)_stext || (u64)addr + n > (u64)_etext || n > PAGE_SIZE);
	flags = local_irq_save();
	map_alias(ALIAS, addr);
	map_alias(ALIAS + PAGE_SIZE, (u8 *)addr + n - 1);
	while (n--)
		*to++ = *from++;
	unmap_alias(ALIAS);
	unmap_alias(ALIAS + PAGE_SIZE);
	local_irq_restore(flags);
}

/* CPUID serializes (SDM vol. 3, 9.3), as does the IRET from the interrupt. */
static void serialize(void *unused)
{
	u32 eax = 0, ecx = 0;

	asm volatile("cpuid" : "+a"(eax), "+c"(ecx)::"ebx", "edx", "memory");
}

void text_sync_cpus(void)
{
	smp_call_mask(READ_ONCE(cpu_online_mask), serialize, NULL);
}
