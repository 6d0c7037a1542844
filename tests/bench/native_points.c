// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the TSC cycles of a pair of a profile point on this machine. Uses the kernel's macros,
 * static keys and fences, and patches its own code. Prints "bench: <name> <value>":
 *
 * - the cycles of a pair: the best of many rounds, in which the kinds take turns;
 * - the same while another thread is at the same point on another CPU: the median of the rounds in
 *   which neither thread lost its CPU;
 * - the error of a point that measures a body of known length, with and without fences.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library defines it, too. */
#undef __always_inline
#include "pairs.h"

#define NR_CPUS			 2
#define ARCH_SET_GS		 0x1001
#define NR_ROUNDS		 3000
#define NR_PAIRS		 200
#define NR_RACES		 150
#define MIN_RACES		 20
#define RACE_PAIRS		 16
#define RACE_CYCLES		 1000000
#define RACE_LEAD_CYCLES	 1500000 /* time for waking the other thread */
#define RACE_MAX_GAP_CYCLES	 50000	 /* a longer gap means that the thread lost its CPU */
#define NR_MULTIPLICATIONS	 48
#define NR_SHORT_MULTIPLICATIONS 32

DEFINE_PROFILE_POINT(native)

DEFINE_PER_CPU(unsigned int, cpu_number);
DEFINE_PER_CPU(u64, profile_cpu_bits);
DEFINE_PER_CPU(u64, profile_points_offset);

/* Counts a new minimum or maximum, as the kernel does. No other case is on the slow path here. */
__attribute__((target("general-regs-only"))) void
profile_point_end_slow(struct profile_point *point, u64 start, u64 cycles, u64 off_cycles)
{
	struct profile_point_cpu *c = point->cpu;

	(void)off_cycles;
	if (!start || cycles >= 1ull << (PROFILE_CPU_SHIFT - 1)) {
		this_cpu_inc(c->sums.nr_unmatched);
		return;
	}
	if (this_cpu_below(c->max_cycles, cycles))
		this_cpu_write(c->max_cycles, cycles);
	this_cpu_lower(c->min_cycles, cycles);
	this_cpu_add(c->sums.cycles, cycles);
	this_cpu_inc(c->sums.nr_log2[PROFILE_POINT_BUCKET(cycles)]);
}

extern char __start_percpu[], __stop_percpu[];
extern const struct static_key_site __start_static_key_sites[], __stop_static_key_sites[];
extern const s64 __start_point_fences[], __stop_point_fences[];

static int cpus[NR_CPUS]; /* by cpu_number: the machine's number */
static unsigned int nr_cpus;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Ties the thread to a CPU, and gives it that CPU's variables. */
static void enter_cpu(unsigned int cpu)
{
	size_t size = __stop_percpu - __start_percpu;
	char *area = aligned_alloc(4096, (size + 4095) & ~4095ul);
	char *sums = aligned_alloc(64, 64); /* the thread's sums of the only point */
	u64 offset = (u64)area - (u64)__start_percpu;
	cpu_set_t set;

	if (!area || !sums)
		die("memory");
	memset(sums, 0, 64);
	memcpy(area, __start_percpu, size);
	CPU_ZERO(&set);
	CPU_SET(cpus[cpu], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, offset))
		die("arch_prctl");
	this_cpu_write(cpu_number, cpu);
	this_cpu_write(profile_cpu_bits, (u64)cpu << PROFILE_CPU_SHIFT);
	this_cpu_write(profile_points_offset, (u64)sums - (u64)&__PROFILE_POINT(native));
}

static void find_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE && nr_cpus < NR_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[nr_cpus++] = cpu;
}

