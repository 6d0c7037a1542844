// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps the stores of samples and waits from running full: a worker thread copies logs that CPUs
 * have left to the archive of each CPU, and folds what leads nowhere any more.
 *
 * Each time it builds a new archive, from the old one and the log, in spare memory, and then
 * replaces the old one by a single store. CPUs and their NMIs go on meanwhile in their other log.
 * Readers see the old archive and the log, or the new archive.
 *
 * Records of a process that has ended lose its numbers, so they become one record for each program
 * and call chain. If that does not fit, the worker tries again at the next level: at each level,
 * records of twice the weight lose their call chain, so what costs most keeps it longest. Ended
 * processes lose theirs several levels before the others. The counts are always kept.
 *
 * All memory is allocated at the start, so a long run takes no more of it than a short one.
 */

#include "stack_store.h"

#define LEVELS_OF_ENDED 12 /* at this level, all ended processes have lost their call chains */
#define LIVE_FROM	6  /* live processes begin to lose them above this level */

bool stack_collect_wanted;
#ifdef CONFIG_PROFILE_SELFTEST
OS_DEFINE_PER_CPU(u64, stack_nr_ticks);
#endif

static struct stack_kind *kinds;
static struct poll_lock collecting;

u64 stack_level_weight(u32 level, bool ended)
{
	u32 first = ended ? 0 : LIVE_FROM;

	if (level <= first)
		return 0;
	if (level == STACK_LEVEL_LAST || level - first >= LEVELS_OF_ENDED)
		return ~0ull;
	return 1ull << (level - first);
}

/* Adds a folded copy of a record to a log. Returns false if there is no room. */
static bool add_record(const struct stack_kind *kind, struct stack_log *to, const void *rec,
		       u32 level)
{
	char *new = stack_log_new(to);
	u64 hash = 0, *slot;
	u32 nr_words;

	memcpy(new, rec, kind->record_bytes(rec));
	kind->fold(new, level);
	nr_words = (kind->record_bytes(new) - kind->key_offset) / sizeof(u64);
	for (u32 i = 0; i < nr_words; i++)
		hash = profile_stack_hash(hash ^ hash >> 32, ((u64 *)(new + kind->key_offset))[i]);
	slot = stack_log_find(to, new, hash >> 32, kind->key_offset, nr_words);
	if (slot && *slot) {
		kind->add(stack_log_record(to, slot), new);
		return true;
	}
	if (!slot || !stack_log_has_room(to, kind->record_bytes(new)))
		return false;
	stack_log_add(to, slot, hash >> 32, kind->record_bytes(new));
	return true;
}

/* Adds the records of a log of this generation. Returns false if there is no room. */
static bool add_log(const struct stack_kind *kind, struct stack_log *to,
		    const struct stack_log *from, u32 level)
{
	if (from->generation != to->generation)
		return true;
	for (u32 at = 0; at < from->used; at += kind->record_bytes(from->records + at)) {
		if (!add_record(kind, to, from->records + at, level))
			return false;
		os_may_yield();
	}
	return true;
}

/*
 * Replaces the archive, unless a reader has pinned the store since then. A pin also keeps the
 * changes that a reader makes to the records.
 */
static bool replace(struct stack_store *s, struct stack_log **spare, u32 nr_pins)
{
	unsigned long flags = os_irq_save(); /* a reader in an interrupt would wait for ever */
	struct stack_log *old = s->archive;
	bool is_free;

	pf_write_once(s->is_replacing, true);
	pf_mb(); /* pairs with the barrier in stack_store_pin() */
	is_free = pf_read_once(s->nr_pins) == nr_pins && !pf_read_once(s->is_pinned);
	if (is_free) {
		pf_store_release(&s->archive, *spare);
		*spare = old;
	}
	pf_store_release(&s->is_replacing, false);
	os_irq_restore(flags);
	return is_free;
}

/* Makes a new archive of the old one and the log before the last switch. */
static void collect(struct stack_kind *kind, struct stack_store *s)
{
	u32 nr_switches = pf_load_acquire(&s->nr_switches), nr_pins = pf_read_once(s->nr_pins);
	struct stack_log *log = &s->logs[~nr_switches & 1], *to = kind->spare;
	u32 level = s->level ? s->level - 1 : 0;

	if (s->archive->nr_switches == nr_switches)
		return;
	stack_log_clear(to, log->generation);
	while (!add_log(kind, to, s->archive, level) || !add_log(kind, to, log, level)) {
		os_assert(level < STACK_LEVEL_LAST);
		if (level++ == STACK_LEVEL_LAST)
			return;
		stack_log_clear(to, log->generation);
	}
	to->nr_switches = nr_switches;
	if (!replace(s, &kind->spare, nr_pins))
		return; /* the CPU asks again when it needs room */
	s->level = level;
	stack_log_clear(log, 0);
	/* Pairs with the acquire in stack_store_switch(). */
	pf_store_release(&s->may_switch, nr_switches + 1);
}

static struct stack_log *alloc_log(const struct stack_kind *kind, const struct stack_log *model)
{
	struct stack_log *log = os_zalloc(sizeof(*log));

	if (!log)
		return NULL;
	if (stack_log_init(log, model->bytes + kind->max_record_bytes, kind->max_record_bytes))
		return log;
	os_free(log);
	return NULL;
}

/* Allocates a store's second log and its archive, and the spare one, of the size of its first. */
static bool prepare(struct stack_kind *kind, struct stack_store *s)
{
	const struct stack_log *model = &s->logs[0];

	if (!kind->spare)
		kind->spare = alloc_log(kind, model);
	if (!kind->spare)
		return false;
	s->archive = alloc_log(kind, model);
	if (!s->archive || !stack_log_init(&s->logs[1], model->bytes + kind->max_record_bytes,
					   kind->max_record_bytes))
		return false;
	pf_store_release(&s->may_switch, 1); /* pairs with the acquire in stack_store_switch() */
	return true;
}

void stack_collect(void)
{
	unsigned int cpu;

	poll_lock(&collecting);
	for (struct stack_kind *kind = kinds; kind; kind = kind->next) {
		os_for_each_cpu(cpu) {
			struct stack_store *s = kind->store(cpu);

			if (pf_read_once(s->nr_switches) && !pf_read_once(s->is_pinned))
				collect(kind, s);
		}
	}
	poll_unlock(&collecting);
}

static OS_WORKER(worker, stack_collect);

void stack_collect_wake(void)
{
	pf_write_once(stack_collect_wanted, false);
	os_worker_wake(&worker);
}

void stack_collect_start(struct stack_kind *kind)
{
	bool failed = !kinds && os_worker_start(&worker, "profile");
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		if (kind->store(cpu)->log)
			failed |= !prepare(kind, kind->store(cpu));
	}
	if (failed)
		os_printk("profile: memory is short: a long run will lose %s\n", kind->name);
	kind->next = kinds;
	kinds = kind;
}
