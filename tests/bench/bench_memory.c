// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the instructions of an object of kmalloc and of its free together, without and with call
 * chains: "bench: <name> <cycles> <objects>". The chain has seven frames, from slab_alloc() to the
 * thread's first function.
 */

#include <lego/selftest.h>

#include "../../kernel/profile/memory/kernel_chains.h"

#include <asm/irqflags.h>
#include <lego/slab.h>

#define NR_OBJECTS 1000
#define SIZE	   100

static noinline u64 cycles_of_objects(void)
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc(), cycles;

	for (u32 i = 0; i < NR_OBJECTS; i++)
		kfree(kmalloc(SIZE));
	cycles = rdtsc() - start;
	local_irq_restore(flags);
	return cycles;
}

SELFTEST(bench, memory)
{
	cycles_of_objects();
	printk("bench: kmalloc %lu %u\n", cycles_of_objects(), NR_OBJECTS);
	kernel_chains_switch(true);
	cycles_of_objects();
	printk("bench: kmalloc_chains %lu %u\n", cycles_of_objects(), NR_OBJECTS);
	kernel_chains_switch(false);
}
