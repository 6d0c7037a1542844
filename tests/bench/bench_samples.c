// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the instructions of a sample with its call chain, from the call of sample_take() to its
 * return: "bench: chain_<name> <cycles> <samples> <frames>". The kernel's frames are real, up to
 * the first one of the thread. User frames are made up, in a separate address space.
 *
 * Also measures merging different stacks of 8 CPUs ("bench: merge <ns> <stacks> <bytes>"), counting
 * them by function ("bench: view <ns> <samples> <functions>"), and a report of 8 empty or full
 * stores ("bench: report_<empty or full>[_wide] <ns> <bytes>").
 */
#include <lego/selftest.h>

#include "../../kernel/profile/samples/samples.h"
#include "../../kernel/profile/table.h"
#include "../kernel/full_stores.h"
#include "../kernel/test_mm.h"

#include <asm/desc.h>
#include <asm/irqflags.h>

#define NR_SAMPLES   1000
#define FEW_FRAMES   2
#define MANY_FRAMES  18
#define USER_FRAMES  10
#define MERGE_CPUS   8
#define MERGE_STACKS 50000 /* of all of them */

/* Returns an address in a function, after the code that makes its frame. */
static u64 place(u64 i)
{
	return (u64)vprintk + 8 + i % 8;
}

static u64 cycles_of_samples(const struct pt_regs *regs)
{
	u64 start = rdtsc();

	for (u32 i = 0; i < NR_SAMPLES; i++)
		sample_take(regs, os_cycles(), 0);
	return rdtsc() - start;
}

/* Returns the frames of the only record with NR_SAMPLES samples or more. */
static u32 nr_frames_sampled(void)
{
	const struct sample_record *rec = NULL;
	u32 nr = 0;

	samples_pin();
	while ((rec = samples_next(smp_processor_id(), rec))) {
		if (rec->nr_pinned >= NR_SAMPLES) {
			EXPECT(rec->truncated != PROFILE_STACK_TRUNCATED_DEPTH);
			nr = rec->nr_kernel + rec->nr_user - 1;
		}
	}
	samples_unpin();
	return nr;
}

static void time_chain_of(const char *name, const struct pt_regs *regs)
{
	unsigned long flags;
	u64 cycles;

	sample_reset();
	flags = local_irq_save();
	sample_take(regs, os_cycles(), 0);
	cycles = cycles_of_samples(regs);
	local_irq_restore(flags);
	printk("bench: chain_%s %lu %u %u\n", name, cycles, NR_SAMPLES, nr_frames_sampled());
}

static noinline void time_chain(const char *name, u64 rip, u32 nr_frames)
{
	struct pt_regs regs = {
		.cs = KERNEL_CS,
		.rip = rip,
		.rsp = (u64)__builtin_frame_address(0),
		.rbp = (u64)__builtin_frame_address(0),
	};

	if (nr_frames > 1)
		time_chain(name, rip, nr_frames - 1);
	else
		time_chain_of(name, &regs);
	barrier(); /* prevents a tail call */
}

/* Makes it look as if user code with a chain of USER_FRAMES callers had entered the kernel. */
static void time_chain_with_user(void)
{
	u64 code = USER_BASE + PAGE_SIZE, frame = USER_BASE;
	struct pt_regs *user = task_pt_regs(current);
	struct mm *mm = mm_alloc();

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	EXPECT_EQ(mm_protect(mm, code, PAGE_SIZE, PROT_READ | PROT_EXEC), 0);
	set_mm(mm);
	*user = (struct pt_regs){ .cs = USER_CS, .rip = code, .rsp = frame, .rbp = frame };
	for (u32 i = 0; i < USER_FRAMES; i++, frame += 32) {
		EXPECT_EQ(put_user(i < USER_FRAMES - 1 ? frame + 32 : 0, (u64 *)frame), 0);
		EXPECT_EQ(put_user(code + i, (u64 *)(frame + 8)), 0);
	}
	EXPECT_EQ(get_user(frame, (u64 *)code), 0);
	time_chain("user", place(0), FEW_FRAMES);
	time_chain_of("user_only", user);
	user->rbp = 0; /* without frames */
	time_chain_of("user_none", user);
	memset(user, 0, sizeof(*user));
	leave_mm(mm);
}

SELFTEST(bench, samples)
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc();

	for (u32 i = 0; i < NR_SAMPLES; i++)
		barrier();
	printk("bench: chain_empty %lu %u 0\n", rdtsc() - start, NR_SAMPLES);
	local_irq_restore(flags);
	time_chain("few", place(0), FEW_FRAMES);
	time_chain("many", place(0), MANY_FRAMES);
	/* Hits a function before it has a frame. Such a chain is always walked, never compared. */
	time_chain("walked", (u64)vprintk, FEW_FRAMES);
	time_chain_with_user();
	profile_reset();
}

/* Takes samples with two callers, different on each CPU. Called with interrupts off. */
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
		sample_take(&regs, os_cycles(), 0);
	}
}

static const struct sample_scope machine;
static struct view view;

SELFTEST(bench, merge)
{
	struct source_settings saved;
	struct merged_stacks merged;
	u64 start;

	if (!IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) || !cpu_online(MERGE_CPUS - 1))
		return;
	start_empty(&saved);
	smp_call_mask(BIT(MERGE_CPUS) - 1, take_many, NULL);
	samples_pin();
	EXPECT_EQ(stacks_merge(&merged), 0);
	start = os_cycles();
	view_functions(&view, &machine);
	printk("bench: view %lu %lu %u\n", os_cycles_to_ns(os_cycles() - start), view.nr_samples,
	       view.nr_rows);
	samples_unpin();
	printk("bench: merge %lu %u %lu\n", merged.ns, merged.nr_stacks,
	       merged.nr_slots * sizeof(*merged.stacks));
	stacks_free(&merged);
	source_apply(&saved);
	profile_reset();
}

static void print_tables(const void *report)
{
	report_print_tables(report);
}

/* The text goes to memory, so the time of the console is not measured. */
static void time_report(const char *name, bool wide)
{
	const struct report report = { .top = 4, .wide = wide };
	struct text text = { 0 };
	u64 start = os_cycles();

	report_to_text(&text, &table_text, print_tables, &report);
	printk("bench: %s %lu %lu\n", name, os_cycles_to_ns(os_cycles() - start), text.len);
	text_free(&text);
}

static u32 count_records(void)
{
	unsigned int cpu;
	u32 nr = 0;

	samples_pin();
	for_each_online_cpu(cpu)
		nr += samples_stats(cpu)->nr_records;
	samples_unpin();
	return nr;
}

SELFTEST(bench, report)
{
	struct source_settings saved;

	if (!IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) || !cpu_online(MERGE_CPUS - 1))
		return;
	start_empty(&saved);
	time_report("report_empty", false);
	time_report("report_empty_wide", true);
	fill_stores(BIT(MERGE_CPUS) - 1);
	printk("bench: report_stacks %u\n", count_records());
	time_report("report_full", false);
	time_report("report_full_wide", true);
	source_apply(&saved);
	profile_reset();
}
