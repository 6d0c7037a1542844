// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes samples when they are due, from one source at a time.
 *
 * timer: time is divided into slots of one period. In each slot, each CPU has one deadline at a
 * random moment, drawn from its own seeded generator. It sets its timer for the deadline or its
 * next tick, whichever is earlier. So every moment is equally likely to be sampled, even if the
 * code runs in step with a clock. The mean rate is exact, and the number of expected samples is the
 * number of ended slots. The sample of a deadline is taken, or lost (the deadline passed while an
 * earlier sample was late), or lost in the sampler itself (it passed while the previous sample was
 * taken). A late sample means that interrupts were off, or that the machine was delayed. Deadlines
 * are random, so the share of late and lost ones is the share of time that is not seen.
 *
 * nmi: one of the machine's timers sends an NMI to every CPU once a period. Without such a timer,
 * the boot CPU's sampling timer sends NMIs to the others, and samples its own CPU. If the timer can
 * be set, the boot CPU's handler sets it to a random moment in the next slot, as above. NMIs that
 * come while another one is handled are merged. Such samples are lost, and no counter sees them, so
 * lost = expected - taken.
 *
 * tick: in a kernel whose timer is periodic (OS_TICK_HZ), each tick is a sample. The clock still
 * tells how many are expected, but not how late a tick came, so the blind spot is unknown.
 *
 * Each CPU's counters are written by that CPU alone. A reset of the samples starts a new
 * generation. At its first sample or count in the new generation, each CPU clears its counters and
 * notes its slot. Slots count from there on, so expected and taken samples begin at the same slot,
 * no matter how long a host stops the CPU that resets. Readers read counters of an older generation
 * as 0.
 */

#include "source.h"

#define NEAR_US	     100
#define LONG_LATE_US 50 /* any return to user mode takes less */

#define RESET_TRIES 8

OS_DEFINE_PER_CPU(u64, profile_deadline) = OS_EACH_CPU(~0ull);
os_key_t profile_timer_key, profile_nmi_key;

OS_DEFINE_PER_CPU(struct source_cpu, source_cpus);
struct source_state source = { .reset_lock = OS_LOCK_INIT };

static u64 near_cycles;	     /* any sample takes less, unless the machine delays it */
static u64 long_late_cycles; /* LONG_LATE_US in cycles */
static u64 jitter_cycles;    /* a deadline is less than this after the start of its slot */

/*
 * Mixes the bits of a number (the finalizer of splitmix64, a bijection). source_first_random()
 * mixes twice, first the seed and then the CPU, so that different seeds never give two CPUs the
 * same numbers.
 */
