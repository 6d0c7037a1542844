// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the instructions of a sample apart from storing it: the source's handler with a sample
 * that is due, minus the same sample alone. Each line is "bench: <name> <cycles for all> <number>",
 * for tests/bench/run. With -icount shift=0, one TSC cycle is one instruction.
 */
#include "../../kernel/profile/samples/samples.h"
#include "../kernel/sleep.h"

#include <asm/desc.h>
#include <asm/irqflags.h>
#include <lego/selftest.h>

#define NR_SAMPLES 1000
#define NR_MOVES   8

/* Registers of kernel code without a caller. */
static struct pt_regs regs;

static void take_alone(void)
{
	sample_take(&regs, os_cycles(), 0);
}

static void take_alone_in_nmi(void)
{
	sample_take(&regs, os_cycles(), 1);
}

/* The deadline is now. The next ones are in the future, so no sample is lost. */
static void timer_comes(void)
{
	this_cpu_write(profile_deadline, rdtsc());
	profile_tick(&regs, os_cycles());
}

static void timer_is_not_due(void)
{
	this_cpu_write(profile_deadline, ~0ull);
	profile_tick(&regs, os_cycles());
}

static void nmi_comes(void)
{
	profile_nmi_came(&regs);
}

static void set_deadline(void)
{
	this_cpu_write(profile_deadline, rdtsc());
}

static void nothing(void)
{
}

static void time_calls(const char *name, void (*fn)(void))
{
	u64 cycles = 0, start;

	for (int i = 0; i < NR_SAMPLES; i++) {
		/* Rearmed, or the timer would seem late, as it cannot interrupt here. */
		unsigned long flags = local_irq_save();

		timer_rearm();
		start = rdtsc();
		fn();
		cycles += rdtsc() - start;
		local_irq_restore(flags);
	}
	printk("bench: %s %llu %d\n", name, (unsigned long long)cycles, NR_SAMPLES);
}

/* Times the boot CPU's NMI, which also sets the time of the next one. Once for each start. */
static void time_moves(struct source_settings settings)
{
	unsigned long flags;
	u64 cycles = 0, start;

	settings.source = SOURCE_NMI;
	settings.jitter = true;
	for (int i = 0; i < NR_MOVES; i++) {
		settings.on = true;
		source_apply(&settings);
		sleep_ns(NSEC_PER_SEC / 10); /* or it would be taken for an echo of the last one */
		flags = local_irq_save();
		take_alone_in_nmi(); /* the first sample after a reset takes longer */
		start = rdtsc();
		profile_nmi_came(&regs);
		cycles += rdtsc() - start;
		local_irq_restore(flags);
		settings.on = false;
		source_apply(&settings);
	}
	printk("bench: source_nmi_moves %lu %d\n", cycles, NR_MOVES);
}

SELFTEST(bench, source)
{
	struct source_settings saved, slow;

	source_settings(&saved);
	slow = saved;
	slow.on = true;
	slow.hz = 1;
	slow.source = SOURCE_TIMER;
	source_apply(&slow);
	slow.on = false;
	source_apply(&slow);
	time_calls("source_rearm_off", timer_rearm);
	slow.on = true;
	source_apply(&slow);
	regs.rip = (u64)nothing;
	regs.cs = KERNEL_CS;
	time_calls("source_call", nothing);
	time_calls("source_set_deadline", set_deadline);
	time_calls("source_take", take_alone);
	time_calls("source_timer", timer_comes);
	time_calls("source_timer_not_due", timer_is_not_due);
	time_calls("source_rearm", timer_rearm);
	time_calls("source_take_nmi", take_alone_in_nmi);
	/* No NMI has come and none was requested, so none is taken for an echo. */
	time_calls("source_nmi", nmi_comes);
	time_moves(slow);
	source_apply(&saved);
	EXPECT(saved.on);
}
