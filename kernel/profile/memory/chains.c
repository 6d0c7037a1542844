// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts the pages that programs get, by the call chain of the user code that touched them first,
 * in the store of each CPU (stack_store.h). The kernel allocates a page when it is first touched,
 * so this is the code that makes the program's memory grow. A page that was freed and touched again
 * is counted twice.
 *
 * A program usually touches several pages from one place, and so do all processes of a program. So
 * a cache leads to a recent chain, and the program's stack is compared with it, which is less work
 * than walking the stack. A record has the number of its chain (page_chains.c), or the chain itself
 * if that has no number.
 */

#include "chains.h"

#include "os.h"

#include <profile/memory.h>

#define LOG_BYTES     (128ul << 10)
#define MIN_LOG_BYTES (16ul << 10)
#define KEY_OFFSET    __builtin_offsetof(struct memory_record, process)
#define KEY_WORDS     5 /* without pcs */
#define LOG2_RECENT   9

struct recent {
	const struct memory_record *chain; /* replayable; NULL: none */
	u64 task_key;			   /* of the task that rec is for */
	struct memory_record *rec;
};

struct chains_cpu {
	struct stack_store store;
	u64 nr_lost, nr_lost_at_end; /* pages, of the store's generation */
	struct recent recent[PF_BIT(LOG2_RECENT)];
};

static OS_DEFINE_PER_CPU(struct chains_cpu, chains_cpus);
os_key_t profile_memory_chains_key;
struct profile_off_time memory_chains_off_time;
static u64 newest_generation; /* grows with each reset; 0: not ready */

/* Also switched on by the first switch of the other key, and never off. */
os_key_t profile_memory_ends_key;

static u32 record_bytes(const void *rec_)
{
	const struct memory_record *rec = rec_;

	return sizeof(*rec) + (rec->nr_kernel + rec->nr_user) * sizeof(u64);
}

/* Empties the store, unless a reader has pinned it. Returns true if it was emptied. */
static pf_noinline bool start_again(struct chains_cpu *c, u64 generation)
{
	if (!stack_store_clear(&c->store, generation))
		return false;
	memset(c->recent, 0, sizeof(c->recent));
	c->nr_lost = c->nr_lost_at_end = 0;
	pf_write_once(c->store.generation, generation);
	return true;
}

/* Returns the log for a new record. */
static struct stack_log *log_with_room(struct chains_cpu *c)
{
	if (pf_unlikely(stack_log_is_half_full(c->store.log)) && stack_store_switch(&c->store))
		memset(c->recent, 0, sizeof(c->recent));
	return c->store.log;
}

/*
 * Returns the record like the new one, which is built in the log. If there is none, adds the new
 * one. Returns NULL if there is no room.
 */
static struct memory_record *find_or_add(struct stack_log *log, struct memory_record *new)
{
	u32 tag = profile_stack_hash(new->tag, new->process) >> 32;
	u64 *slot = stack_log_find(log, new, tag, KEY_OFFSET, KEY_WORDS + new->nr_user);

	if (!slot)
		return NULL;
	if (*slot)
		return stack_log_record(log, slot);
	if (!stack_log_has_room(log, record_bytes(new)))
		return NULL;
	new->nr = new->nr_at_end = 0;
	if (!new->number && os_memory_kind_is_mapped(new->kind))
		memory_page_chain_lost();
	stack_log_add(log, slot, tag, record_bytes(new));
	return new;
}

static u64 process_of(os_task_t *task)
{
	os_process_t *proc = os_task_process(task);

	return proc ? stack_process_number(proc) : 0;
}

/* Returns the record of the process for a chain with a number, or NULL if there is no room. */
static struct memory_record *record_of_number(struct stack_log *log, u64 process, u32 number)
{
	struct memory_record *new = stack_log_new(log);

	*new = (struct memory_record){
		.number = number,
		.tag = profile_stack_hash(0, number) >> 32,
		.process = process,
		.code_map = number,
		.syscall = OS_NO_SYSCALL,
		.kind = MEMORY_KIND_NUMBERED,
	};
	return find_or_add(log, new);
}

/* Returns the record of another task, if the recent chain is of its program, too; or NULL. */
static struct memory_record *find_other_task(struct chains_cpu *c, os_task_t *task,
					     struct recent *recent)
{
	const struct memory_record *chain = recent->chain;
	struct memory_record *rec;
	u64 comm[2];

