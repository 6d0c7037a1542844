/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_FULL_STORES_H
#define TEST_FULL_STORES_H

/* Fills the sample stores of CPUs. */

#include "../../kernel/profile/samples/samples.h"

#include <asm/desc.h>
#include <asm/stacktrace.h>
#include <lego/smp.h>

/* Switches the source off, and empties the stores. */
static inline void start_empty(struct source_settings *saved)
{
	struct source_settings off;

	source_settings(saved);
	off = *saved;
	off.on = false;
	source_apply(&off);
	sample_reset();
}

#define FULL_DEPTH   12	   /* frames of a stack */
#define FULL_SITES   1024  /* return addresses to choose from */
#define FULL_SAMPLES 16384 /* samples of a CPU, twice what its store holds */

static inline u64 random_place(u64 *random)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return (u64)_stext + (*random >> 33) % (u64)(_etext - _stext);
}

/*
 * Fills this CPU's store with stacks that all differ. Their addresses are from all over the text.
 */
static inline void fill_store(void *sites_)
{
	const u64 *sites = sites_;
	u64 random = 1 + smp_processor_id(), stack[2 * FULL_DEPTH] = { 0 };
	struct pt_regs regs = { .cs = KERNEL_CS, .rsp = (u64)stack, .rbp = (u64)stack };

	for (u32 i = 0; i < FULL_DEPTH - 2; i++)
		stack[2 * i] = (u64)&stack[2 * i + 2];
	for (u32 i = 0; i < FULL_SAMPLES; i++) {
		for (u32 frame = 0; frame < FULL_DEPTH - 1; frame++)
			stack[2 * frame + 1] = sites[random_place(&random) % FULL_SITES];
		regs.rip = sites[random_place(&random) % FULL_SITES] + i % 32;
		sample_take(&regs, os_cycles(), 0);
	}
}

static inline void fill_stores(u64 cpus)
{
	static u64 sites[FULL_SITES];
	u64 random = 0;

	for (u32 i = 0; i < FULL_SITES; i++)
		sites[i] = random_place(&random);
	smp_call_mask(cpus, fill_store, sites);
}

#endif
