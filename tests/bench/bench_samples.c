// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a sample costs in instructions, from the call of sample_take() to its return, by the number
 * of frames of its chain: with profile.depth=1 all are alike, the program counter alone. The chains
 * are made up, on the stack. "bench: sample_<frames> <cycles> <samples>", as in bench_points.c.
 *
 * And what it takes to merge different stacks of 8 CPUs: "bench: merge <ns> <stacks> <bytes>".
 */
#include <lego/selftest.h>

#include "../../kernel/profile/internal.h"

#include <asm/desc.h>
#include <asm/irqflags.h>

#define NR_SAMPLES   1000
#define MAX_FRAMES   24
#define MERGE_CPUS   8
#define MERGE_STACKS 50000 /* of all of them */

/* Any place in the text will do that has a frame. */
static u64 place(u64 i)
{
	return (u64)vprintk + 8 + i % 8;
}

/* The last frame leads nowhere. */
static void time_samples(u32 nr_frames)
{
	u64 stack[2 * MAX_FRAMES + 4];
	struct pt_regs regs = {
		.cs = KERNEL_CS,
		.rip = place(0),
		.rsp = (u64)stack,
		.rbp = (u64)stack,
	};
	unsigned long flags = local_irq_save();
	u64 start, cycles;

	for (u32 i = 0; i <= nr_frames; i++) {
		stack[2 * i] = (u64)&stack[2 * i + 2];
		stack[2 * i + 1] = i < nr_frames ? place(i) : 0;
	}
	sample_take(&regs, os_cycles(), 0, 0);
	start = rdtsc();
	for (u32 i = 0; i < NR_SAMPLES; i++)
		sample_take(&regs, os_cycles(), 0, 0);
	cycles = rdtsc() - start;
	local_irq_restore(flags);
	printk("bench: sample_%u %lu %u\n", nr_frames, cycles, NR_SAMPLES);
}

SELFTEST(bench, samples)
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc();

	for (u32 i = 0; i < NR_SAMPLES; i++)
		barrier();
	printk("bench: sample_empty %lu %u\n", rdtsc() - start, NR_SAMPLES);
	local_irq_restore(flags);
	for (u32 nr_frames = 0; nr_frames <= MAX_FRAMES; nr_frames += 4)
		time_samples(nr_frames);
}

/* This CPU's part: chains of two callers that no other CPU has. Interrupts are off. */
static void take_many(void *unused)
{
	u64 nr = MERGE_STACKS / MERGE_CPUS, first = smp_processor_id() * nr, base = (u64)vprintk;
	u64 stack[8] = { 0 };
	struct pt_regs regs = {
		.cs = KERNEL_CS,
		.rip = place(0),
		.rsp = (u64)stack,
		.rbp = (u64)stack,
	};

	stack[0] = (u64)&stack[2];
	stack[2] = (u64)&stack[4];
	for (u64 i = first; i < first + nr; i++) {
		stack[1] = base + i % 256;
		stack[3] = base + i / 256;
		sample_take(&regs, os_cycles(), 0, 0);
	}
}

SELFTEST(bench, merge)
{
	struct source_settings saved, off;
	struct merged_stacks merged;

	if (!IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) || !cpu_online(MERGE_CPUS - 1))
		return;
	source_settings(&saved);
	off = saved;
	off.on = false;
	source_apply(&off);
	sample_reset();
	smp_call_mask(BIT(MERGE_CPUS) - 1, take_many, NULL);
	samples_hold();
	EXPECT_EQ(stacks_merge(&merged), 0);
	samples_release();
	printk("bench: merge %lu %u %lu\n", merged.ns, merged.nr_stacks,
	       merged.nr_slots * sizeof(*merged.stacks));
	stacks_free(&merged);
	source_apply(&saved);
	profile_reset();
}
