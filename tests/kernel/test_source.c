// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sources of samples on the machine: what they see of code that runs with interrupts off, rates,
 * and changes while all CPUs are at work. tests/boot/test_heatmap_source.py runs these with icount,
 * too, and reads the reports they print.
 */

#include "../../kernel/profile/internal.h"

#include <asm/irqflags.h>
#include <lego/errno.h>
#include <lego/selftest.h>

#include "busy.h"

#ifdef CONFIG_PROFILE_HEATMAP
#define OFF_MS	   900
#define NR_CHANGES 24

static struct source_settings saved;
static struct heat_snapshot heat;

static void use(enum source_kind source, u32 hz)
{
	struct source_settings settings = saved;

	settings.source = source;
	settings.hz = hz;
	settings.on = true;
	source_apply(&settings);
}

static void begin(enum source_kind source, u32 hz)
{
	source_settings(&saved);
	use(source, hz);
	sample_reset();
	source_reset();
}

static void end(void)
{
	source_apply(&saved);
}

/* An emulator that counts instructions is slow at reading the clock: most of it is this. */
static noinline void burn_here(void)
{
	for (int i = 0; i < 100000; i++)
		barrier();
}

static noinline void work_with_interrupts_off(void)
{
	unsigned long flags = local_irq_save();
	u64 end = rdtsc() + OFF_MS * tsc_khz;

	while (rdtsc() < end)
		burn_here();
	local_irq_restore(flags);
	/* The interrupt comes one instruction behind the one that lets it: still in here. */
	asm volatile("nop\n\tnop");
}

static u64 nr_ticks(void)
{
	u64 sum = 0;

	heatmap_snapshot(&heat);
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		sum += heat.nr_class[i];
	return sum;
}

static u64 nr_at(void *fn)
{
	u64 nr = 0;

	for (u32 i = 0; i < heat.nr_entries; i++)
		if (heat.entries[i].addr == (u64)fn)
			nr += heat.entries[i].nr;
	return nr;
}

static bool ends_in(const struct source_stretch *stretch, void *fn)
{
	u64 start = 0;

	return os_symbol_lookup(stretch->pc, &start) && start == (u64)fn;
}

SELFTEST(source, timer_tells_what_it_cannot_see)
{
	const struct source_counts *nr = &heat.source.all;
	bool named = false;

	begin(SOURCE_TIMER, 1000);
	work_with_interrupts_off();
	profile_report("source=timer");
	nr_ticks();
	EXPECT(nr->missed >= OFF_MS * 95 / 100);
	EXPECT(nr->late > 0);
	EXPECT(nr_at(burn_here) < OFF_MS / 100);
	for (u32 i = 0; i < heat.source.nr_stretches; i++) {
		u64 ns = cycles_to_ns(heat.source.longest[i].cycles);

		/* Less the slot in which it began. A machine held up just there adds short ones. */
		if (ends_in(&heat.source.longest[i], work_with_interrupts_off) &&
		    ns > (OFF_MS - 3) * NSEC_PER_MSEC)
			named = true;
	}
	EXPECT(named);
	end();
}

SELFTEST(source, nmi_sees_it)
{
	begin(SOURCE_NMI, 1000);
	work_with_interrupts_off();
	profile_report("source=nmi");
	nr_ticks();
	EXPECT(heat.source.nmi_timer);
	/* How many come is up to the host; under icount all do: test_heatmap_source.py. */
	EXPECT(nr_at(burn_here) > 0);
	EXPECT(heat.source.all.irqs_off >= nr_at(burn_here));
	end();
}

static u64 nr_in(u64 ns, u32 hz)
{
	return mul_div_u64(ns, hz, NSEC_PER_SEC);
}