/* No other thread runs this code meanwhile. This one runs it only after a jump, the return. */
static void write_code(u8 *code, const void *bytes, size_t n)
{
	u8 *page = (u8 *)((u64)code & ~4095ul);

	if (mprotect(page, code + n - page, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("mprotect");
	memcpy(code, bytes, n);
}

/* Patches the sites of the only key, as static_key_set() does. */
static void switch_points_on(void)
{
	const struct static_key_site *site;

	for (site = __start_static_key_sites; site < __stop_static_key_sites; site++) {
		u8 *code = (u8 *)&site->code + site->code;
		u8 *target = (u8 *)&site->target + site->target;
		s32 distance = target - (code + 5);
		u8 insn[5] = { 0xe9 };

		memcpy(insn + 1, &distance, sizeof(distance));
		write_code(code, insn, sizeof(insn));
	}
}

/* Removes the fences, as point_clock_drop_fences() does, or restores them. */
static void set_fences(bool on)
{
	static const u8 lfence[3] = { 0x0f, 0xae, 0xe8 }, nop[3] = { 0x0f, 0x1f, 0x00 };
	const s64 *fence;

	for (fence = __start_point_fences; fence < __stop_point_fences; fence++)
		write_code((u8 *)fence + *fence, on ? lfence : nop, sizeof(nop));
}

/* A chain of multiplications. Each depends on the one before. */
#define BODY(nr, value) asm volatile(".rept %c1\n\timul %0, %0\n\t.endr" : "+r"(value) : "i"(nr))

#define DEFINE_BODIES(name, loop, multiplications, start, leave) \
	static noinline void name##_##loop(int nr)               \
	{                                                        \
		u64 value = 3;                                   \
                                                                 \
		for (int i = 0; i < nr; i++) {                   \
			start;                                   \
			BODY(multiplications, value);            \
			leave;                                   \
		}                                                \
	}

/*
 * Defines name_pairs(nr), and loops of pairs around bodies, each of which depends on the previous
 * one: name_bodies(nr), and name_shorts(nr) and name_longs(nr), with which point.c calibrates.
 */
#define DEFINE_LOOPS(name, start, leave)                                    \
	DEFINE_PAIRS(name, start, leave)                                    \
	DEFINE_BODIES(name, bodies, NR_MULTIPLICATIONS, start, leave)       \
	DEFINE_BODIES(name, shorts, NR_SHORT_MULTIPLICATIONS, start, leave) \
	DEFINE_BODIES(name, longs, 2 * NR_SHORT_MULTIPLICATIONS, start, leave)

DEFINE_LOOPS(none, , )
DEFINE_LOOPS(minimum, u64 start = minimum_start(), minimum_leave(start))
DEFINE_LOOPS(fenced, u64 start = rdtsc_begin(), fenced_leave(start))
DEFINE_LOOPS(legoos, u64 start_ns = legoos_start(), legoos_leave(start_ns))
DEFINE_LOOPS(point, PROFILE_POINT_TIME(native) profile_point_start(native),
	     profile_point_leave(native))

static u64 minimum_total(void)
{
	return this_cpu_read(minimum_point.cycles);
}

static u64 legoos_total(void)
{
	return legoos_point.ns;
}

static u64 point_total(void)
{
	return this_cpu_read(__PROFILE_POINT_CPU(native).sums.cycles);
}

enum kind {
	KIND_NONE,
	KIND_MINIMUM,
	KIND_FENCED,
	KIND_LEGOOS,
	KIND_UNORDERED,
	KIND_ORDERED,
	NR_KINDS,
};

static const struct {
	const char *name;
	void (*pairs)(int nr);
	void (*bodies)(int nr);
	void (*shorts)(int nr);
	void (*longs)(int nr);
	u64 (*total)(void); /* the cycles measured so far */
	bool fences;
} kinds[NR_KINDS] = {
	[KIND_NONE] = { "none", none_pairs, none_bodies, none_shorts, none_longs },
	[KIND_MINIMUM] = { "minimum", minimum_pairs, minimum_bodies, minimum_shorts, minimum_longs,
			   minimum_total },
	[KIND_FENCED] = { "fenced", fenced_pairs, fenced_bodies, fenced_shorts, fenced_longs,
			  minimum_total },
	[KIND_LEGOOS] = { "legoos", legoos_pairs, legoos_bodies, legoos_shorts, legoos_longs,
			  legoos_total },
	[KIND_UNORDERED] = { "unordered", point_pairs, point_bodies, point_shorts, point_longs,
			     point_total },
	[KIND_ORDERED] = { "ordered", point_pairs, point_bodies, point_shorts, point_longs,
			   point_total, true },
};

/* The best round of NR_PAIRS pairs. */
struct best {
	u64 cycles;
	u64 reading; /* the cycles that the pairs measured themselves */
};

static void run_round(enum kind kind, void (*loop)(int nr), struct best *best)
{
	u64 reading = kinds[kind].total ? kinds[kind].total() : 0;
	u64 start = rdtsc_begin();

	loop(NR_PAIRS);
	best->cycles = min(best->cycles, rdtsc_end() - start);
	if (kinds[kind].total)
		best->reading = min(best->reading, kinds[kind].total() - reading);
}

static double per_pair(u64 cycles)
{
	return (double)cycles / NR_PAIRS;
}

/* Returns the error of the reading in percent of the truth. */
static double error_percent(double reading, double truth)
{
	return (reading / truth - 1) * 100;
}

static void bench_pairs(void)
{
	struct best empty[NR_KINDS], full[NR_KINDS], shorts[NR_KINDS], longs[NR_KINDS];
	double truth;

	memset(empty, 0xff, sizeof(empty));
	memset(full, 0xff, sizeof(full));
	memset(shorts, 0xff, sizeof(shorts));
	memset(longs, 0xff, sizeof(longs));
	for (int round = 0; round < NR_ROUNDS; round++) {
		for (enum kind kind = 0; kind < NR_KINDS; kind++) {
			if (kind >= KIND_UNORDERED)
				set_fences(kinds[kind].fences);
			kinds[kind].pairs(NR_PAIRS / 10);
			run_round(kind, kinds[kind].pairs, &empty[kind]);
			run_round(kind, kinds[kind].bodies, &full[kind]);
			run_round(kind, kinds[kind].shorts, &shorts[kind]);
			run_round(kind, kinds[kind].longs, &longs[kind]);
		}
	}
	truth = per_pair(full[KIND_NONE].cycles);
	printf("bench: native_body %.2f\n", truth);
	for (enum kind kind = KIND_MINIMUM; kind < NR_KINDS; kind++) {
		double raw = per_pair(full[kind].reading);
		double pair = 2 * per_pair(shorts[kind].reading) - per_pair(longs[kind].reading);
		double net = raw - pair;

		printf("bench: native_%s %.2f\n", kinds[kind].name, per_pair(empty[kind].cycles));
		printf("bench: native_%s_error %.2f\n", kinds[kind].name,
		       error_percent(raw, truth));
		printf("bench: native_%s_net_error %.2f\n", kinds[kind].name,
		       error_percent(net, truth));
	}
}

/* A race: all threads run the same point, from an agreed start on, for RACE_CYCLES. */
static struct {
	pthread_barrier_t barrier;
	void (*loop)(int nr);
	unsigned int nr_runners;
	u64 start_cycles;
	bool over;
	struct {
		u64 nr_pairs;
		bool disturbed;
	} __aligned(128) runners[NR_CPUS];
} race;

static void run_race(unsigned int cpu)
{
	u64 end = race.start_cycles + RACE_CYCLES;
	u64 last = rdtsc(), now;
	bool disturbed = last > race.start_cycles;
	u64 nr_pairs = 0;

	while (rdtsc() < race.start_cycles)
		__builtin_ia32_pause();
	last = rdtsc();
	disturbed |= last > race.start_cycles + RACE_MAX_GAP_CYCLES;
	while (last < end) {
		race.loop(RACE_PAIRS);
		nr_pairs += RACE_PAIRS;
		now = rdtsc();
		disturbed |= now - last > RACE_MAX_GAP_CYCLES;
		last = now;
	}
	race.runners[cpu].nr_pairs = nr_pairs;
	race.runners[cpu].disturbed = disturbed;
}

static void *other_thread(void *arg)
{
	enter_cpu(1);
	for (;;) {
		pthread_barrier_wait(&race.barrier);
		if (race.over)
			return NULL;
		if (race.nr_runners > 1)
			run_race(1);
		pthread_barrier_wait(&race.barrier);
	}
}

static int compare_u64(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return (left > right) - (left < right);
}

/* Prints no result if too many races were disturbed. */
static void bench_races(const char *name, void (*loop)(int nr), unsigned int nr_runners)
{
	u64 pairs[NR_RACES];
	int nr = 0;

	race.loop = loop;
	race.nr_runners = nr_runners;
	for (int i = 0; i < NR_RACES; i++) {
		race.start_cycles = rdtsc() + RACE_LEAD_CYCLES;
		pthread_barrier_wait(&race.barrier);
		run_race(0);
		pthread_barrier_wait(&race.barrier);
		if (race.runners[0].disturbed || (nr_runners > 1 && race.runners[1].disturbed))
			continue;
		pairs[nr] = race.runners[0].nr_pairs;
		if (nr_runners > 1)
			pairs[nr] = (pairs[nr] + race.runners[1].nr_pairs) / 2;
		nr++;
	}
	printf("bench: native_races_of_%s_%u %d\n", name, nr_runners, nr);
	if (nr < MIN_RACES)
		return;
	qsort(pairs, nr, sizeof(pairs[0]), compare_u64);
	printf("bench: native_%s_threads_%u %.2f\n", name, nr_runners,
	       (double)RACE_CYCLES / pairs[nr / 2]);
}

static void bench_two_threads(void)
{
	static const enum kind contenders[] = { KIND_LEGOOS, KIND_UNORDERED, KIND_ORDERED };
	pthread_t other;

	pthread_barrier_init(&race.barrier, NULL, NR_CPUS);
	if (pthread_create(&other, NULL, other_thread, NULL))
		die("pthread_create");
	for (int i = 0; i < ARRAY_SIZE(contenders); i++) {
		enum kind kind = contenders[i];

		set_fences(kinds[kind].fences);
		for (unsigned int nr_runners = 1; nr_runners <= NR_CPUS; nr_runners++)
			bench_races(kinds[kind].name, kinds[kind].pairs, nr_runners);
	}
	race.over = true;
	pthread_barrier_wait(&race.barrier);
	pthread_join(other, NULL);
}

/* Returns the number of anomalies, which only a mistake in this program can cause. */
static u64 count_odd_pairs(void)
{
	return this_cpu_read(__PROFILE_POINT_CPU(native).sums.nr_unmatched) +
	       this_cpu_read(__PROFILE_POINT_CPU(native).sums.nr_migrated) +
	       this_cpu_read(__PROFILE_POINT_CPU(native).sums.nr_backwards);
}

int main(void)
{
	find_cpus();
	enter_cpu(0);
	switch_points_on();
	legoos_point.enabled = true;
	bench_pairs();
	if (nr_cpus == NR_CPUS)
		bench_two_threads();
	if (count_odd_pairs()) {
		fprintf(stderr, "%llu odd pairs\n", (unsigned long long)count_odd_pairs());
		return 1;
	}
	return 0;
}
