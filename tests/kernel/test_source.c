// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sources of samples on the machine: samples of code with interrupts off, rates, and changes while
 * all CPUs are busy. tests/boot/test_heatmap_source.py also runs these with icount, and reads their
 * reports.
 */

#include <asm/irqflags.h>
#include <lego/selftest.h>

#include "busy.h"
#include "samples.h"

#ifdef CONFIG_PROFILE_HEATMAP
/* More than a second: the lateness that is taken for normal if the host stopped the calibration. */
#define OFF_MS	    1200
#define MIN_CHANGES 6
#define MAX_CHANGES 24

static struct source_settings saved;

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
	reset_samples();
}

static void end(void)
{
	source_apply(&saved);
}

/* Keeps reads of the clock rare: they are slow under icount, and samples should hit this loop. */
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
	/*
	 * The pending interrupt arrives one instruction after the sti. The nops keep it in this
	 * function.
	 */
	asm volatile("nop\n\tnop");
}

static bool ends_in(const struct source_stretch *stretch, void *fn)
{
	u64 start = 0;

	return os_symbol_lookup(stretch->pc, &start, NULL, 0) && start == (u64)fn;
}

static bool is_named(void)
{
	for (u32 i = 0; i < heat.source.nr_stretches; i++) {
		u64 ns = cycles_to_ns(heat.source.longest[i].cycles);

		/*
		 * The stretch is measured from a deadline inside it, so its first slot may be
		 * missing. Shorter stretches end here too if the host stopped the CPU.
		 */
		if (ends_in(&heat.source.longest[i], work_with_interrupts_off) &&
		    ns > (OFF_MS - 3) * NSEC_PER_MSEC)
			return true;
	}
	return false;
}

/* Returns false if, for example, the host delayed the interrupt until the function had returned. */
static bool timer_loses_samples(void)
{
	const struct source_snapshot *snap = &heat.source;

	reset_samples();
	work_with_interrupts_off();
	profile_report("source=timer");
	nr_ticks();
	EXPECT(nr_at(burn_here) < OFF_MS / 100);
	return snap->all.lost >= OFF_MS * 95 / 100 && snap->counts.late[LATE_KERNEL] > 0 &&
	       is_named();
}

SELFTEST(source, timer_counts_lost_samples)
{
	begin(SOURCE_TIMER, 1000);
	EXPECT(becomes(timer_loses_samples()));
	end();
}

/*
 * Expects at least one NMI: the host decides how many come. tests/boot/test_heatmap_source.py runs
 * this with icount and expects all of them.
 */
static bool nmi_takes_samples(void)
{
	reset_samples();
	work_with_interrupts_off();
	profile_report("source=nmi");
	nr_ticks();
	return nr_at(burn_here) > 0;
}

SELFTEST(source, nmi_samples_with_interrupts_off)
{
	begin(SOURCE_NMI, 1000);
	EXPECT(becomes(nmi_takes_samples()));
	EXPECT(heat.source.nmi_timer);
	EXPECT(heat.source.nr_irqs_off >= nr_at(burn_here));
	end();
}

static u64 nr_in(u64 ns, u32 hz)
{
	return mul_div_u64(ns, hz, NSEC_PER_SEC);
}

/*
 * Checks that each CPU takes samples at this rate, while most CPUs are halted. The settings must
 * differ from the current ones: otherwise nothing restarts, and samples missed earlier would count.
 */
static void expect_rate(enum source_kind source, u32 hz, u64 ns)
{
	/*
	 * Each end is timed before and after, because the host may delay this CPU in between. It
	 * may also delay another CPU, which counts missed samples from before the reset only later.
	 */
	u64 starts_ns = clock_monotonic_ns(), reset_ns, reads_ns, read_ns, least, most;
	unsigned int cpu;

	begin(source, hz);
	reset_ns = clock_monotonic_ns();
	sleep_ns(ns);
	EXPECT(becomes(all_have_taken(1)));
	reads_ns = clock_monotonic_ns();
	nr_ticks();
	read_ns = clock_monotonic_ns();
	least = nr_in(reads_ns - reset_ns, hz);
	most = nr_in(read_ns - starts_ns, hz);
	for_each_online_cpu(cpu) {
		const struct source_sums *sums = &heat.source.cpus[cpu];

		EXPECT(sums->expected <= most + 1 && sums->expected + 2 >= least);
		EXPECT_EQ(sums->expected, sums->taken + sums->lost + sums->self);
	}
	/* At 1 Hz there are only two samples, and neither has to hit hlt. */
	EXPECT(hz == 1 || becomes(nr_ticks() && nr_at(cpu_idle) > 0));
	EXPECT(nr_at(cpu_idle) <= heat.nr_class[HEAT_IDLE]);
	end();
}

SELFTEST(source, rates_of_the_timer)
{
	expect_rate(SOURCE_TIMER, 1, 2500 * NSEC_PER_MSEC);
	expect_rate(SOURCE_TIMER, 1009, 200 * NSEC_PER_MSEC);
	expect_rate(SOURCE_TIMER, 100000, 50 * NSEC_PER_MSEC);
}

SELFTEST(source, rates_of_nmis)
{
	expect_rate(SOURCE_NMI, 1, 2500 * NSEC_PER_MSEC);
	expect_rate(SOURCE_NMI, 1009, 200 * NSEC_PER_MSEC);
	expect_rate(SOURCE_NMI, 20000, 50 * NSEC_PER_MSEC);
}

static DEFINE_PER_CPU(u64, nr_rounds);

/* Works with interrupts on and off. An exception in an NMI could corrupt its registers. */
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

/* Each change patches the code of the timer or, while NMIs arrive, that of the NMI handler. */
SELFTEST(source, changed_while_all_cpus_work)
{
	u64 enough_ns = clock_monotonic_ns() + ENOUGH_NS;
	struct source_settings settings;

	begin(SOURCE_TIMER, 5000);
	busy_start(READ_ONCE(cpu_online_mask), work);
	for (u32 i = 0; i < MAX_CHANGES; i++) {
		if (i >= MIN_CHANGES && clock_monotonic_ns() >= enough_ns)
			break;
		use(i % 2 ? SOURCE_TIMER : SOURCE_NMI, 2000 + i);
		sleep_ns(10 * NSEC_PER_MSEC);
		EXPECT(becomes(nr_ticks() > 0 && heat.source.all.taken > 0));
		EXPECT_EQ(heat.source.settings.hz, 2000 + i);
		source_settings(&settings);
		settings.on = false;
		source_apply(&settings);
		EXPECT_EQ(nr_ticks(), nr_ticks());
	}
	busy_stop();
	end();
}

/* While sampling is off, no sample is taken, and none counts as lost. */
SELFTEST(source, off_takes_nothing)
{
	struct source_settings settings;

	begin(SOURCE_NMI, 2000);
	source_settings(&settings);
	settings.on = false;
	source_apply(&settings);
	source_reset();
	sleep_ns(20 * NSEC_PER_MSEC);
	EXPECT_EQ(nr_ticks(), 0);
	EXPECT_EQ(heat.source.all.taken, 0);
	EXPECT_EQ(heat.source.all.lost, 0);
	end();
}
#endif