	if (!chain->number || chain->code_map != os_task_code_map(task))
		return NULL;
	os_task_comm(task, comm);
	if (!os_same_words(comm, chain->comm, 2))
		return NULL;
	rec = record_of_number(log_with_room(c), process_of(task), chain->number);
	if (rec)
		*recent = (struct recent){ chain, os_task_key(task), rec };
	return rec;
}

/* Walks the stack and looks the chain up. */
static struct memory_record *walk_touch(struct chains_cpu *c, os_task_t *task, u32 context,
					struct recent *recent)
{
	struct stack_log *log = log_with_room(c);
	struct memory_record *new = stack_log_new(log), *rec;
	const struct memory_record *chain;
	const os_regs_t *regs = os_user_regs(task);
	os_process_t *proc = os_task_process(task);
	struct profile_stack_walk walk = { 0 };
	u64 hash;

	/* A kernel thread has no user code, nor has one that becomes the first process. */
	if (proc && os_regs_user(regs))
		walk = os_stack_walk(regs, new->pcs, MEMORY_MAX_DEPTH);
	new->process = process_of(task);
	new->code_map = os_task_code_map(task);
	os_task_comm(task, new->comm);
	new->context = context | walk.counts << 32;
	hash = walk.hash;
	for (const u64 *word = new->comm; word != new->pcs; word++)
		hash = profile_stack_hash(hash, *word);
	new->tag = hash >> 32;
	new->number = memory_page_chain_number(new);
	chain = new->number ? memory_page_chain(new->number) : NULL;
	rec = chain ? record_of_number(log, new->process, new->number) : find_or_add(log, new);
	chain = chain ? chain : rec;
	if (rec && (chain->replayable == PROFILE_STACK_REPLAYABLE ||
		    chain->replayable == PROFILE_STACK_PATH))
		*recent = (struct recent){ chain, os_task_key(task), rec };
	return rec;
}

/* Finds the record of a task that is not that of the recent record, or of another chain. */
static pf_noinline struct memory_record *find_slowly(struct chains_cpu *c, os_task_t *task,
						     u32 context, struct recent *recent, bool same)
{
	struct memory_record *rec = same ? find_other_task(c, task, recent) : NULL;

	return rec ? rec : walk_touch(c, task, context, recent);
}

static pf_always_inline bool same_stack(const struct memory_record *rec, const os_regs_t *regs)
{
	if (!rec->nr_user)
		return false;
	if (pf_unlikely(rec->replayable == PROFILE_STACK_PATH))
		return os_stack_matches_path(regs, rec->pcs, rec->nr_user, rec->truncated);
	return os_stack_matches_user(regs, rec->pcs, rec->nr_user, rec->truncated);
}

/* Returns the record of the running program's call chain, or NULL if there is no room. */
static pf_always_inline struct memory_record *find_record(struct chains_cpu *c, os_task_t *task,
							  u32 context)
{
	const os_regs_t *regs = os_user_regs(task);
	u64 hash = profile_stack_hash(os_regs_sp(regs) % 4096, context + os_regs_pc(regs));
	struct recent *recent = &c->recent[hash >> (64 - LOG2_RECENT)];
	const struct memory_record *chain = recent->chain;
	bool same = chain && (u32)chain->context == context && same_stack(chain, regs);

	if (pf_likely(same && recent->task_key == os_task_key(task)))
		return recent->rec;
	return find_slowly(c, task, context, recent, same);
}

pf_noinline u32 profile_memory_note_touch(u32 kind, bool is_copy)
{
	u64 generation = pf_read_once(newest_generation);
	os_task_t *task = os_current_task();
	struct memory_record *rec = NULL;
	u32 context, number = 0;
	struct chains_cpu *c;
	unsigned long flags;
	os_regs_t here;

	os_regs_here(&here);
	context = os_task_syscall(task, &here) | kind << 16 | (u32)is_copy << 24;
	flags = os_irq_save();
	c = os_this_cpu_ptr(&os_local(chains_cpus));
	seq_begin(&c->store.seq);
	if (pf_likely(c->store.generation == generation) || start_again(c, generation))
		rec = find_record(c, task, context);
	if (pf_likely(rec)) {
		rec->nr++;
		number = rec->number;
	} else {
		c->nr_lost++;
	}
	seq_end(&c->store.seq);
	os_irq_restore(flags);
	stack_collect_poll();
	return number;
}

