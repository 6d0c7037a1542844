/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_VMAP_H
#define LEGO_VMAP_H

/* Kernel virtual ranges at VMAP_START, each followed by an unmapped guard page. Process context. */

#include <lego/types.h>

/* Maps device registers uncached; phys need not be aligned. NULL: out of memory. Never undone. */
volatile void *ioremap(phys_addr_t phys, size_t size_bytes);

/*
 * Allocates a kernel stack of KERNEL_STACK_SIZE bytes, with unmapped pages below and above. NULL:
 * out of memory. Freed stacks stay mapped in a cache, so reuse costs no TLB shootdown.
 */
void *kernel_stack_alloc(void);
void kernel_stack_free(void *stack);

/*
 * For leak checks: return the stacks in use, and the pages of all stacks, cached ones included, and
 * of their page tables.
 */
u64 vmap_nr_stacks(void);
u64 vmap_nr_stack_pages(void);

#endif
