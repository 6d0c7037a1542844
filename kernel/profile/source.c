// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where samples come from: one source at a time.
 *
 * timer: time is cut into slots of one period. Each CPU has one deadline in each slot, at a place
 * drawn from its own seeded generator, and sets its timer for it beside its tick. So every moment
 * is as likely to be sampled as any other, whatever the code does in step with what; the mean rate
 * is exact; and deadlines can be counted: each is taken, or missed (passed unseen behind another
 * one that was late), or the sampler's own (it fell into the taking of the one before). A late one
 * found interrupts off, or the machine held up; with the missed ones it tells the share of time
 * that is not seen, long and short stretches alike, because deadlines fall anywhere.
 *
 * nmi: one of the machine's timers sends an NMI to every CPU once a period; where there is none,
 * the boot CPU's sampling timer has NMIs sent to the others and samples its own CPU as it is. A
 * timer that can has its next NMI moved by the boot CPU, in its handler, to a place in the next
 * slot that is drawn as the timer's deadlines are. A second NMI sooner than one can be due is an
 * echo. NMIs that come while one is handled are merged, so missed = due - taken.
 *
 * Each CPU's counters are written by that CPU alone; a reset notes what they were, and reports
 * subtract.
 */

#include "internal.h"

/* The normal lateness: what three quarters of these do not exceed, and an eighth. */
#define NR_CALIBRATIONS 24
#define CALIBRATION_HZ	50000

#define NEAR_US 100

#define PERIOD_SHIFT 16 /* of the NMI's period */

#define READ_TRIES 1000

DEFINE_PER_CPU(u64, profile_deadline) = ~0ull;
struct static_key profile_timer_key, profile_nmi_key;

static DEFINE_PER_CPU(struct source_cpu, source_cpus);

/* What is on. Changed while no samples come, by one thread at a time. */
static struct source_settings running;
static const char *nmi_timer;		/* NULL: NMIs are sent by the boot CPU's sampling timer */
static u64 period_cycles;		/* the timer's slot */
static u64 near_cycles;			/* a sample takes less, or the machine is held up */
static u64 jitter_cycles;		/* the deadline is within so much of the slot's start */
static u64 nmi_period, nmi_start;	/* TSC; the period times 2^PERIOD_SHIFT; 0: sent by us */
static u64 nmi_echo_cycles;		/* one that comes so soon is an echo */
static u64 nr_nmi_due_before;		/* until the source was switched on last */
static u64 nr_nmi_due_base;		/* at the reset */
static u64 late_limit, idle_late_limit; /* in cycles; 0: not measured yet */
static u64 reset_cycles;
static os_lock_t base_lock = OS_LOCK_INIT;

/* Only for the CPU that calibrates. */
static u64 calibration[NR_CALIBRATIONS];
static u32 nr_calibrations;

/* Neighbours in number start far apart. */
static void seed_generator(struct source_cpu *s, unsigned int cpu)
{
	s->random = (running.seed + cpu + 1) * 0x9e3779b97f4a7c15ull;
}

/* A linear congruential generator with a 64-bit state; its upper bits are good. */
static __always_inline u64 next_random(struct source_cpu *s)
{
	return s->random = s->random * 6364136223846793005ull + 1;
}

static u64 next_deadline(struct source_cpu *s)
{
	s->slot += period_cycles;
	return s->slot + (u64)((unsigned __int128)next_random(s) * jitter_cycles >> 64);
}

/* The first deadline behind `until`; those before it, next the first, are added to *nr. */
static u64 skip_deadlines(struct source_cpu *s, u64 next, u64 until, u64 *nr)
{
	while (next <= until) {
		*nr += 1;
		if (until - s->slot >= 2 * period_cycles) {
			u64 nr_slots = (until - s->slot) / period_cycles - 1;

			s->slot += nr_slots * period_cycles;
			*nr += nr_slots;
		}
		next = next_deadline(s);
	}
	return next;
}

/*
 * The next deadline is near or over. If a deadline passed behind the one of `now`, that was late.
 * One that is nearer than this sample took, or over by now, is not waited for: what was interrupted
 * gets as much time as the sampler, however high the rate.
 */
static noinline void skip_near_deadlines(u64 now)
{
	struct source_cpu *s = this_cpu_ptr(&source_cpus);
	u64 next = this_cpu_read(profile_deadline), end = os_cycles();

	next = skip_deadlines(s, next, now, &s->nr.missed);
	next = skip_deadlines(s, next, end + (end - now), &s->nr.own);
	this_cpu_write(profile_deadline, next);
}

/* The shortest of the list, which a longer one may replace; those before a reset have no length. */
static struct source_stretch *shortest_stretch(struct source_cpu *s)
{
	struct source_stretch *shortest = &s->longest[0];

