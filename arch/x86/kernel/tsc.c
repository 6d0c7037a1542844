// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures how fast the TSC and the local APIC's timer count, and the offsets between the CPUs'
 * TSCs.
 *
 * The TSC's frequency comes from CPUID, or else is measured against the HPET, the ACPI PM timer or
 * the PIT. The APIC timer is then measured against the TSC. A round reads both counters at its
 * start and its end, the TSC before and after the other one: the width of that bracket and one
 * count of the other are the round's error. The first round with a small error wins, or the one
 * with the least. A value within its error of a whole MHz is that MHz.
 */
#include <asm/tsc.h>

#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/hpet.h>
#include <asm/acpi.h>
#include <asm/io.h>
#include <asm/processor.h>
#include <asm/smp.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/math64.h>
#include <lego/printk.h>
#include <lego/smp.h>
#include <lego/time.h>

u64 tsc_khz;
bool cpus_take_turns;

#define MIN_TURN_HZ	 100 /* so a turn takes 10 ms at most */
#define NR_ROUNDS	 3
#define ROUND_MS	 10
#define LONG_ROUND_SCALE 4 /* the PIT wraps after 54 ms */
#define NR_SAMPLE_TRIES	 8
#define GOOD_PPM	 20 /* no further round */
#define MAX_SNAP_PPM	 100
#define FS_PER_MS	 1000000000000ULL
/* A round never takes so many cycles, unless the other counter stands still. */
#define MAX_ROUND_CYCLES 2000000000ULL

#define PM_TIMER_FS 279365115ULL /* 3.579545 MHz */
#define PIT_FS	    838095345ULL /* 1.193182 MHz */

#define PIT_CHANNEL_2 0x42
#define PIT_COMMAND   0x43
#define PIT_GATE      0x61

struct counter {
	const char *name;
	bool (*start)(void);
	u32 (*read)(void);
	u32 mask;
};

struct sample {
	u64 cycles;
	u64 width_cycles;
	u32 ticks;
};

struct round {
	u64 cycles;
	u64 ticks;
	u64 error_cycles;
};

static bool hpet_start(void)
{
	return hpet_period_fs != 0;
}

static bool pm_timer_start(void)
{
	return acpi_info.pm_timer_port != 0;
}

static u32 pm_timer_read(void)
{
	return inl(acpi_info.pm_timer_port);
}

/* Channel 2 as a rate generator over all 65536 counts, speaker off. */
static bool pit_start(void)
{
	outb((inb(PIT_GATE) & ~2) | 1, PIT_GATE);
	outb(0xb4, PIT_COMMAND);
	outb(0, PIT_CHANNEL_2);
	outb(0, PIT_CHANNEL_2);
	return true;
}

static u32 pit_read(void)
{
	u32 count;

	outb(0x80, PIT_COMMAND); /* latch */
	count = inb(PIT_CHANNEL_2);
	count |= (u32)inb(PIT_CHANNEL_2) << 8;
	return -count;
}

static bool apic_count_start(void)
{
	apic_timer_count();
	return true;
}

static u32 apic_count_read(void)
{
	return -apic_timer_read();
}

static void take_sample(const struct counter *counter, struct sample *best)
{
	best->width_cycles = ~0ULL;
	for (int i = 0; i < NR_SAMPLE_TRIES; i++) {
		u64 before = rdtsc_end();
		u32 ticks = counter->read();
		u64 width = rdtsc_end() - before;

		if (width < best->width_cycles) {
			best->cycles = before + width / 2;
			best->width_cycles = width;
			best->ticks = ticks;
		}
		cpu_relax();
	}
}

/*
 * Measures until the counter has advanced by min_ticks and the TSC by min_cycles. Returns false if
 * the counter stands still.
 */
static bool measure_round(const struct counter *counter, u64 min_ticks, u64 min_cycles,
			  struct round *round)
{
	struct sample start, end;

	take_sample(counter, &start);
	for (;;) {
		u64 cycles = rdtsc() - start.cycles;
		u32 ticks = (counter->read() - start.ticks) & counter->mask;

		if (ticks >= min_ticks && cycles >= min_cycles)
			break;
		if (cycles > MAX_ROUND_CYCLES)
			return false;
		/* Few reads: each one leaves the CPU, which takes QEMU long with -icount. */
		for (int i = 0; i < 1000; i++)
			barrier();
	}
	take_sample(counter, &end);
	round->cycles = end.cycles - start.cycles;
	round->ticks = (end.ticks - start.ticks) & counter->mask;
	if (!round->ticks || !round->cycles)
		return false;
	round->error_cycles = (start.width_cycles + end.width_cycles) / 2 +
			      DIV_ROUND_UP(round->cycles, round->ticks);
	return true;
}

