// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sample store: for each CPU a hash from program counter to number of samples, exact
 * compare, and a counter for each kind of tick. Only the CPU itself writes, with interrupts
 * off; seq, odd meanwhile, lets a reader elsewhere know that its copy is torn and try again.
 *
 * A tick is counted in its class first and in a slot then. What has no free slot within reach
 * is in the class only, so "ticks of all classes = user + slots + dropped" holds at any time.
 *
 * profile_reset() only moves sample_epoch on. Each CPU empties its own store at its next tick;
 * until then readers take it as empty.
 */

#include "internal.h"

#define READ_TRIES 1000

struct sample_cpu {
	u64 seq;
	u64 epoch;
	u64 nr_class[NR_HEAT_CLASSES];
	struct sample_slot *slots; /* NULL: there was no memory, all is dropped */
};

static DEFINE_PER_CPU(struct sample_cpu, sample_cpus);
static bool sample_on;
static u64 sample_epoch;
static u64 start_cycles; /* of the epoch */

void sample_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct sample_cpu *s = &per_cpu(sample_cpus, cpu);

		s->slots = os_zalloc(SAMPLE_SLOTS * sizeof(*s->slots));
		if (!s->slots)
			printk("profile: no memory for samples of CPU %u\n", cpu);
	}
	start_cycles = os_cycles();
	/* Pairs with the acquire in sample_add(). */
	smp_store_release(&sample_on, true);
}

void sample_reset(void)
{
	WRITE_ONCE(start_cycles, os_cycles());
	WRITE_ONCE(sample_epoch, sample_epoch + 1);
}

u64 sample_current_epoch(void)
{
	return READ_ONCE(sample_epoch);
}

u64 sample_nr_due(void)
{
	u64 cycles = os_cycles() - READ_ONCE(start_cycles);

	return sample_on ? mul_div_u64(os_cycles_to_ns(cycles), os_tick_hz(), 1000000000) : 0;
}

static void count_pc(struct sample_slot *slots, u64 pc)
{
	/* Fibonacci hashing: the top bits of the product depend on all bits of pc. */
	u32 i = pc * 0x9e3779b97f4a7c15ull >> (64 - SAMPLE_SLOTS_LOG2);

	for (u32 probe = 0; probe < SAMPLE_MAX_PROBES; probe++) {
		struct sample_slot *slot = &slots[(i + probe) % SAMPLE_SLOTS];

		if (slot->nr && slot->pc != pc)
			continue;
		slot->pc = pc;
		slot->nr++;
		return;
	}
}

void sample_add(enum heat_class class, u64 pc)
{
	struct sample_cpu *s;
	u64 epoch;

	/* Pairs with the release in sample_init(). */
	if (!smp_load_acquire(&sample_on))
		return;
	s = this_cpu_ptr(&sample_cpus);
	epoch = READ_ONCE(sample_epoch);

	WRITE_ONCE(s->seq, s->seq + 1);
	barrier();
	if (unlikely(s->epoch != epoch)) {
		memset(s->nr_class, 0, sizeof(s->nr_class));
		if (s->slots)
			memset(s->slots, 0, SAMPLE_SLOTS * sizeof(*s->slots));
		s->epoch = epoch;
	}
	s->nr_class[class]++;
	barrier();
	if (class != HEAT_USER && s->slots)
		count_pc(s->slots, pc);
	/* Pairs with the acquire in sample_snapshot_cpu(). */
	smp_store_release(&s->seq, s->seq + 1);
}

bool sample_snapshot_cpu(unsigned int cpu, struct sample_snapshot *snap)
{
	const struct sample_cpu *s = &per_cpu(sample_cpus, cpu);
	int tries = os_panicking() ? 1 : READ_TRIES; /* nobody writes any more */
	bool current_epoch;
	u64 seq;

	do {
		cpu_relax();
		/* Pairs with the release in sample_add(). */
		seq = smp_load_acquire(&s->seq);
		current_epoch = READ_ONCE(s->epoch) == READ_ONCE(sample_epoch);
		if (s->slots)
			memcpy(snap->slots, s->slots, sizeof(snap->slots));
		else
			memset(snap->slots, 0, sizeof(snap->slots));
		barrier();
		/* Behind the slots: a tick that is stopped half way (panic) shows as dropped. */
		memcpy(snap->nr_class, s->nr_class, sizeof(snap->nr_class));
		smp_mb(); /* the copy before the second look at seq */
	} while (((seq & 1) || READ_ONCE(s->seq) != seq) && --tries);
	return current_epoch;
}