	for (u32 i = 0; i < NR_STRETCHES; i++) {
		struct source_stretch *stretch = &s->longest[i];

		if (stretch->end_cycles < reset_cycles)
			return stretch;
		if (stretch->cycles < shortest->cycles)
			shortest = stretch;
	}
	return shortest;
}

static void note_stretch(struct source_cpu *s, const struct pt_regs *regs, u64 now, u64 cycles)
{
	struct source_stretch *stretch = shortest_stretch(s);

	if (stretch->end_cycles >= reset_cycles && stretch->cycles >= cycles)
		return;
	WRITE_ONCE(s->seq, s->seq + 1);
	barrier();
	stretch->cycles = cycles;
	stretch->end_cycles = now;
	stretch->pc = os_regs_pc(regs);
	stretch->user = os_regs_user(regs);
	stretch->tid = os_current_tid();
	os_task_comm(os_current_task(), stretch->comm);
	/* Pairs with the acquire in copy_stretches(). */
	smp_store_release(&s->seq, s->seq + 1);
}

/* The interrupt came later than usual; its sample, if late_cycles is above 0, too. */
static noinline void come_late(struct source_cpu *s, const struct pt_regs *regs, u64 now,
			       u64 late_cycles)
{
	u64 limit = os_task_idle(os_current_task()) ? idle_late_limit : late_limit;

	if (unlikely(!late_limit)) {
		if (late_cycles && nr_calibrations < NR_CALIBRATIONS)
			calibration[nr_calibrations++] = late_cycles;
		return;
	}
	if (late_cycles > limit)
		s->nr.late++;
	if (now - os_timer_deadline() > limit)
		note_stretch(s, regs, now, now - os_timer_deadline());
}

/* A sample whose next deadline will be near, or over, when it has been taken. */
static noinline void take_and_skip(const struct pt_regs *regs, u64 now, u64 late_cycles)
{
	sample_take(regs, now, late_cycles, 0);
	skip_near_deadlines(now);
}

static __always_inline void take_due(struct source_cpu *s, const struct pt_regs *regs, u64 now,
				     u64 deadline)
{
	u64 next = next_deadline(s);

	s->nr.taken++;
	this_cpu_write(profile_deadline, next);
	if (likely((s64)(next - now) >= (s64)near_cycles))
		sample_take(regs, now, now - deadline, 0);
	else
		take_and_skip(regs, now, now - deadline);
	/*
	 * Where CPUs take turns on one, under an emulator, this is another's turn: without, four
	 * CPUs of QEMU with icount miss 10 % of deadlines at 20 kHz, with it 4 %.
	 */
	cpu_relax();
}

static noinline void timer_came_late_or_sends(const struct pt_regs *regs, u64 now, u64 deadline)
{
	struct source_cpu *s = this_cpu_ptr(&source_cpus);
	bool due = now >= deadline;

	if (now > os_timer_deadline() + late_limit)
		come_late(s, regs, now, due ? now - deadline : 0);
	if (!due)
		return;
	if (static_key_on(&profile_nmi_key)) {
		s->nr.sent++;
		os_nmi_send();
	}
	take_due(s, regs, now, deadline);
}

/* As in sample_take(), no register has to be saved. */
void profile_timer_came(const struct pt_regs *regs)
{
	u64 now = os_cycles(), deadline = this_cpu_read(profile_deadline);

	if (unlikely(now > os_timer_deadline() + late_limit))
		return timer_came_late_or_sends(regs, now, deadline);
	if (unlikely(static_key_on(&profile_nmi_key)))
		return timer_came_late_or_sends(regs, now, deadline);
	if (now >= deadline)
		take_due(this_cpu_ptr(&source_cpus), regs, now, deadline);
}

void profile_nmi_came(const struct pt_regs *regs)
{
	struct source_cpu *s = this_cpu_ptr(&source_cpus);
	u64 now = os_cycles();

	asm("" : "+r"(s)); /* or the compiler would work it out again and again */
	if (unlikely(os_panicking()))
		return;
	if (unlikely(now - s->last_nmi < nmi_echo_cycles)) {
		s->nr.echoes++;
		return;
	}
	s->last_nmi = now;
	s->nr.taken++;
	if (os_regs_irqs_off(regs))
		s->nr.irqs_off++;
	sample_take(regs, now, 0, 1);
	cpu_relax();
	if (this_cpu_read(source_cpus.moves_nmis))
		os_nmi_move(next_random(this_cpu_ptr(&source_cpus)) >> 32);
}