static u64 round_error_ppm(const struct round *round)
{
	return DIV_ROUND_UP(round->error_cycles * 1000000, round->cycles);
}

/*
 * Returns the first round with a small error, or the one with the least. If reading the counter
 * takes long, uses longer rounds.
 */
static bool tsc_measure(const struct counter *counter, u64 min_ticks, u64 min_cycles,
			struct round *best)
{
	best->cycles = 0;
	for (int i = 0; i < 2 * NR_ROUNDS; i++) {
		u64 scale = i < NR_ROUNDS ? 1 : LONG_ROUND_SCALE;
		struct round round;

		if (i == NR_ROUNDS && round_error_ppm(best) <= MAX_SNAP_PPM)
			break;
		if (!counter->start() ||
		    !measure_round(counter, min_ticks * scale, min_cycles * scale, &round))
			return false;
		if (!best->cycles || round_error_ppm(&round) < round_error_ppm(best))
			*best = round;
		if (round_error_ppm(best) <= GOOD_PPM)
			break;
	}
	return true;
}

/*
 * Rounds a value to a multiple of unit, if it is within its error bound. With a large bound,
 * returns the value itself.
 */
static u64 snap(u64 value, u64 unit, u64 error_ppm)
{
	u64 nearest = (value + unit / 2) / unit * unit;
	u64 distance = nearest > value ? nearest - value : value - nearest;

	if (error_ppm > MAX_SNAP_PPM || distance * 1000000 > value * error_ppm)
		return value;
	return nearest;
}

static u64 tsc_error_ppm; /* 0 when CPUID told */

static bool measure_tsc(const struct counter *counter, u64 fs_per_tick)
{
	struct round best;
	u64 khz;

	if (!tsc_measure(counter, ROUND_MS * FS_PER_MS / fs_per_tick, 0, &best))
		return false;
	khz = mul_div_u64(best.cycles, FS_PER_MS, best.ticks * fs_per_tick);
	tsc_error_ppm = round_error_ppm(&best);
	tsc_khz = snap(khz, 1000, tsc_error_ppm);
	printk("tsc: %llu kHz by the %s (+-%llu ppm)\n", (unsigned long long)tsc_khz, counter->name,
	       (unsigned long long)round_error_ppm(&best));
	return true;
}

static bool tsc_from_cpuid(void)
{
	struct cpuid_regs ratio = cpuid_checked(0x15, 0), hypervisor = {};
	u64 crystal_hz = ratio.ecx, base_mhz = cpuid_checked(0x16, 0).eax & 0xffff;

	if (cpuid(1).ecx >> 31 && cpuid(0x40000000).eax >= 0x40000010)
		hypervisor = cpuid(0x40000010);
	if (ratio.eax && ratio.ebx && crystal_hz)
		tsc_khz = crystal_hz * ratio.ebx / ratio.eax / 1000;
	else if (ratio.eax && ratio.ebx && base_mhz)
		tsc_khz = base_mhz * 1000;
	else if (hypervisor.eax)
		tsc_khz = hypervisor.eax;
	else
		return false;
	printk("tsc: %llu kHz by CPUID\n", (unsigned long long)tsc_khz);
	return true;
}

static void init_tsc(void)
{
	static const struct counter hpet = { "HPET", hpet_start, hpet_read_counter, ~0u },
				    pm_timer = { "PM timer", pm_timer_start, pm_timer_read,
						 0xffffff },
				    pit = { "PIT", pit_start, pit_read, 0xffff };
	bool have_hpet = hpet_init();

	if (tsc_from_cpuid())
		return;
	if (have_hpet && measure_tsc(&hpet, hpet_period_fs))
		return;
	if (measure_tsc(&pm_timer, PM_TIMER_FS) || measure_tsc(&pit, PIT_FS))
		return;
	panic("nothing to measure the TSC's frequency by");
}

static void init_apic_timer(void)
{
	static const struct counter apic = { "local APIC timer", apic_count_start, apic_count_read,
					     ~0u };
	struct round best;
	u64 hz, error_ppm;

	if (!tsc_measure(&apic, 0, ROUND_MS * tsc_khz, &best))
		panic("the local APIC timer stands still");
	apic_timer_set(0);
	hz = mul_div_u64(best.ticks, tsc_khz * 1000, best.cycles);
	error_ppm = round_error_ppm(&best) + tsc_error_ppm;
	apic_timer_hz = snap(hz, 1000000, error_ppm);
	printk("apic: timer at %llu kHz by the TSC (+-%llu ppm), %u ticks a second\n",
	       (unsigned long long)apic_timer_hz / 1000, (unsigned long long)error_ppm, tick_hz);
}

