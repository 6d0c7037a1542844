// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the stores of call chains in all interleavings with few preemptions (interleave.h): the CPU
 * switches to its other log, the worker makes the archive of the one before, and a reader that has
 * pinned all records gets each of them once.
 */

#include "unit.h"

#include "../../kernel/profile/stack_store.h"

#define GENERATION  3
#define STORE_BYTES 512 /* of a log: two different records are half of it */

struct chain_record {
	u64 nr, key;
};

static struct stack_store store;
static struct stack_store no_store;
#define ONLY_LOADS " stack_store_unpin:pf_store_release " /* these stay in order on x86 */

static u64 nr_filled, nr_begun, nr_pinned;

static struct stack_store *store_of(unsigned int cpu)
{
	return cpu ? &no_store : &store;
}

static u32 chain_bytes(const void *rec)
{
	return sizeof(struct chain_record);
}

static void chain_fold(void *rec, u32 level)
{
}

static void chain_add(void *to, const void *from)
{
	((struct chain_record *)to)->nr += ((const struct chain_record *)from)->nr;
}

static struct stack_kind chains = {
	.name = "chains",
	.store = store_of,
	.max_record_bytes = sizeof(struct chain_record),
	.key_offset = offsetof(struct chain_record, key),
	.record_bytes = chain_bytes,
	.fold = chain_fold,
	.add = chain_add,
};

/* Counts an event, as waits/record.c does. */
static void count_chain(u64 key)
{
	struct chain_record *rec;
	u64 *slot;

	nr_begun++;
	seq_begin(&store.seq);
	if (stack_log_is_half_full(store.log))
		stack_store_switch(&store);
	rec = stack_log_new(store.log);
	*rec = (struct chain_record){ 1, key };
	slot = stack_log_find(store.log, rec, key, chains.key_offset, 1);
	if (*slot) {
		rec = stack_log_record(store.log, slot);
		pf_write_once(rec->nr, rec->nr + 1);
	} else {
		stack_log_add(store.log, slot, key, sizeof(*rec));
	}
	seq_end(&store.seq);
}

static struct stack_log *log_nr(int i)
{
	struct stack_log *logs[] = { &store.logs[0], &store.logs[1], store.archive, chains.spare };

	return logs[i];
}

/* Makes a store whose first log is half full. */
static void fill_log(void)
{
	static struct stack_store empty;
	static struct stack_kind empty_chains;
	u64 bytes = STORE_BYTES;

	if (!store.log) {
		stack_store_init(&store, &bytes, bytes, sizeof(struct chain_record));
		stack_collect_start(&chains);
		empty = store;
		empty_chains = chains;
	}
	store = empty;
	chains = empty_chains;
	for (int i = 0; i < 4; i++) {
		stack_log_clear(log_nr(i), i ? 0 : GENERATION);
		log_nr(i)->nr_switches = 0;
	}
	nr_begun = nr_pinned = 0;
	count_chain(1);
	count_chain(2);
}

/* There is one reader, so its parts are its own. */
static void share_store(void)
{
	il_share(&store, offsetof(struct stack_store, parts));
	il_keep(store.parts, sizeof(store.parts));
	for (int i = 0; i < 4; i++) {
		il_share(log_nr(i)->records, STORE_BYTES);
		il_share(log_nr(i)->hash, (log_nr(i)->hash_mask + 1) * sizeof(u64));
	}
	il_share(store.archive, sizeof(struct stack_log));
	il_share(chains.spare, sizeof(struct stack_log));
	il_keep(&chains, sizeof(chains));
	nr_filled = nr_begun;
	il_keep(&nr_begun, sizeof(nr_begun));
	il_keep(&nr_pinned, sizeof(nr_pinned));
}

static void fill_one_log(void)
{
	fill_log();
	share_store();
}

/* The worker has one of them to collect before the CPU may switch again. */
static void fill_both_logs(void)
{
	fill_log();
	count_chain(2);
	count_chain(3);
	share_store();
}

static u64 count_pinned(void)
{
	const struct chain_record *rec = NULL;
	u64 nr = 0;

	while ((rec = stack_store_next(&store, rec, sizeof(*rec))))
		nr += pf_read_once(rec->nr);
	return nr;
}

static void read_store(void)
{
	u32 nr_switches;

	stack_store_pin(&store);
	nr_switches = pf_read_once(store.nr_switches);
	stack_store_pin_records(&store, GENERATION);
	nr_pinned = count_pinned();
	il_check(nr_pinned >= nr_filled && nr_pinned <= nr_begun);
	il_check(count_pinned() >= nr_pinned);
	il_check(pf_read_once(store.nr_switches) == nr_switches);
	stack_store_unpin(&store);
}

/* Afterwards, all events are there, also after the worker has been at work. */
static void read_all_events(void)
{
	for (int i = 0; i < 2; i++) {
		read_store();
		il_check(nr_pinned == nr_begun);
		stack_collect();
	}
}

static void count_new_chain(void)
{
	count_chain(4);
}

static void count_old_chain(void)
{
	count_chain(1);
}

/* The CPU begins a new generation, and writes over the records of the one before. */
static void begin_generation(void)
{
	seq_begin(&store.seq);
	stack_store_clear(&store, GENERATION + 1);
	seq_end(&store.seq);
	if (store.log->generation != GENERATION)
		count_chain(5);
}

static void read_old_generation(void)
{
	const struct chain_record *rec = NULL;
	u64 keys = 0;

	stack_store_pin(&store);
	stack_store_pin_records(&store, GENERATION);
	while ((rec = stack_store_next(&store, rec, sizeof(*rec))))
		keys = keys * 10 + pf_read_once(rec->key);
	il_check(!keys || keys == 12);
	stack_store_unpin(&store);
}

/* Begin and end of a change are for readers of counters; a release of the switch, for a panic. */
#define NO_COUNTERS " seq_begin:pf_wmb seq_end:pf_wmb stack_store_switch:pf_store_release"
/* There is one worker, and replace() has published by its barrier. */
#define ONE_WORKER                                                   \
	" poll_trylock:&lock->is_held poll_unlock:pf_store_release " \
	"replace:pf_store_release"

const struct il_test il_tests[] = {
	{ "pin and switch",
	  fill_one_log,
	  { { count_new_chain, 0 }, { read_store, 1 } },
	  read_all_events,
	  3,
	  NO_COUNTERS ONLY_LOADS },
	{ "pin and collect",
	  fill_both_logs,
	  { { stack_collect, 0 }, { read_store, 1 } },
	  read_all_events,
	  2,
	  ONE_WORKER " stack_log_add:pf_store_release collect:pf_store_release" ONLY_LOADS },
	{ "switch and collect, without a reader",
	  fill_both_logs,
	  { { count_old_chain, 0 }, { stack_collect, 1 } },
	  read_all_events,
	  2,
	  NO_COUNTERS ONE_WORKER
	  " stack_store_switch:pf_mb stack_log_add:pf_store_release replace:pf_mb " },
	{ "pin, switch and collect",
	  fill_both_logs,
	  { { count_old_chain, 0 }, { stack_collect, 1 }, { read_store, 2 } },
	  read_all_events,
	  1,
	  NULL },
	{ "pin and clear",
	  fill_one_log,
	  { { begin_generation, 0 }, { read_old_generation, 1 } },
	  NULL,
	  2,
	  " seq_begin:pf_wmb seq_end:pf_wmb"
	  " stack_log_add:pf_store_release" ONLY_LOADS },
	{ 0 },
};
