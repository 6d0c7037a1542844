// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts system calls by path, in the store of each CPU (stack_store.h), with the path in place of
 * a call chain. Records differ by process, path and error. So errors need no counters of their own,
 * and a call adds 1 and its times to one record.
 *
 * The path is noted when the call copies it from the user, and the call is counted when it ends,
 * because only then its result and its time are known. Both happen in the thread itself. The times
 * are those of the call's row in strace, to the cycle.
 *
 * In a long run, records of processes that have ended become one for each path and error. If that
 * does not fit, paths with little time lose their name, and their calls count as [further paths].
 */

#include "files.h"

#define LOG_BYTES     (64ul << 10)
#define MIN_LOG_BYTES (16ul << 10)
#define KEY_OFFSET    __builtin_offsetof(struct file_record, process)
#define KEY_WORDS     2 /* without the path */

struct file_cpu {
	struct stack_store store;
	struct file_counts lost; /* of the store's generation */
};

static OS_DEFINE_PER_CPU(struct file_cpu, file_cpus);
os_key_t profile_files_key;
struct profile_off_time files_off_time;
static u64 newest_generation; /* grows with each reset; 0: not ready */

/* Counts a call that will have no record, because there is no memory for its path. */
static void count_lost(void)
{
	unsigned long flags = os_irq_save();

	os_this_cpu_ptr(&os_local(file_cpus))->lost.nr++;
	os_irq_restore(flags);
}

/* A word of a path, which is not aligned. */
typedef u64 __attribute__((__may_alias__, __aligned__(1))) path_word_t;

void profile_note_path(const char *path, size_t bytes)
{
	struct profile_task *pt = os_current_profile();
	struct profile_call_path *to = pt->strace.path;
	u64 hash = 0;
	u32 nr;

	/* An empty path stands for an open file: see AT_EMPTY_PATH. */
	if (!bytes || pt->strace.has_path || !strace_in_flight(pt))
		return;
	if (pf_unlikely(!to)) {
		to = pt->strace.path = os_zalloc(sizeof(*to));
		if (!to) {
			count_lost();
			return;
		}
	}
	to->is_truncated = bytes > sizeof(to->words);
	bytes = pf_min(bytes, sizeof(to->words));
	to->nr_words = nr = (bytes + 7) / 8;
	for (u32 i = 0; i < nr; i++) {
		u64 word = ((const path_word_t *)path)[i];

		if (i == nr - 1 && bytes % 8)
			word &= ~0ull >> (64 - bytes % 8 * 8);
		to->words[i] = word;
		hash = profile_stack_hash(hash ^ hash >> 32, word);
	}
	to->hash = hash;
	pt->strace.has_path = true;
}

static pf_noinline void free_path(struct profile_task *pt)
{
	os_free(pt->strace.path);
	pt->strace.path = NULL;
}

void files_task_exit(struct profile_task *pt)
{
	if (pf_unlikely(pt->strace.path))
		free_path(pt);
}

static u32 record_bytes(const void *rec_)
{
	const struct file_record *rec = rec_;

	return sizeof(*rec) + rec->nr_words * sizeof(u64);
}

/* Empties the store, unless a reader has pinned it. Returns true if it was emptied. */
static pf_noinline bool start_again(struct file_cpu *f, u64 generation)
{
	if (!stack_store_clear(&f->store, generation))
		return false;
	f->lost = (struct file_counts){ 0 };
	pf_write_once(f->store.generation, generation);
	return true;
}

/* Returns the record of the call, or a new one, or NULL if there is no room. */
static struct file_record *find_record(struct file_cpu *f, const struct profile_task *pt, u32 error)
{
	const struct profile_call_path *path = pt->strace.path;
	u64 hash, *slot;
	struct file_record *new;
	struct stack_log *log;

	if (pf_unlikely(stack_log_is_half_full(f->store.log)))
		stack_store_switch(&f->store);
	log = f->store.log;
	new = stack_log_new(log);
	new->process = stack_process_number(os_process_of(pt->process));
	new->context = 0;
	new->error = error;
	new->nr_words = path->nr_words;
	new->is_truncated = path->is_truncated;
	for (u32 i = 0; i < path->nr_words; i++)
		new->path[i] = path->words[i];
	hash = profile_stack_hash(profile_stack_hash(path->hash, new->process), new->context);
	slot = stack_log_find(log, new, hash >> 32, KEY_OFFSET, KEY_WORDS + path->nr_words);
	if (slot && *slot)
		return stack_log_record(log, slot);
	if (!slot || !stack_log_has_room(log, record_bytes(new)))
		return NULL;
	new->nr = new->cycles = new->off_cycles = 0;
	stack_log_add(log, slot, hash >> 32, record_bytes(new));
	return new;
}

