// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the source's counters for a report: how many samples were expected by the clock and the
 * rate, and how many were taken or lost. Each CPU's counters are copied together with its samples,
 * and all of them end at the same slot, so they add up: the slots before that of the next deadline
 * are expected, and each of their samples was taken or lost. Later slots that have ended count as
 * expected and lost.
 */

#include "source.h"

/*
 * Returns how many slots after that of the next deadline have ended. When the sample of that
 * deadline comes late, it counts all of them as lost.
 */
static u64 slots_behind(u64 slot, u64 at)
{
	return at >= slot + 2 * source.period_cycles ? (at - slot) / source.period_cycles - 1 : 0;
}

/*
 * Returns how many samples of deadlines before that of `slot` count since the reset. If the slot
 * had ended at the reset, the one sample that counts has begun or is stored, but the sampler has
 * not yet skipped the deadlines before the reset.
 */
static u64 nr_samples_done(const struct source_cpu *s, u64 slot, u64 nr_before, u64 reset)
{
	return slots_over(s, slot) < slots_over(s, reset) ? 1 : slots_done(s, slot, nr_before);
}

/* Copies one CPU's counters of expected, late and lost samples. */
static void copy_counters(const struct source_cpu *s, struct source_pin *pin)
{
	u64 slot, nr_before, reset = pf_read_once(sample_start_cycles);

	SEQ_COPY(&s->seq) {
		memset(pin, 0, sizeof(*pin));
		slot = pf_read_once(s->slot);
		if (s->generation == sample_generation()) {
			pin->counts = s->counts;
			pin->expected = s->expected;
			pin->nr_switches = s->nr_switches;
			nr_before = s->nr_before;
		} else {
			nr_before = s->is_on ? slots_before(s, slot, true, &pin->counts.self) : 0;
		}
		pin->cycles = os_cycles();
		if (s->is_on) {
			u64 nr_done = nr_samples_done(s, slot, nr_before, reset);

			pin->ahead = pf_min(slots_ahead(slot, pin->cycles), pin->counts.self);
			pin->pending = slots_behind(slot, pin->cycles) - slots_behind(slot, reset);
			pin->expected += nr_done - pf_min(pin->ahead, nr_done) + pin->pending;
		}
	}
}

void source_pin_cpu(unsigned int cpu, struct source_pin *pin)
{
	unsigned long flags;
	bool locked;

	if (source.running.source == SOURCE_NMI) {
		/* All CPUs follow the NMI timer or, without one, the boot CPU's sampling timer. */
		copy_counters(&os_per_cpu(source_cpus, 0), pin);
		if (cpu)
			memset(&pin->counts, 0, sizeof(pin->counts));
		if (!source.nmi_timer)
			return;
		flags = snapshot_lock(&source.reset_lock, &locked);
		pin->cycles = os_cycles();
		pin->expected = source_nmi_slots() - source.nmi_slot_base;
		pin->nr_switches = source.nr_nmi_switches - source.nmi_switches_base;
		snapshot_unlock(&source.reset_lock, locked, flags);
		return;
	}
	copy_counters(&os_per_cpu(source_cpus, cpu), pin);
}

/* Copies the list as it was at one moment. */
static void copy_stretches(const struct source_cpu *s, struct source_stretch *list)
{
	SEQ_COPY(&s->seq) {
		memcpy(list, s->longest, sizeof(s->longest));
		if (s->generation != sample_generation())
			memset(list, 0, sizeof(s->longest));
	}
}