/* Interrupts are off. */
static void start_timer_here(void *unused)
{
	struct source_cpu *s = this_cpu_ptr(&source_cpus);

	seed_generator(s, smp_processor_id());
	s->slot = os_cycles();
	this_cpu_write(profile_deadline, next_deadline(s));
	os_timer_rearm();
}

static void stop_timer_here(void *unused)
{
	this_cpu_write(profile_deadline, ~0ull);
	os_timer_rearm();
}

static void do_nothing(void *unused)
{
}

static void set_slots(u32 hz, bool jitter)
{
	period_cycles = (os_cycles_per_second() + hz / 2) / hz;
	jitter_cycles = jitter ? period_cycles : 0;
	near_cycles = os_cycles_per_second() / (1000000 / NEAR_US);
}

static int compare_cycles(const void *a, const void *b)
{
	return compare_u64(*(const u64 *)a, *(const u64 *)b);
}

/* How late the timer comes on this CPU while it spins, or halts, with interrupts on. */
static u64 measure_lateness(bool halt)
{
	u64 give_up = os_cycles() + os_cycles_per_second() / 10;
	unsigned long flags = os_irq_save();

	nr_calibrations = 0;
	start_timer_here(NULL);
	os_irq_restore(flags);
	while (READ_ONCE(nr_calibrations) < NR_CALIBRATIONS && os_cycles() < give_up)
		os_wait_for_interrupt(halt);
	flags = os_irq_save();
	stop_timer_here(NULL);
	os_irq_restore(flags);
	if (!nr_calibrations)
		return os_cycles_per_second(); /* then hardly anything is late */
	sort(calibration, nr_calibrations, sizeof(calibration[0]), compare_cycles);
	return calibration[nr_calibrations * 3 / 4] * 9 / 8 + 1;
}

/* The samples that this gives are for the reset that follows. */
static void calibrate(void)
{
	u64 busy, idle;

	set_slots(CALIBRATION_HZ, true);
	busy = measure_lateness(false);
	idle = measure_lateness(true);
	idle_late_limit = max(busy, idle);
	late_limit = busy;
}

/* NMIs that each CPU should have had since boot; the base is locked. */
static u64 nmi_due(void)
{
	u64 nr = nr_nmi_due_before;

	if (nmi_start)
		nr += mul_div_u64(os_cycles() - nmi_start, 1ul << PERIOD_SHIFT, nmi_period);
	return nr;
}

static void reset_all(void)
{
	sample_reset();
	source_reset();
}

/* With a reset when all is set up: samples of two kinds never add. */
static void start(bool reset)
{
	struct source_cpu *boot_cpu = &per_cpu(source_cpus, 0);
	bool jitter = running.jitter;
	u64 period, start_cycles;

	running.on = true;
	nmi_timer = NULL;
	if (running.source == SOURCE_NMI) {
		static_key_set(&profile_nmi_key, true);
		if (reset)
			reset_all();
		nmi_period = nmi_echo_cycles = 0;
		seed_generator(boot_cpu, 0);
		nmi_timer = os_nmi_start(running.hz, &jitter, &period, &start_cycles);
		if (nmi_timer) {
			nmi_period = period;
			nmi_echo_cycles = period >> (PERIOD_SHIFT + (jitter ? 4 : 1));
			WRITE_ONCE(boot_cpu->moves_nmis, jitter);
			/* Readers go by this one. */
			smp_store_release(&nmi_start, start_cycles);
			return;
		}
	}
	static_key_set(&profile_timer_key, true);
	if (!late_limit)
		calibrate();
	set_slots(running.hz, running.jitter);
	if (reset)
		reset_all();
	if (running.source == SOURCE_TIMER)
		os_run_on_all_cpus(start_timer_here);
	else
		os_run_on_boot_cpu(start_timer_here);
}

static void stop(void)
{
	unsigned long flags;

	if (static_key_is_set(&profile_timer_key)) {
		os_run_on_all_cpus(stop_timer_here);
		static_key_set(&profile_timer_key, false);
	}
	if (static_key_is_set(&profile_nmi_key)) {
		WRITE_ONCE(per_cpu(source_cpus, 0).moves_nmis, false);
		os_nmi_stop();
		flags = os_lock(&base_lock);
		nr_nmi_due_before = nmi_due();
		nmi_start = 0;
		os_unlock(&base_lock, flags);
		/* One that is pending comes before any interrupt. */
		os_run_on_all_cpus(do_nothing);
		static_key_set(&profile_nmi_key, false);
	}
	running.on = false;
}

void source_settings(struct source_settings *settings)
{
	*settings = running;
}