bool tsc_counts_instructions(void)
{
	struct cpuid_regs regs = cpuid(0x40000000);

	return tsc_khz == 1000000 && regs.ebx == 0x54474354 && regs.ecx == 0x43544743 &&
	       regs.edx == 0x47435447; /* TCGTCGTCGTCG */
}

/* Turns must not get so long that a CPU waits for others noticeably. */
static void init_turns(void)
{
	cpus_take_turns = nr_cpus > 1 && tsc_counts_instructions();
	if (cpus_take_turns && tick_hz < MIN_TURN_HZ) {
		tick_hz = MIN_TURN_HZ;
		printk("tsc: tick_hz=%u, the least where CPUs take turns\n", tick_hz);
	}
}

void clock_init(void)
{
	init_tsc();
	init_turns();
	init_apic_timer();
}

/*
 * Compares two CPUs' TSCs: the boot CPU reads its TSC, sends a request, and reads it again when the
 * other CPU's TSC has arrived. That was read in between, so the middle is right to within half of
 * the distance. The shortest of many exchanges counts.
 */
#define NR_EXCHANGES	  64
#define MAX_EXCHANGES_NS  (5 * NSEC_PER_MSEC) /* microseconds if both CPUs really run */
#define EXCHANGE_GIVEN_UP (30 * NSEC_PER_SEC) /* a busy host may not run the CPU for long */
#define EXCHANGE_OVER	  ~0u

/* This CPU's TSC minus the boot CPU's, as measured when it came up, and the error of that (+-). */
static DEFINE_PER_CPU(s64, tsc_offset_cycles);
static DEFINE_PER_CPU(u64, tsc_offset_error_cycles);

static struct {
	u32 request __aligned(64); /* number of the exchange, written by the boot CPU */
	u32 reply __aligned(64);   /* the same number when cycles is there */
	u64 cycles;
} exchange;

void tsc_compare_prepare(void)
{
	exchange.reply = 0;
	smp_store_release(&exchange.request, 0);
}

void tsc_compare_answer(void)
{
	u32 last = 0;

	for (;;) {
		/* Pairs with the release in exchange_once() and tsc_compare_with(). */
		u32 request = smp_load_acquire(&exchange.request);

		if (request == EXCHANGE_OVER)
			return;
		if (request == last) {
			cpu_relax();
			continue;
		}
		exchange.cycles = rdtsc_end();
		last = request;
		/* Pairs with the acquire in exchange_once(). */
		smp_store_release(&exchange.reply, request);
	}
}

static bool exchange_once(u32 number, u64 *before, u64 *after)
{
	u64 give_up_ns = clock_monotonic_ns() + EXCHANGE_GIVEN_UP;

	*before = rdtsc_end();
	/* Pairs with the acquire in tsc_compare_answer(). */
	smp_store_release(&exchange.request, number);
	/* Pairs with the release in tsc_compare_answer(). */
	while (smp_load_acquire(&exchange.reply) != number) {
		if (clock_monotonic_ns() > give_up_ns)
			return false;
		cpu_relax();
	}
	*after = rdtsc_end();
	return true;
}

bool tsc_compare_with(unsigned int cpu)
{
	u64 start_ns = clock_monotonic_ns(), best_cycles = ~0ULL, before, after;
	bool answered;
	u32 nr = 0;

	do {
		answered = exchange_once(++nr, &before, &after);
		if (!answered)
			break;
		if (after - before < best_cycles) {
			best_cycles = after - before;
			per_cpu(tsc_offset_cycles, cpu) =
				exchange.cycles - (before + best_cycles / 2);
			per_cpu(tsc_offset_error_cycles, cpu) = DIV_ROUND_UP(best_cycles, 2);
		}
	} while (nr < NR_EXCHANGES && clock_monotonic_ns() - start_ns < MAX_EXCHANGES_NS);
	/* Pairs with the acquire in tsc_compare_answer(). */
	smp_store_release(&exchange.request, EXCHANGE_OVER);
	if (answered)
		printk("tsc: CPU%u offset %lld cycles (+-%llu)\n", cpu,
		       (long long)per_cpu(tsc_offset_cycles, cpu),
		       (unsigned long long)per_cpu(tsc_offset_error_cycles, cpu));
	return answered;
}