/* Inserts a stretch into snap's list, longest first, if there is room or one is shorter. */
static void insert_stretch(struct source_snapshot *snap, const struct source_stretch *stretch,
			   unsigned int cpu)
{
	u32 i = snap->nr_stretches;

	if (!stretch->cycles)
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

u64 source_sampling_cycles(const struct sample_stats *stats)
{
	u64 cycles = source.running.source == SOURCE_NMI ? source.nmi_sample_cycles :
							   source.sample_cycles;

	return stats->self_cycles + stats->source.counts.skip_cycles + stats->nr_attempts * cycles;
}

static u64 sum_of_kinds(const u64 *nr)
{
	return nr[LATE_USER] + nr[LATE_KERNEL] + nr[LATE_IDLE] + nr[LATE_REPORT];
}

/*
 * Sums up one CPU's samples. Samples that came after the report had begun are neither taken nor
 * expected. counts_lost is true if the CPU counts lost samples. Lost NMIs are not counted anywhere,
 * so missing samples count as lost, and only surplus samples are left over. Each time NMIs are on,
 * the first or the last of them may be one more or less than the clock says: it is expected if it
 * came.
 */
static void sum_up(struct source_sums *sums, const struct sample_stats *stats, bool counts_lost)
{
	const struct source_pin *pin = &stats->source;
	u64 allowed = 1 + pin->nr_switches;

	sums->taken = stats->nr_attempts;
	sums->expected = pin->expected > stats->nr_later ? pin->expected - stats->nr_later : 0;
	if (counts_lost) {
		sums->lost = sum_of_kinds(pin->counts.lost) + pin->pending;
		sums->self = pin->counts.self - pin->ahead;
		/* A sample that begins has used up its deadline, and is not counted yet. */
		if (sums->expected == sums->taken + sums->lost + sums->self + 1)
			sums->expected--;
	} else if (sums->expected > sums->taken + 1) {
		sums->lost = sums->expected - sums->taken;
	} else if (sums->expected + allowed >= sums->taken) {
		sums->expected = sums->taken;
	}
	sums->leftover = sums->expected - (sums->taken + sums->lost + sums->self);
}

static void add_counts(struct source_snapshot *snap, const struct sample_stats *stats)
{
	const struct source_counts *nr = &stats->source.counts;

	for (u32 i = 0; i < NR_LATE_KINDS; i++) {
		snap->counts.late[i] += nr->late[i];
		snap->counts.lost[i] += nr->lost[i];
		snap->counts.long_late[i] += nr->long_late[i];
	}
	snap->nr_taken[LATE_USER] += stats->nr_class[HEAT_USER];
	snap->nr_taken[LATE_KERNEL] +=
		stats->nr_class[HEAT_KERNEL] + stats->nr_class[HEAT_IRQ] - stats->nr_report;
	snap->nr_taken[LATE_REPORT] += stats->nr_report;
	snap->nr_taken[LATE_IDLE] += stats->nr_class[HEAT_IDLE];
	snap->nr_irqs_off += stats->nr_irqs_off;
	snap->nr_switches += stats->source.nr_switches;
}

static void add_cpu(struct source_snapshot *snap, unsigned int cpu)
{
	bool counts_lost = !OS_TICK_HZ && (snap->settings.source == SOURCE_TIMER ||
					   (!source.nmi_timer && cpu == 0));
	const struct sample_stats *stats = samples_stats(cpu);
	struct source_sums *sums = &snap->cpus[cpu];

	sum_up(sums, stats, counts_lost);
	add_counts(snap, stats);
	snap->nr_cpus++;
	snap->all.expected += sums->expected;
	snap->all.taken += sums->taken;
	snap->all.lost += sums->lost;
	snap->all.self += sums->self;
	snap->all.leftover += sums->leftover;
}

void source_snapshot(struct source_snapshot *snap)
{
	struct source_stretch list[NR_STRETCHES];
	unsigned int cpu;

	memset(snap, 0, sizeof(*snap));
	snap->settings = source.running;
	snap->nmi_timer = source.nmi_timer;
	snap->at_random = source.running.source == SOURCE_NMI ? source.nmi_jitter :
								source.running.jitter;
	os_for_each_cpu(cpu) {
		if (!os_cpu_online(cpu))
			continue;
		add_cpu(snap, cpu);
		copy_stretches(&os_per_cpu(source_cpus, cpu), list);
		for (u32 i = 0; i < NR_STRETCHES; i++)
			insert_stretch(snap, &list[i], cpu);
	}
	snap->cpus_take_turns = report_cpus_take_turns();
	snap->limit_ns = os_cycles_to_ns(source.late_limit);
	snap->is_imprecise = source.is_imprecise;
	snap->off = off_time_since_reset(&source_off_time);
	snap->borrowed = off_time_since_reset(&source_borrowed_time);
}
