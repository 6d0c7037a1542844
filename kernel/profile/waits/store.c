// SPDX-License-Identifier: BSD-2-Clause
/*
 * Allocates and reads the store of waits of each CPU (stack_store.h). record.c writes to it. A
 * reader copies a record's counters, and copies them again if the CPU's seq has changed meanwhile.
 * A reset raises the generation. Each CPU empties its store at its next event, unless a reader has
 * pinned it.
 *
 * Wakers are in a log of their own. They have no pid, so there are few of them: at most one for
 * each program and call chain. When their log is half full, new ones keep only the kernel's part of
 * the chain. Waits point to them, so this log only grows until a reset.
 */

#include "store.h"

#define LOG_BYTES     (256ul << 10)
#define WAKER_BYTES   (128ul << 10)
#define MIN_LOG_BYTES (16ul << 10)

OS_DEFINE_PER_CPU(struct wait_cpu, wait_cpus);
u64 waits_generation;
u64 waits_since_cycles;
struct wait_record waits_no_record = { .kind = NR_WAIT_KINDS };

static struct stack_store *store_of_cpu(unsigned int cpu)
{
	return &os_per_cpu(wait_cpus, cpu).store;
}

static bool has_ended(const struct wait_record *rec)
{
	return rec->process && stack_process_has_ended(rec->process);
}

/* Keeps the kernel's part of the chain, which has few different values. */
static void cut_chain(struct wait_record *rec)
{
	rec->nr_user = 0;
	rec->truncated = PROFILE_STACK_TRUNCATED_ROOM;
	rec->replayable = PROFILE_STACK_NOT_REPLAYABLE;
	rec->addr = 0;
}

/* A record weighs 1 for each 4,096 cycles of its waits. */
static void fold_record(void *rec_, u32 level)
{
	struct wait_record *rec = rec_;
	bool ended = has_ended(rec);

	if (ended || (level >= STACK_LEVEL_LIVE && rec->process))
		rec->process = STACK_PROCESS_ENDED;
	if ((rec->asleep_cycles + rec->ready_cycles) >> 12 < stack_level_weight(level, ended))
		cut_chain(rec);
	if (level >= (ended ? STACK_LEVEL_OTHERS : STACK_LEVEL_LAST)) {
		rec->code_map = 0;
		memcpy(rec->comm, "[others]\0\0\0\0\0\0\0", sizeof(rec->comm));
	}
	if (level >= STACK_LEVEL_LAST) {
		rec->waker = NULL;
		rec->name = NULL;
		rec->syscall = OS_NO_SYSCALL;
		rec->phase = WAIT_CALL_UNKNOWN;
		rec->nr_kernel = 0;
	}
}

static void add_wait_times(void *to_, const void *from_)
{
	struct wait_record *to = to_;
	const struct wait_record *from = from_;

	to->nr += from->nr;
	to->asleep_cycles += from->asleep_cycles;
	to->ready_cycles += from->ready_cycles;
	to->max_cycles = pf_max(to->max_cycles, from->max_cycles);
}

static struct stack_kind kind = {
	.name = "waits",
	.store = store_of_cpu,
	.max_record_bytes = RECORD_BYTES(WAIT_MAX_DEPTH),
	.key_offset = __builtin_offsetof(struct wait_record, name),
	.record_bytes = wait_record_bytes,
	.fold = fold_record,
	.add = add_wait_times,
	.newest = &waits_generation,
};

static bool init_wakers(struct wait_cpu *w, u64 bytes)
{
	bytes = pf_max(pf_min(bytes, WAKER_BYTES), MIN_LOG_BYTES);
	w->wakers.generation = STACK_FIRST_GENERATION;
	return stack_log_init(&w->wakers, bytes, kind.max_record_bytes);
}

void waits_init(void)
{
	u64 bytes = stack_store_affordable(LOG_BYTES, MIN_LOG_BYTES, 32);
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		struct wait_cpu *w = &os_per_cpu(wait_cpus, cpu);

		w->last_id = cpu + 1;
		stack_store_init(&w->store, &bytes, MIN_LOG_BYTES, kind.max_record_bytes);
		if (!w->store.log || !init_wakers(w, bytes / 2)) {
			os_printk("profile: no memory for waits of CPU %u\n", cpu);
			w->store.log = NULL;
			continue;
		}
		w->store.log->generation = w->store.generation =
			STACK_FIRST_GENERATION; /* it is empty */
	}
	stack_collect_start(&kind);
	waits_restart_since();
	pf_write_once(waits_generation, STACK_FIRST_GENERATION);
}

void waits_restart_since(void)
{
	pf_write_once(waits_since_cycles, os_cycles());
}

void waits_reset(void)
{
	waits_restart_since();
	/* A CPU that sees the new generation sees the new waits_since_cycles, too. */
	__atomic_add_fetch(&waits_generation, 1, __ATOMIC_SEQ_CST);
}

void waits_pin(void)
{
	stack_pin(&kind);
}

void waits_unpin(void)
{
	stack_unpin(&kind);
}

const struct wait_record *waits_next(unsigned int cpu, const struct wait_record *rec)
{
	return stack_kind_next(&kind, cpu, rec);
}

struct wait_counts waits_read(unsigned int cpu, const struct wait_record *rec)
{
	struct wait_counts counts = { 0 };

	SEQ_COPY(&os_per_cpu(wait_cpus, cpu).store.seq) {
		counts = (struct wait_counts){ pf_read_once(rec->nr),
					       pf_read_once(rec->asleep_cycles),
					       pf_read_once(rec->ready_cycles),
					       pf_read_once(rec->max_cycles) };
	}
	return counts;
}

struct wait_lost waits_read_lost(void)
{
	struct wait_lost lost = { 0 };
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		const struct wait_cpu *w = &os_per_cpu(wait_cpus, cpu);

		if (pf_read_once(w->store.generation) != pf_read_once(waits_generation))
			continue;
		lost.nr += pf_read_once(w->lost.nr);
		lost.cycles += pf_read_once(w->lost.cycles);
		lost.nr_wakers += pf_read_once(w->lost.nr_wakers);
	}
	return lost;
}
