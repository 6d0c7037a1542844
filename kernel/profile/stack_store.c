// SPDX-License-Identifier: BSD-2-Clause
/*
 * Allocates a store of call chains, and pins it for a reader. Its CPU writes to it with the inline
 * functions of stack_store.h, which describes the store.
 */

#include "stack_store.h"

#define LOGS_OF_CPU 3 /* two and an archive */

/* Sets records last, because a log with records must be complete. */
bool stack_log_init(struct stack_log *log, u64 bytes, u64 max_record_bytes)
{
	u64 nr_slots = 1;
	char *records;

	while (nr_slots * 2 * STACK_STORE_BYTES_A_SLOT <= bytes)
		nr_slots *= 2;
	log->hash = os_zalloc(nr_slots * sizeof(*log->hash));
	records = log->hash ? os_alloc(bytes) : NULL;
	if (!records) {
		os_free(log->hash);
		log->hash = NULL;
		return false;
	}
	log->hash_mask = nr_slots - 1;
	log->bytes = bytes - max_record_bytes; /* so there is always room to build one more */
	log->records = records;
	return true;
}

void stack_store_init(struct stack_store *s, u64 *bytes, u64 min_bytes, u64 max_record_bytes)
{
	while (!stack_log_init(&s->logs[0], *bytes, max_record_bytes)) {
		if (*bytes / 2 < min_bytes)
			return;
		*bytes /= 2;
	}
	s->log = &s->logs[0];
}

u64 stack_store_affordable(u64 bytes, u64 min_bytes, u32 share)
{
	unsigned int cpu, nr = 0;

	os_for_each_cpu(cpu)
		nr++;
	while (bytes / 2 >= min_bytes && bytes * LOGS_OF_CPU * nr > os_memory_bytes() / share)
		bytes /= 2;
	return bytes;
}

void stack_kind_init(struct stack_kind *kind, u64 bytes, u64 min_bytes)
{
	unsigned int cpu;

	bytes = stack_store_affordable(bytes, min_bytes, 64);
	os_for_each_cpu(cpu) {
		struct stack_store *s = kind->store(cpu);

		stack_store_init(s, &bytes, min_bytes, kind->max_record_bytes);
		if (s->log)
			s->log->generation = s->generation = STACK_FIRST_GENERATION;
		else
			os_printk("profile: no memory for the %s of CPU %u\n", kind->name, cpu);
	}
	stack_collect_start(kind);
}

const void *stack_kind_next(const struct stack_kind *kind, unsigned int cpu, const void *rec)
{
	os_assert(kind->nr_pins);
	return stack_store_next(kind->store(cpu), rec, rec ? kind->record_bytes(rec) : 0);
}

void stack_store_pin(struct stack_store *s)
{
	memset(s->parts, 0, sizeof(s->parts));
	pf_write_once(s->nr_pins, s->nr_pins + 1);
	pf_write_once(s->is_pinned, true);
	/*
	 * Pairs with the barriers in stack_store_clear(), stack_store_switch() and replace() of
	 * stack_collect.c: either they see the pin and change nothing, or the waits below see that
	 * they have begun.
	 */
	pf_mb();
	seq_wait(&s->seq);
	while (pf_load_acquire(&s->is_replacing) && !os_panicking())
		os_cpu_relax();
}

static void pin_log(struct stack_part *part, const struct stack_log *log, u64 generation)
{
	part->records = log->records;
	/* Pairs with the release in stack_log_add(). */
	part->bytes = log->generation == generation ? pf_load_acquire(&log->used) : 0;
}

u32 stack_store_pin_records(struct stack_store *s, u64 generation)
{
	/* Pair with the releases in stack_store_switch() and in replace() of stack_collect.c. */
	u32 nr_switches = pf_load_acquire(&s->nr_switches), bytes = 0;
	const struct stack_log *archive = pf_load_acquire(&s->archive);

	memset(s->parts, 0, sizeof(s->parts));
	if (archive) {
		pin_log(&s->parts[0], archive, generation);
		if (archive->nr_switches != nr_switches)
			pin_log(&s->parts[1], &s->logs[~nr_switches & 1], generation);
	}
	pin_log(&s->parts[2], &s->logs[nr_switches & 1], generation);
	for (u32 i = 0; i < STACK_PARTS; i++)
		bytes += s->parts[i].bytes;
	return bytes;
}

void stack_store_unpin(struct stack_store *s)
{
	/* Release: all reads of records must come before the CPU may empty the log. */
	pf_store_release(&s->is_pinned, false);
	memset(s->parts, 0, sizeof(s->parts));
}

static bool has_records(const struct stack_kind *kind, const struct stack_store *s)
{
	return pf_read_once(s->generation) == pf_load_acquire(kind->newest);
}

/*
 * Pins a store, if it has records. A stale store is not pinned: its CPU could not empty it, and
 * would lose its next event. The store may become stale just before it is pinned, so the second
 * look decides.
 */
static bool pin_if_current(const struct stack_kind *kind, struct stack_store *s)
{
	if (has_records(kind, s)) {
		stack_store_pin(s);
		if (has_records(kind, s))
			return true;
	}
	stack_store_unpin(s);
	return false;
}

static void pin_cpu(const struct stack_kind *kind, unsigned int cpu)
{
	bool is_pinned = pin_if_current(kind, kind->store(cpu));

	if (kind->read)
		kind->read(cpu, is_pinned);
	else if (is_pinned)
		stack_store_pin_records(kind->store(cpu), kind->generation);
}

void stack_pin(struct stack_kind *kind)
{
	unsigned int cpu;

	/* A panic may have interrupted a reader that had pinned the stores. */
	if (kind->nr_pins++ && !os_panicking())
		return;
	kind->nr_reads++;
	/* Repeats if there was a reset meanwhile. */
	do {
		kind->generation = pf_load_acquire(kind->newest);
		os_for_each_cpu(cpu)
			pin_cpu(kind, cpu);
	} while (kind->generation != pf_load_acquire(kind->newest));
}

void stack_unpin(struct stack_kind *kind)
{
	unsigned int cpu;

	os_assert(kind->nr_pins);
	if (--kind->nr_pins)
		return;
	os_for_each_cpu(cpu)
		stack_store_unpin(kind->store(cpu));
}