static void add_call(u64 *nr, u64 *cycles, u64 *off_cycles, struct strace_path_call call)
{
	*nr += 1;
	*cycles += call.time.cycles;
	*off_cycles += call.time.off_cycles;
}

static void count_path(struct profile_task *pt, struct strace_path_call call)
{
	u64 generation = pf_read_once(newest_generation);
	struct file_record *rec = NULL;
	struct file_cpu *f;
	unsigned long flags;

	if (!pt->process)
		return;
	flags = os_irq_save();
	f = os_this_cpu_ptr(&os_local(file_cpus));
	seq_begin(&f->store.seq);
	if (pf_likely(f->store.generation == generation) || start_again(f, generation))
		rec = find_record(f, pt, call.error);
	if (pf_likely(rec))
		add_call(&rec->nr, &rec->cycles, &rec->off_cycles, call);
	else
		add_call(&f->lost.nr, &f->lost.cycles, &f->lost.off_cycles, call);
	seq_end(&f->store.seq);
	os_irq_restore(flags);
	stack_collect_poll();
}

static struct stack_store *store_of_cpu(unsigned int cpu)
{
	return &os_per_cpu(file_cpus, cpu).store;
}

/* A record weighs 1 for each 4,096 cycles of its calls. */
static void fold_record(void *rec_, u32 level)
{
	struct file_record *rec = rec_;
	bool ended = rec->process && stack_process_has_ended(rec->process);

	if (ended)
		rec->process = STACK_PROCESS_ENDED;
	else if (level >= STACK_LEVEL_LAST)
		rec->process = 0;
	if (rec->cycles >> 12 < stack_level_weight(level, ended)) {
		rec->nr_words = 0;
		rec->is_truncated = false;
		rec->has_no_path = true;
	}
	if (level >= STACK_LEVEL_LAST && rec->error)
		rec->error = FILE_OTHER_ERROR;
}

static void add_record(void *to_, const void *from_)
{
	struct file_record *to = to_;
	const struct file_record *from = from_;

	to->nr += from->nr;
	to->cycles += from->cycles;
	to->off_cycles += from->off_cycles;
}

static struct stack_kind kind = {
	.name = "files",
	.store = store_of_cpu,
	.max_record_bytes = sizeof(struct file_record) + FILE_PATH_WORDS * sizeof(u64),
	.key_offset = KEY_OFFSET,
	.record_bytes = record_bytes,
	.fold = fold_record,
	.add = add_record,
	.newest = &newest_generation,
};

void files_init(void)
{
	stack_kind_init(&kind, LOG_BYTES, MIN_LOG_BYTES);
	strace_count_path = count_path;
	pf_write_once(newest_generation, STACK_FIRST_GENERATION);
}

void files_reset(void)
{
	off_time_reset(&files_off_time);
	__atomic_add_fetch(&newest_generation, 1, __ATOMIC_SEQ_CST);
}

void files_pin(void)
{
	stack_pin(&kind);
}

void files_unpin(void)
{
	stack_unpin(&kind);
}

const struct file_record *files_next(unsigned int cpu, const struct file_record *rec)
{
	return stack_kind_next(&kind, cpu, rec);
}

struct file_counts files_read(unsigned int cpu, const struct file_record *rec)
{
	struct file_counts counts = { 0 };

	SEQ_COPY(&store_of_cpu(cpu)->seq) {
		counts = (struct file_counts){ pf_read_once(rec->nr), pf_read_once(rec->cycles),
					       pf_read_once(rec->off_cycles) };
	}
	return counts;
}

struct file_counts files_read_lost(void)
{
	struct file_counts sum = { 0 };
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		const struct file_cpu *f = &os_per_cpu(file_cpus, cpu);

		if (pf_read_once(f->store.generation) != pf_read_once(newest_generation))
			continue;
		sum.nr += pf_read_once(f->lost.nr);
		sum.cycles += pf_read_once(f->lost.cycles);
		sum.off_cycles += pf_read_once(f->lost.off_cycles);
	}
	return sum;
}