void source_apply(const struct source_settings *settings)
{
	bool same = settings->source == running.source && settings->hz == running.hz &&
		    settings->seed == running.seed && settings->jitter == running.jitter;

	if (same && settings->on == running.on)
		return;
	if (running.on)
		stop();
	running = *settings;
	running.on = false;
	if (settings->on)
		start(!same);
	else if (!same)
		reset_all();
}

/* Counters that are written meanwhile end up in either period. */
void source_reset(void)
{
	unsigned long flags = os_lock(&base_lock);
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct source_cpu *s = &per_cpu(source_cpus, cpu);

		s->base = s->nr;
	}
	nr_nmi_due_base = nmi_due();
	WRITE_ONCE(reset_cycles, os_cycles());
	os_unlock(&base_lock, flags);
}

/* The list as it was at one time, if its CPU leaves a moment for it. */
static void copy_stretches(const struct source_cpu *s, struct source_stretch *list)
{
	int tries = os_panicking() ? 1 : READ_TRIES; /* nobody writes any more */
	u64 seq;

	do {
		cpu_relax();
		/* Pairs with the release in note_stretch(). */
		seq = smp_load_acquire(&s->seq);
		memcpy(list, s->longest, sizeof(s->longest));
		smp_mb(); /* the copy before the second look at seq */
	} while (((seq & 1) || READ_ONCE(s->seq) != seq) && --tries);
}

/* Into snap's list, longest first, if there is room or one is shorter. */
static void insert_stretch(struct source_snapshot *snap, const struct source_stretch *stretch,
			   unsigned int cpu)
{
	u32 i = snap->nr_stretches;

	if (!stretch->cycles || stretch->end_cycles < reset_cycles)
		return;
	if (i < NR_STRETCHES)
		snap->nr_stretches++;
	else if (snap->longest[--i].cycles >= stretch->cycles)
		return;
	for (; i > 0 && snap->longest[i - 1].cycles < stretch->cycles; i--) {
		snap->longest[i] = snap->longest[i - 1];
		snap->stretch_cpu[i] = snap->stretch_cpu[i - 1];
	}
	snap->longest[i] = *stretch;
	snap->stretch_cpu[i] = cpu;
}

static void add_cpu(struct source_snapshot *snap, unsigned int cpu, u64 nr_due)
{
	const struct source_cpu *s = &per_cpu(source_cpus, cpu);
	struct source_counts *nr = &snap->cpus[cpu];

	nr->taken = READ_ONCE(s->nr.taken) - s->base.taken;
	nr->late = READ_ONCE(s->nr.late) - s->base.late;
	nr->own = READ_ONCE(s->nr.own) - s->base.own;
	nr->missed = READ_ONCE(s->nr.missed) - s->base.missed;
	nr->sent = READ_ONCE(s->nr.sent) - s->base.sent;
	nr->echoes = READ_ONCE(s->nr.echoes) - s->base.echoes;
	nr->irqs_off = READ_ONCE(s->nr.irqs_off) - s->base.irqs_off;
	if (snap->settings.source == SOURCE_NMI) {
		nr->missed = nr_due > nr->taken ? nr_due - nr->taken : 0;
		nr->own = 0;
	}
	snap->all.taken += nr->taken;
	snap->all.late += nr->late;
	snap->all.own += nr->own;
	snap->all.missed += nr->missed;
	snap->all.echoes += nr->echoes;
	snap->all.irqs_off += nr->irqs_off;
}

/* Where the boot CPU's timer sends NMIs, what it did not send was due, too. */
static u64 nmi_due_since_reset(void)
{
	const struct source_cpu *s = &per_cpu(source_cpus, 0);

	if (nmi_timer)
		return nmi_due() - nr_nmi_due_base;
	return s->nr.sent + s->nr.missed + s->nr.own -
	       (s->base.sent + s->base.missed + s->base.own);
}

void source_snapshot(struct source_snapshot *snap)
{
	struct source_stretch list[NR_STRETCHES];
	unsigned long flags;
	unsigned int cpu;
	bool locked;

	memset(snap, 0, sizeof(*snap));
	snap->settings = running;
	snap->nmi_timer = nmi_timer;
	snap->nmi_jitter = nmi_timer && per_cpu(source_cpus, 0).moves_nmis;
	flags = snapshot_lock(&base_lock, &locked);
	for_each_possible_cpu(cpu) {
		if (!os_cpu_online(cpu))
			continue;
		add_cpu(snap, cpu, nmi_due_since_reset());
		copy_stretches(&per_cpu(source_cpus, cpu), list);
		for (u32 i = 0; i < NR_STRETCHES; i++)
			insert_stretch(snap, &list[i], cpu);
	}
	snapshot_unlock(&base_lock, locked, flags);
	snap->limit_ns = os_cycles_to_ns(late_limit);
}
