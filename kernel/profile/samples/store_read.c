// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the sample store while sampling goes on. The reader pins the records: it copies the count
 * of each within the record, and the counters of the CPU, so that both are from the same moment.
 * Then view.c walks over the records with stack_store_for_each(), others do so with samples_next().
 * Until the records are unpinned, no CPU empties its log.
 */

#include "store.h"

/* Copies each record's count within the record, and adds the counts up by class. */
static void count_records(struct sample_cpu *s)
{
	struct sample_record *rec;

	s->pinned.log_bytes = stack_store_pin_records(&s->store, sample_kind.generation);
	stack_store_for_each(&s->store, rec, record_bytes) {
		u64 nr = pf_read_once(rec->nr);

		rec->nr_pinned = nr;
		s->pinned.nr_records++;
		s->pinned.nr_class[rec->class] += nr;
		if (!(rec->flags & SAMPLE_IRQS_ON))
			s->pinned.nr_irqs_off += nr;
		if (rec->truncated == PROFILE_STACK_TRUNCATED_REPORT)
			s->pinned.nr_report += nr;
	}
	for (u32 i = 0; i < NR_HEAT_CLASSES; i++)
		s->pinned.nr_stored += s->pinned.nr_class[i];
}

/*
 * Copies the counters of a CPU and of its source, as they were at one moment. They are few, so a
 * copy usually fits between two samples.
 */
static void copy_counts(const struct sample_cpu *s, unsigned int cpu, struct sample_counts *counts,
			struct source_pin *pin)
{
	SEQ_COPY(&s->store.seq) {
		*counts = s->counts;
		source_pin_cpu(cpu, pin);
	}
}

static u64 nr_attempts(const struct sample_counts *counts)
{
	return counts->nr_attempts + counts->nr_dropped[DROP_NESTED][HEAT_KERNEL];
}

/*
 * Adds up the dropped samples, by reason and by class. Samples that came during another sample have
 * no class.
 */
static void add_drops(struct sample_stats *pinned, const struct sample_counts *counts)
{
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++) {
		for (u32 class = 0; class < NR_HEAT_CLASSES; class ++) {
			pinned->nr_dropped[i] += counts->nr_dropped[i][class];
			if (i != DROP_NESTED)
				pinned->nr_class[class] += counts->nr_dropped[i][class];
		}
	}
}

/*
 * Counts one CPU's samples for a report. Sampling goes on while records are counted: a sample that
 * comes after its record was counted, and before the counters are copied, is not in the report. So
 * the report sets attempts to the number of known samples (stored or dropped), but not below the
 * attempts before counting, and not above those after it.
 */
void sample_read_cpu(unsigned int cpu, bool has_records)
{
	struct sample_cpu *s = &os_per_cpu(sample_cpus, cpu);
	struct sample_stats *pinned = &s->pinned;
	struct sample_counts counts = { 0 };
	u64 nr_before = 0, nr_after, nr_known;

	memset(pinned, 0, sizeof(*pinned));
	if (has_records) {
		nr_before = nr_attempts(&s->counts);
		seq_wait(&s->store.seq); /* the latest sample may not be in its record yet */
		count_records(s);
	}
	copy_counts(s, cpu, &counts, &pinned->source);
	pinned->elapsed_cycles = pinned->source.cycles - pf_read_once(sample_start_cycles);
	if (pf_read_once(s->generation) != current_generation())
		return;
	add_drops(pinned, &counts);
	pinned->self_cycles = counts.self_cycles;
	nr_after = nr_attempts(&counts);
	nr_known = pinned->nr_stored;
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		nr_known += pinned->nr_dropped[i];
	pinned->nr_attempts = pf_min(pf_max(nr_known, nr_before), nr_after);
	pinned->nr_unread = pinned->nr_attempts - nr_known;
	pinned->nr_later = nr_after - pinned->nr_attempts;
}

/* For an assertion. Returns true if no more samples are stored and dropped than were attempted. */
static pf_unused bool counts_add_up(void)
{
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		if ((s64)os_per_cpu(sample_cpus, cpu).pinned.nr_unread < 0)
			return false;
	}
	return true;
}

void samples_pin(void)
{
	stack_pin(&sample_kind);
	os_assert(counts_add_up());
}

void samples_unpin(void)
{
	stack_unpin(&sample_kind);
}

u64 samples_generation(void)
{
	os_assert(sample_kind.nr_pins);
	return sample_kind.generation;
}

u64 samples_nr_reads(void)
{
	os_assert(sample_kind.nr_pins);
	return sample_kind.nr_reads;
}

const struct sample_stats *samples_stats(unsigned int cpu)
{
	os_assert(sample_kind.nr_pins);
	return &os_per_cpu(sample_cpus, cpu).pinned;
}

const struct stack_store *samples_store(unsigned int cpu)
{
	os_assert(sample_kind.nr_pins);
	return &os_per_cpu(sample_cpus, cpu).store;
}

const struct sample_record *samples_next(unsigned int cpu, const struct sample_record *rec)
{
	os_assert(sample_kind.nr_pins);
	return stack_store_next(&os_per_cpu(sample_cpus, cpu).store, rec,
				rec ? record_bytes(rec) : 0);
}

/*
 * Clears the bytes after the NUL, which are left over from a longer name. A program may give itself
 * any name, so bytes that would break a line of folded stacks become `?`.
 */
void sample_comm(const struct sample_record *rec, char comm[SAMPLE_COMM_BYTES])
{
	const char *from = (const char *)rec->comm;

	memset(comm, 0, SAMPLE_COMM_BYTES);
	for (u32 i = 0; i < sizeof(rec->comm) && from[i]; i++)
		comm[i] = from[i];
	report_make_foldable(comm);
}