static void add_at_end(u64 process, u32 number, u64 nr_pages)
{
	u64 generation = pf_read_once(newest_generation);
	struct memory_record *rec = NULL;
	unsigned long flags = os_irq_save();
	struct chains_cpu *c = os_this_cpu_ptr(&os_local(chains_cpus));

	seq_begin(&c->store.seq);
	if (c->store.generation == generation || start_again(c, generation))
		rec = record_of_number(log_with_room(c), process, number);
	if (rec)
		rec->nr_at_end += nr_pages;
	else
		c->nr_lost_at_end += nr_pages;
	seq_end(&c->store.seq);
	os_irq_restore(flags);
	stack_collect_poll();
}

static void add_at_end_of_any(u64 process, u32 number, u64 nr_pages)
{
	add_at_end(STACK_PROCESS_ENDED, number, nr_pages);
}

/*
 * If the process has no report or export of its own, its pages are added to those of all ended
 * processes. Then many such processes take no more room than one, and the worker folds nothing.
 */
void profile_memory_note_end(os_process_t *proc)
{
	memory_page_chains_visit(proc, 0, on_exit_wants_any(proc) ? add_at_end : add_at_end_of_any);
}

static struct stack_store *store_of_cpu(unsigned int cpu)
{
	return &os_per_cpu(chains_cpus, cpu).store;
}

static void forget_chain(struct memory_record *rec)
{
	const struct memory_record *chain = memory_chain_of(rec);

	memcpy(rec->comm, chain->comm, sizeof(rec->comm));
	rec->code_map = chain->code_map;
	rec->context = chain->context;
	rec->nr_user = 0;
	rec->truncated = PROFILE_STACK_TRUNCATED_ROOM;
	rec->replayable = PROFILE_STACK_NOT_REPLAYABLE;
}

/* A record weighs 1 for each page. Those that lose more than their chain have lost it. */
static void fold_record(void *rec_, u32 level)
{
	struct memory_record *rec = rec_;
	bool ended = rec->process && stack_process_has_ended(rec->process);

	if (ended || (level >= STACK_LEVEL_LIVE && rec->process))
		rec->process = STACK_PROCESS_ENDED;
	if (pf_max(rec->nr, rec->nr_at_end) < stack_level_weight(level, ended))
		forget_chain(rec);
	if (level >= (ended ? STACK_LEVEL_OTHERS : STACK_LEVEL_LAST)) {
		rec->code_map = 0;
		memcpy(rec->comm, "[others]\0\0\0\0\0\0\0", sizeof(rec->comm));
	}
	if (level >= STACK_LEVEL_LAST)
		rec->syscall = OS_NO_SYSCALL;
}

static void add_record(void *to, const void *from)
{
	struct memory_record *sum = to;
	const struct memory_record *rec = from;

	sum->nr += rec->nr;
	sum->nr_at_end += rec->nr_at_end;
}

static struct stack_kind kind = {
	.name = "memory chains",
	.store = store_of_cpu,
	.max_record_bytes = MEMORY_RECORD_BYTES,
	.key_offset = KEY_OFFSET,
	.record_bytes = record_bytes,
	.fold = fold_record,
	.add = add_record,
	.newest = &newest_generation,
};

void memory_chains_init(void)
{
	stack_kind_init(&kind, LOG_BYTES, MIN_LOG_BYTES);
	memory_page_chains_init();
	os_key_set(&profile_memory_ends_key, true);
	pf_write_once(newest_generation, STACK_FIRST_GENERATION);
}

void memory_chains_reset(void)
{
	off_time_reset(&memory_chains_off_time);
	if (newest_generation)
		__atomic_add_fetch(&newest_generation, 1, __ATOMIC_SEQ_CST);
}

void memory_chains_pin(void)
{
	stack_pin(&kind);
}

void memory_chains_unpin(void)
{
	stack_unpin(&kind);
}

const struct memory_record *memory_chains_next(unsigned int cpu, const struct memory_record *rec)
{
	return stack_kind_next(&kind, cpu, rec);
}

u64 memory_chains_read(const struct memory_record *rec)
{
	return pf_read_once(rec->nr);
}

u64 memory_chains_read_at_end(const struct memory_record *rec)
{
	return pf_read_once(rec->nr_at_end);
}

u64 memory_chains_read_lost(u64 *nr_at_end)
{
	u64 generation = pf_read_once(newest_generation), nr = 0;
	unsigned int cpu;

	*nr_at_end = 0;
	os_for_each_cpu(cpu) {
		const struct chains_cpu *c = &os_per_cpu(chains_cpus, cpu);

		if (pf_read_once(c->store.generation) != generation)
			continue;
		nr += pf_read_once(c->nr_lost);
		*nr_at_end += pf_read_once(c->nr_lost_at_end);
	}
	return nr;
}