/* As many as the rate says, on CPUs that are mostly halted. */
static void expect_rate(enum source_kind source, u32 hz, u64 ns)
{
	/* Before and behind the reset, and the reading: the host may hold us up in there. */
	u64 resets_ns, reset_ns, reads_ns, read_ns, least, most;
	unsigned int cpu;

	begin(source, hz);
	resets_ns = clock_monotonic_ns();
	source_reset();
	reset_ns = clock_monotonic_ns();
	sleep_ns(ns);
	reads_ns = clock_monotonic_ns();
	nr_ticks();
	read_ns = clock_monotonic_ns();
	least = nr_in(reads_ns - reset_ns, hz);
	most = nr_in(read_ns - resets_ns, hz);
	for_each_online_cpu(cpu) {
		const struct source_counts *nr = &heat.source.cpus[cpu];

		/* Its own may still be to come, more of them where the host holds up a sample. */
		EXPECT(nr->taken + nr->missed <= most + 1 + most / 100);
		/* A CPU that was held up has not said yet what it missed. */
		if (source == SOURCE_NMI)
			EXPECT(nr->taken + nr->missed + 1 >= least - least / 100);
		EXPECT(nr->taken > 0);
	}
	/* Of two samples neither need be in hlt. */
	if (hz > 1) {
		EXPECT(nr_at(cpu_idle) > 0);
		EXPECT(nr_at(cpu_idle) <= heat.nr_class[HEAT_IDLE]);
	}
	end();
}

SELFTEST(source, rates_of_the_timer)
{
	expect_rate(SOURCE_TIMER, 1, 2500 * NSEC_PER_MSEC);
	expect_rate(SOURCE_TIMER, 997, 200 * NSEC_PER_MSEC);
	expect_rate(SOURCE_TIMER, 100000, 50 * NSEC_PER_MSEC);
}

SELFTEST(source, rates_of_nmis)
{
	expect_rate(SOURCE_NMI, 1, 2500 * NSEC_PER_MSEC);
	expect_rate(SOURCE_NMI, 997, 200 * NSEC_PER_MSEC);
	expect_rate(SOURCE_NMI, 20000, 50 * NSEC_PER_MSEC);
}

static DEFINE_PER_CPU(u64, nr_rounds);

/* With interrupts on and off, and with what an exception in an NMI would trample on. */
static void work(void)
{
	unsigned long flags = local_irq_save();

	this_cpu_inc(nr_rounds);
	for (int i = 0; i < 100; i++)
		barrier();
	local_irq_restore(flags);
	for (int i = 0; i < 100; i++)
		barrier();
}

/* Each switch patches the path of the timer, or that of the NMI while NMIs come. */
SELFTEST(source, changed_while_all_cpus_work)
{
	struct source_settings settings;

	begin(SOURCE_TIMER, 5000);
	busy_start(READ_ONCE(cpu_online_mask), work);
	for (u32 i = 0; i < NR_CHANGES; i++) {
		use(i % 2 ? SOURCE_TIMER : SOURCE_NMI, 2000 + i);
		sleep_ns(10 * NSEC_PER_MSEC);
		EXPECT(nr_ticks() > 0);
		EXPECT(heat.source.all.taken > 0);
		EXPECT_EQ(heat.source.settings.hz, 2000 + i);
		source_settings(&settings);
		settings.on = false;
		source_apply(&settings);
		EXPECT_EQ(nr_ticks(), nr_ticks());
	}
	busy_stop();
	end();
}

/* What comes while nothing is on is not the sampler's: it is logged, not taken. */
SELFTEST(source, off_takes_nothing)
{
	struct source_settings settings;

	begin(SOURCE_NMI, 2000);
	source_settings(&settings);
	settings.on = false;
	source_apply(&settings);
	sample_reset();
	source_reset();
	sleep_ns(20 * NSEC_PER_MSEC);
	EXPECT_EQ(nr_ticks(), 0);
	EXPECT_EQ(heat.source.all.taken, 0);
	EXPECT_EQ(heat.source.all.missed, 0);
	end();
}
#endif