static u64 mix(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

u64 source_first_random(u64 seed, unsigned int cpu)
{
	return mix(mix(seed + PF_HASH_FACTOR) + cpu);
}

static void seed_generator(struct source_cpu *s, unsigned int cpu)
{
	s->random = source_first_random(source.running.seed, cpu);
}

/* A linear congruential generator with a 64-bit state; its upper bits are good. */
static pf_always_inline u64 next_random(struct source_cpu *s)
{
	return s->random = s->random * 6364136223846793005ull + 1;
}

static u64 next_deadline(struct source_cpu *s)
{
	os_assert(source.period_cycles);
	s->slot += source.period_cycles;
	return s->slot + (u64)((unsigned __int128)next_random(s) * jitter_cycles >> 64);
}

/*
 * Clears this CPU's counters if they are from before the last reset. slots_before() explains slot
 * and sample_comes.
 */
static void clear_if_reset(struct source_cpu *s, u64 slot, bool sample_comes)
{
	u64 generation = sample_generation();

	os_assert(s->seq & 1);
	if (s->generation == generation)
		return;
	s->expected = s->nr_switches = 0;
	memset(&s->counts, 0, sizeof(s->counts));
	for (u32 i = 0; i < NR_STRETCHES; i++)
		s->longest[i].cycles = 0;
	if (s->is_on)
		s->nr_before = slots_before(s, slot, sample_comes, &s->counts.self);
	s->generation = generation;
}

/* Begins a change of counters that reports copy. seq_end() ends it. */
static void begin_change(struct source_cpu *s, u64 slot, bool sample_comes)
{
	os_assert_irqs_off();
	seq_begin(&s->seq);
	clear_if_reset(s, slot, sample_comes);
}

void source_first_sample(void)
{
	struct source_cpu *s = os_this_cpu_ptr(&os_local(source_cpus));

	if (!s->is_on)
		return;
	begin_change(s, s->slot - source.period_cycles, true);
	seq_end(&s->seq);
}

/*
 * Returns the first deadline after `until`, and adds the number of deadlines from next on that come
 * before it to *nr. Slots that had ended at the reset do not count.
 */
static u64 skip_deadlines(struct source_cpu *s, u64 next, u64 until, u64 *nr)
{
	u64 reset = pf_read_once(sample_start_cycles);

	if (pf_unlikely(next <= until && reset >= s->slot + source.period_cycles)) {
		s->slot += ((reset - s->slot) / source.period_cycles - 1) * source.period_cycles;
		next = next_deadline(s);
	}
	while (next <= until) {
		*nr += 1;
		if (until - s->slot >= 2 * source.period_cycles) {
			u64 nr_slots = (until - s->slot) / source.period_cycles - 1;

			s->slot += nr_slots * source.period_cycles;
			*nr += nr_slots;
		}
		next = next_deadline(s);
	}
	return next;
}

static enum late_kind late_kind(const os_regs_t *regs)
{
	if (os_regs_user(regs))
		return LATE_USER;
	if (report_is_made_here())
		return LATE_REPORT;
	return os_task_idle(os_current_task()) ? LATE_IDLE : LATE_KERNEL;
}

/*
 * Skips the next deadline, and others that have passed or are near. Deadlines before `now`, when
 * this sample's interrupt came, are lost: the sample was late. Those that have passed since then,
 * or are nearer than the time that this sample took, are lost in the sampler itself. So the
 * interrupted code gets as much time as the sampler, even at high rates.
 */
static pf_noinline void skip_near_deadlines(const os_regs_t *regs, u64 now, u64 end,
					    u64 late_cycles)
{
	struct source_cpu *s = os_this_cpu_ptr(&os_local(source_cpus));
	u64 next = os_this_cpu_read(os_local(profile_deadline)), nr_lost = 0;

	begin_change(s, s->slot, false);
	next = skip_deadlines(s, next, now, &nr_lost);
	next = skip_deadlines(s, next, end + (end - now), &s->counts.self);
	if (nr_lost) {
		enum late_kind kind = late_kind(regs);

		s->counts.lost[kind] += nr_lost;
		if (late_cycles > long_late_cycles)
			s->counts.long_late[kind] += nr_lost;
	}
	seq_end(&s->seq);
	os_this_cpu_write(os_local(profile_deadline), next);
	s->counts.skip_cycles += os_cycles() - end;
}

static void note_stretch(struct source_cpu *s, const os_regs_t *regs, u64 now, u64 cycles)
{
	struct source_stretch *shortest = &s->longest[0];

	for (u32 i = 1; i < NR_STRETCHES; i++) {
		if (s->longest[i].cycles < shortest->cycles)
			shortest = &s->longest[i];
	}
	if (shortest->cycles >= cycles)
		return;
	shortest->cycles = cycles;
	shortest->end_cycles = now;
	shortest->pc = os_regs_pc(regs);
	shortest->user = os_regs_user(regs);
	shortest->tid = os_current_tid();
	os_task_comm(os_current_task(), shortest->comm);
}

/*
 * Counts an interrupt that came later than normal, and its sample, if late_cycles is above 0. An
 * idle CPU sleeps with interrupts on, so if its interrupt is late, the machine delayed it.
 */
static pf_noinline void count_late(struct source_cpu *s, const os_regs_t *regs, u64 now,
				   u64 late_cycles)
{
	enum late_kind kind = late_kind(regs);
	u64 limit = kind == LATE_IDLE ? source.idle_late_limit : source.late_limit;

	if (pf_unlikely(!source.late_limit)) {
		source_note_lateness(late_cycles);
		return;
	}
	begin_change(s, s->slot, true);
	if (late_cycles > limit) {
		s->counts.late[kind]++;
		if (late_cycles > long_late_cycles)
			s->counts.long_late[kind]++;
	}
	if (kind != LATE_IDLE && kind != LATE_REPORT && now - os_timer_deadline() > limit)
		note_stretch(s, regs, now, now - os_timer_deadline());
	seq_end(&s->seq);
}

/* Takes a sample after which the next deadline will be near, or will have passed. */
static pf_noinline void take_and_skip(const os_regs_t *regs, u64 now, u64 late_cycles)
{
	u64 end;

	sample_take(regs, now, 0);
	end = os_cycles();
	if (pf_unlikely(os_this_cpu_read(os_local(profile_deadline)) <= end + (end - now)))
		skip_near_deadlines(regs, now, end, late_cycles);
}

static pf_always_inline void take_due(struct source_cpu *s, const os_regs_t *regs, u64 now,
				      u64 deadline)
{
	u64 next = next_deadline(s);

	os_this_cpu_write(os_local(profile_deadline), next);
	if (pf_likely((s64)(next - now) >= (s64)near_cycles))
		sample_take(regs, now, 0);
	else
		take_and_skip(regs, now, now - deadline);
}

static pf_noinline void timer_slow_path(const os_regs_t *regs, u64 now, u64 deadline)
{
	struct source_cpu *s = os_this_cpu_ptr(&os_local(source_cpus));
	bool due = now >= deadline;

	if (now > os_timer_deadline() + source.late_limit)
		count_late(s, regs, now, due ? now - deadline : 0);
	if (!due)
		return;
	if (os_key_on(&profile_nmi_key))
		os_nmi_send();
	take_due(s, regs, now, deadline);
}

/* Jumps to the slow paths at its end, as sample_take() does, so it saves no registers. */
void profile_timer_came(const os_regs_t *regs, u64 now)
{
	u64 deadline = os_this_cpu_read(os_local(profile_deadline));

	os_assert_irqs_off();
	stack_collect_poll();
	stack_count_tick();
	if (OS_TICK_HZ) {
		os_this_cpu_write(os_local(source_cpus).slot, now);
		return sample_take(regs, now, 0);
	}
	if (pf_unlikely(now > os_timer_deadline() + source.late_limit))
		return timer_slow_path(regs, now, deadline);
	if (pf_unlikely(os_key_on(&profile_nmi_key)))
		return timer_slow_path(regs, now, deadline);
	if (now >= deadline)
		take_due(os_this_cpu_ptr(&os_local(source_cpus)), regs, now, deadline);
}

void profile_nmi_came(const os_regs_t *regs)
{
	u64 now = os_cycles();

	if (pf_unlikely(os_panicking()))
		return;
	sample_take(regs, now, 1);
	os_cpu_relax();
	if (os_this_cpu_read(os_local(source_cpus).moves_nmis))
		os_nmi_move(next_random(os_this_cpu_ptr(&os_local(source_cpus))) >> 32);
}

static void start_timer_here(void *unused)
{
	struct source_cpu *s = os_this_cpu_ptr(&os_local(source_cpus));

	os_assert_irqs_off();
	os_assert(!s->is_on);
	seed_generator(s, os_cpu());
	begin_change(s, 0, false);
	s->slot = os_cycles();
	s->first_slot = s->slot + (OS_TICK_HZ ? 0 : source.period_cycles);
	s->nr_before = 0;
	s->is_on = true;
	s->nr_switches++;
	os_this_cpu_write(os_local(profile_deadline), next_deadline(s));
	seq_end(&s->seq);
	os_timer_rearm();
	pf_no_tail_call();
}

static void stop_timer_here(void *unused)
{
	struct source_cpu *s = os_this_cpu_ptr(&os_local(source_cpus));
	u64 now = os_cycles(), next = os_this_cpu_read(os_local(profile_deadline)), nr_ahead;

	os_assert_irqs_off();
	if (s->is_on) {
		begin_change(s, s->slot, false);
		if (!OS_TICK_HZ)
			skip_deadlines(s, next, now, &s->counts.lost[LATE_KERNEL]);
		nr_ahead = pf_min(s->counts.self, slots_ahead(s->slot, now));
		s->counts.self -= nr_ahead;
		s->expected += slots_done(s, s->slot, s->nr_before) - nr_ahead;
		s->is_on = false;
		s->nr_switches++;
		seq_end(&s->seq);
	}
	os_this_cpu_write(os_local(profile_deadline), ~0ull);
	os_timer_rearm();
	pf_no_tail_call();
}

void source_time_here(bool on)
{
	unsigned long flags = os_irq_save();

	if (on)
		start_timer_here(NULL);
	else
		stop_timer_here(NULL);
	os_irq_restore(flags);
}

static void do_nothing(void *unused)
{
}

void source_set_slots(u32 hz, bool jitter)
{
	source.period_cycles = (os_cycles_per_second() + hz / 2) / hz;
	jitter_cycles = jitter ? source.period_cycles : 0;
	near_cycles = os_cycles_per_second() / (1000000 / NEAR_US);
	long_late_cycles = os_cycles_per_second() / (1000000 / LONG_LATE_US);
}

/*
 * Starts the NMI source. If `reset`, resets the samples when everything is set up, so that samples
 * of two sources are never added up. Returns false if no timer of the machine can send NMIs.
 */
static bool start_nmis(bool reset)
{
	struct source_cpu *boot_cpu = &os_per_cpu(source_cpus, 0);
	unsigned long flags;

	os_key_set(&profile_nmi_key, true);
	source.nmi_jitter = source.running.jitter;
	source_calibrate_nmis();
	if (reset)
		source_reset();
	seed_generator(boot_cpu, 0);
	flags = os_lock(&source.reset_lock);
	source.nmi_timer =
		os_nmi_start(source.running.hz, &source.nmi_jitter, &boot_cpu->moves_nmis);
	source.nmi_timer_is_on = source.nmi_timer != NULL;
	source.nr_nmi_switches++;
	os_unlock(&source.reset_lock, flags);
	return source.nmi_timer != NULL;
}

static void start(bool reset)
{
	os_assert_process_context();
	source.running.on = true;
	source.nmi_timer = NULL;
	if (source.running.source == SOURCE_NMI && start_nmis(reset)) {
		os_key_set(&profile_timer_key, false); /* unless stop() has */
		return;
	}
	source.nmi_jitter = source.running.jitter;
	os_key_set(&profile_timer_key, true);
	if (!OS_TICK_HZ && !source.late_limit)
		source_calibrate();
	source_set_slots(source.running.hz, source.running.jitter);
	if (reset)
		source_reset();
	if (source.running.source == SOURCE_TIMER)
		os_run_on_all_cpus(start_timer_here);
	else
		os_run_on_boot_cpu(start_timer_here);
}

/* Stops the source, which starts again if `restarts`: then its code stays switched on. */
static void stop(bool restarts)
{
	unsigned long flags;

	os_assert_process_context();
	if (os_key_is_set(&profile_timer_key)) {
		os_run_on_all_cpus(stop_timer_here);
		os_key_set(&profile_timer_key, restarts);
	}
	if (os_key_is_set(&profile_nmi_key)) {
		pf_write_once(os_per_cpu(source_cpus, 0).moves_nmis, false);
		flags = os_lock(&source.reset_lock);
		source.nr_nmi_slots = source_nmi_slots();
		source.nmi_timer_is_on = false;
		source.nr_nmi_switches++;
		os_nmi_stop();
		os_unlock(&source.reset_lock, flags);
		/* A pending NMI is handled before the interrupt of this call. */
		os_run_on_all_cpus(do_nothing);
		os_key_set(&profile_nmi_key, restarts);
	}
	source.running.on = false;
}

void source_settings(struct source_settings *settings)
{
	*settings = source.running;
}

static void change_source(const struct source_settings *settings, bool may_reset)
{
	bool same = settings->source == source.running.source &&
		    settings->hz == source.running.hz && settings->seed == source.running.seed &&
		    settings->jitter == source.running.jitter;
	bool reset = may_reset && !same;

	if (same && settings->on == source.running.on)
		return;
	if (source.running.on)
		stop(settings->on && settings->source == source.running.source);
	source.running = *settings;
	source.running.on = false;
	if (settings->on)
		start(reset);
	else if (reset)
		source_reset();
	pf_no_tail_call();
}

void source_apply(const struct source_settings *settings)
{
	change_source(settings, true);
	pf_no_tail_call();
}

void source_apply_without_reset(const struct source_settings *settings)
{
	change_source(settings, false);
	pf_no_tail_call();
}

/* NMIs are not counted by slot, so the reset is repeated if an NMI was due during it. */
void source_reset(void)
{
	unsigned long flags = os_lock(&source.reset_lock);

	source.nmi_switches_base = source.nr_nmi_switches;
	for (u32 i = 0; i < RESET_TRIES; i++) {
		source.nmi_slot_base = source_nmi_slots();
		sample_reset();
		if (source_nmi_slots() == source.nmi_slot_base)
			break;
	}
	os_unlock(&source.reset_lock, flags);
	off_time_reset(&source_off_time);
	off_time_reset(&source_borrowed_time);
	pf_no_tail_call();
}
