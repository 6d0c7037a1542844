/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PAGE_H
#define ASM_PAGE_H

/* Page size and the virtual memory map. */

#define PAGE_SHIFT	  12
#define PAGE_SIZE	  (1UL << PAGE_SHIFT)
#define LARGE_PAGE_SIZE	  (1UL << 21)
#define KERNEL_STACK_SIZE (4 * PAGE_SIZE)

#define TASK_SIZE	0x00007ffffffff000UL /* end of user addresses */
#define PAGE_OFFSET	0xffff888000000000UL /* direct map of physical memory */
#define VMAP_START	0xffffc90000000000UL /* device registers, kernel stacks */
#define VMAP_END	0xffffc98000000000UL
#define KERNEL_VIRT	0xffffffff81000000UL /* the kernel's image */
#define KERNEL_PHYS	0x200000UL	     /* where loaders put it: low, for small machines */
#define KERNEL_MAP_BASE (KERNEL_VIRT - KERNEL_PHYS)

#ifndef __ASSEMBLY__
#include <lego/types.h>

static inline void *phys_to_virt(phys_addr_t phys)
{
	return (void *)(phys + PAGE_OFFSET);
}

/* Converts addresses of the direct map and of the kernel's image. */
static inline phys_addr_t virt_to_phys(const void *virt)
{
	unsigned long addr = (unsigned long)virt;

	return addr >= KERNEL_MAP_BASE ? addr - KERNEL_MAP_BASE : addr - PAGE_OFFSET;
}
#endif

#endif
