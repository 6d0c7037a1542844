// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stores samples in the store of each CPU (stack_store.h). A sample that equals an earlier one adds
 * 1 to its record.
 *
 * Most samples need no walk of the stack. A cache, by program counter, stack pointer and task,
 * leads to the record of the last such sample. Comparing the stack with the call chain of that
 * record takes less time than collecting the chain.
 *
 * An NMI during a sample sees that seq is odd, and its sample is dropped. A reader pins the store,
 * copies each record's count within the record, and uses the copy (store_read.c).
 *
 * A reset only raises the generation. Each CPU empties its store at its next sample. While a reader
 * has pinned the store, such samples are dropped.
 */

#include "store.h"

#include "../event_keys.h"

/* It shares a word with what else a sample says. */
PF_BUILD_BUG_ON((u64)OS_NO_SYSCALL >= 1 << 16);

#define NO_GENERATION ~0ull /* the first sample has to enter one */

/* Matches no sample. */
static struct sample_record nobody = { .task_key = ~0ull };

OS_DEFINE_PER_CPU(struct sample_cpu,
		  sample_cpus) = OS_EACH_CPU({ .store.generation = NO_GENERATION });
u64 sample_newest_generation;
u64 sample_start_cycles;
static u64 log_bytes = SAMPLE_DEFAULT_LOG;
static u64 sp_mask; /* all ones with call chains, else 0 */
static u32 max_depth = PF_IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) ? SAMPLE_DEFAULT_DEPTH : 1;

static int set_bytes(const char *value)
{
	u64 bytes;

	if (os_parse_u64(value, &bytes) || bytes < SAMPLE_MIN_LOG || bytes > SAMPLE_MAX_LOG)
		return -OS_EINVAL;
	log_bytes = bytes;
	return 0;
}
/* Memory for the samples of a CPU, 16384 to 2097152 bytes: 1048576 by default. */
OS_BOOT_PARAM(profile_samples, "profile.samples", "<bytes for each CPU>", set_bytes);

#ifdef CONFIG_PROFILE_CALLCHAIN
static int set_depth(const char *value)
{
	u64 depth;

	if (os_parse_u64(value, &depth) || depth < 1 || depth > SAMPLE_MAX_DEPTH)
		return -OS_EINVAL;
	max_depth = depth;
	return 0;
}
/* Longest call chain of a sample, at most 127 functions: 32 by default. */
OS_BOOT_PARAM(profile_depth, "profile.depth", "<functions>", set_depth);
#endif

static pf_always_inline bool with_chains(void)
{
	return PF_IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) && sp_mask;
}

void sample_init(void)
{
	u64 bytes = stack_store_affordable(log_bytes, SAMPLE_MIN_LOG, 16);
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		struct stack_store *s = &os_per_cpu(sample_cpus, cpu).store;

		stack_store_init(s, &bytes, SAMPLE_MIN_LOG, sample_kind.max_record_bytes);
		if (!s->log)
			os_printk("profile: no memory for samples of CPU %u\n", cpu);
	}
	if (bytes != log_bytes)
		os_printk("profile: memory is short: %lu bytes, not %lu, for samples of a CPU\n",
			  bytes, log_bytes);
	if (PF_IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) && max_depth > 1) {
		os_stack_walk_init();
		sp_mask = ~0ull;
	}
	stack_collect_start(&sample_kind);
	sample_start_cycles = os_cycles();
	/*
	 * A CPU that sees the generation sees the stores, too. Pairs with the barrier in
	 * stack_store_clear().
	 */
	pf_store_release(&sample_newest_generation, 1);
}

void sample_reset(void)
{
	pf_write_once(sample_start_cycles, os_cycles());
	if (pf_read_once(sample_newest_generation))
		__atomic_add_fetch(&sample_newest_generation, 1, __ATOMIC_SEQ_CST);
}

u64 sample_generation(void)
{
	return current_generation();
}

/* Returns the class of interrupted kernel code. The sample's own interrupt does not count. */
static pf_always_inline u32 kernel_class(u32 in_nmi, const os_task_t *task)
{
	if (os_irq_depth() + in_nmi > 1)
		return HEAT_IRQ;
	return os_task_idle(task) ? HEAT_IDLE : HEAT_KERNEL;
}

/* The newest task key; its low byte is 0. Written often, so its cache line has nothing else. */
static struct {
	u64 key;
} pf_aligned(64) last;

void sample_process_init(struct profile_process *pp)
{
	pp->samples.key_floor = __atomic_load_n(&last.key, __ATOMIC_RELAXED);
}

void profile_task_changed(os_task_t *task)
{
	os_process_t *proc = os_task_process(task);
	u64 task_key;

	if (os_key_on(&profile_off_key))
		return;
	task_key = __atomic_add_fetch(&last.key, 1 << 8, __ATOMIC_RELAXED);
	pf_write_once(os_task_profile(task)->samples.key,
		      task_key | (proc ? os_process_program(proc) : 0));
}

static pf_always_inline void finish_sample(struct sample_cpu *s, u64 start_cycles)
{
	s->counts.self_cycles += os_cycles() - start_cycles;
	seq_end(&s->store.seq);
}

static pf_always_inline void count(struct sample_cpu *s, struct sample_record *rec,
				   u64 start_cycles)
{
	rec->nr++;
	finish_sample(s, start_cycles);
}

/* The drops of a process: their number, and above it the generation in which they were counted. */
#define DROPS_BITS 40
#define DROPS_MASK (PF_BIT(DROPS_BITS) - 1)

static bool is_of_generation(u64 dropped, u64 generation)
{
	return dropped >> DROPS_BITS == generation << DROPS_BITS >> DROPS_BITS;
}

/* Several CPUs may count drops of a process at once, which are rare. */
static void count_process_drop(u64 *dropped, u64 generation)
{
	u64 old = pf_read_once(*dropped), seen;

	for (;; old = seen) {
		u64 first = generation << DROPS_BITS;

		seen = pf_cmpxchg(dropped, old,
				  (is_of_generation(old, generation) ? old : first) + 1);
		if (seen == old)
			return;
	}
}

/*
 * Counts a dropped sample, by reason and class (the record of a stored sample has its class), and
 * for its process.
 */
static void count_drop(struct sample_cpu *s, enum sample_drop reason, u32 class)
{
	os_task_t *task = os_current_task();
	os_process_t *proc = task ? os_task_process(task) : NULL;

	s->counts.nr_dropped[reason][class]++;
	if (proc)
		count_process_drop(&os_process_profile(proc)->samples.nr_dropped, s->generation);
}

u64 sample_process_drops(os_process_t *proc)
{
	u64 dropped = pf_read_once(os_process_profile(proc)->samples.nr_dropped);

	return is_of_generation(dropped, sample_generation()) ? dropped & DROPS_MASK : 0;
}

static void forget_recent(struct sample_cpu *s)
{
	for (u32 i = 0; i < PF_ARRAY_SIZE(s->recent); i++)
		s->recent[i] = &nobody;
}

/*
 * Adds the sample in the new record to the equal record, or adds the new one to the store. Returns
 * the record, or NULL if there is no room.
 */
static struct sample_record *store(struct sample_cpu *s, struct sample_record *new, u32 tag)
{
	/*
	 * Compares as many pcs as new has: if a record has another number of pcs, its context
	 * differs, which is compared first.
	 */
	struct stack_log *log = s->store.log;
	u64 *slot = stack_log_find(
		log, new, tag, __builtin_offsetof(struct sample_record, task_key), 2 + nr_pcs(new));
	const os_task_t *task = os_current_task();

	if (slot && *slot) {
		struct sample_record *rec = stack_log_record(log, slot);

		rec->nr++;
		return rec;
	}
	if (!slot || !stack_log_has_room(log, record_bytes(new))) {
		count_drop(s, slot ? DROP_LOG_FULL : DROP_HASH_FULL, new->class);
		return NULL;
	}
	new->nr = 1;
	new->nr_pinned = new->nr_before = 0;
	new->tid = os_task_tid(task);
	new->pid = os_task_pid(task);
	new->code_map = os_task_code_map(task);
	os_task_comm(task, new->comm);
	stack_log_add(log, slot, tag, record_bytes(new));
	return new;
}

/* Hashes the parts of a sample that are known without a walk. */
static pf_always_inline u64 recent_hash(u64 task_key, u32 context, u64 pc, u64 sp)
{
	return profile_stack_hash(profile_stack_hash(pc, task_key), context + sp) >>
	       (64 - LOG2_RECENT);
}

/* Returns true if this thread prints a report, and no interrupt has come in between. */
static bool is_in_report(u32 context)
{
	return report_is_made_here() && (context >> 16 & 0xff) == HEAT_KERNEL;
}

/* Slow path: the recent record does not match. Walks the stack and looks the sample up. */
static pf_noinline void take_other(struct sample_cpu *s, const os_regs_t *regs, u32 context,
				   u64 start_cycles)
{
	u64 task_key = os_task_key(os_current_task()), pc = os_regs_pc(regs);
	struct sample_record *new, *rec;
	struct profile_stack_walk walk;

	if (pf_unlikely(stack_log_is_half_full(s->store.log)) && stack_store_switch(&s->store))
		forget_recent(s);
	new = stack_log_new(s->store.log);
	if (pf_unlikely(is_in_report(context))) {
		new->pcs[0] = walk.hash = (u64)report_printf;
		walk.counts = PROFILE_STACK_COUNTS(1, 0, PROFILE_STACK_TRUNCATED_REPORT,
						   PROFILE_STACK_NOT_REPLAYABLE);
	} else if (with_chains()) {
		walk = os_stack_walk(regs, new->pcs, max_depth);
	} else {
		new->pcs[0] = pc;
		walk.hash = pc;
		walk.counts = os_regs_user(regs) ? PROFILE_STACK_COUNTS(0, 1, PROFILE_STACK_WHOLE,
									PROFILE_STACK_REPLAYABLE) :
						   PROFILE_STACK_COUNTS(1, 0, PROFILE_STACK_WHOLE,
									PROFILE_STACK_REPLAYABLE);
	}
	new->task_key = task_key;
	new->context = context | walk.counts << 32;
	/*
	 * The upper half of a product depends on all bits of the lower half of the factor. But
	 * after the walk, two hashes may differ in the upper half only.
	 */
	walk.hash ^= walk.hash >> 32;
	rec = store(s, new,
		    profile_stack_hash(profile_stack_hash(walk.hash, task_key), new->context) >>
			    32);
	if (rec && rec->replayable)
		s->recent[recent_hash(task_key, context, pc, os_regs_sp(regs) & sp_mask)] = rec;
	finish_sample(s, start_cycles);
}

/* Returns whether the user's part of the stack matches that of rec. regs are those of user mode. */
static pf_always_inline bool is_user_part(const struct sample_record *rec, const os_regs_t *regs)
{
	return os_stack_matches_user(regs, rec->pcs + rec->nr_kernel, rec->nr_user, rec->truncated);
}

/* Returns whether the stack matches a chain whose user part was found along a path. */
static bool is_on_path(const struct sample_record *rec, const os_regs_t *regs)
{
	if (rec->nr_kernel && !os_stack_matches_kernel(regs, rec->pcs, rec->nr_kernel))
		return false;
	regs = rec->nr_kernel ? os_user_regs(os_current_task()) : regs;
	return os_stack_matches_path(regs, rec->pcs + rec->nr_kernel, rec->nr_user, rec->truncated);
}

/* The interrupted function has no frame yet, so its caller is read from the top of the stack. */
static bool is_frameless(const struct sample_record *rec, const os_regs_t *regs)
{
	return os_stack_matches_frameless(regs, rec->pcs, rec->nr_kernel, rec->replayable) &&
	       (!rec->nr_user || is_user_part(rec, os_user_regs(os_current_task())));
}

/* Takes a sample whose recent record cannot be compared by frame pointers alone. */
static pf_noinline void take_unframed(struct sample_cpu *s, const os_regs_t *regs, u32 context,
				      u64 start_cycles, struct sample_record *rec)
{
	if (rec->replayable == PROFILE_STACK_PATH ? is_on_path(rec, regs) : is_frameless(rec, regs))
		count(s, rec, start_cycles);
	else
		take_other(s, regs, context, start_cycles);
}

/* Records a trace event for each sample, whether there is room for it in the store or not. */
static pf_unused os_saves_registers void record_event(const os_regs_t *regs)
{
	profile_event_write(sample, os_regs_pc(regs), os_regs_user(regs),
			    os_task_code_map(os_current_task()));
}

static pf_always_inline void take_sample(struct sample_cpu *s, const os_regs_t *regs,
					 u64 start_cycles, u32 in_nmi)
{
	const os_task_t *task = os_current_task();
	u64 task_key = os_task_key(task), class = HEAT_USER, pc = os_regs_pc(regs);
	const os_regs_t *user_regs = regs;
	struct sample_record *rec;
	u32 context = OS_NO_SYSCALL;

	if (!os_regs_user(regs)) {
		class = kernel_class(in_nmi, task);
		context = os_task_syscall(task, regs);
	}
	/* Keeps GCC from duplicating the rest of this function, which would need more registers. */
	asm volatile("" : "+r"(class) : : "memory");
	s->counts.nr_attempts++;
	profile_trace_call(sample, record_event, regs);
	context |= class << 16 | !os_regs_irqs_off(regs) * SAMPLE_IRQS_ON << 24;
	rec = s->recent[recent_hash(task_key, context, pc, os_regs_sp(regs) & sp_mask)];
	if (pf_unlikely(rec->task_key != task_key || (u32)rec->context != context ||
			rec->pcs[0] != pc))
		return take_other(s, regs, context, start_cycles);
	if (with_chains()) {
		if (pf_unlikely(rec->replayable != PROFILE_STACK_REPLAYABLE))
			return take_unframed(s, regs, context, start_cycles, rec);
		if (rec->nr_kernel) {
			if (!os_stack_matches_kernel(regs, rec->pcs, rec->nr_kernel))
				return take_other(s, regs, context, start_cycles);
			user_regs = os_user_regs(task);
		}
		if (rec->nr_user && !is_user_part(rec, user_regs))
			return take_other(s, regs, context, start_cycles);
	}
	count(s, rec, start_cycles);
}

/*
 * Handles a sample before sample_init(), or after a reset. Returns true if the sample can now be
 * stored as usual, false if it has been dropped.
 */
static bool enter_generation(struct sample_cpu *s, const os_regs_t *regs, u32 in_nmi)
{
	u64 generation = pf_read_once(sample_newest_generation);

	os_assert(s->store.seq & 1);
	if (!generation)
		return false;
	if (s->generation != generation) {
		memset(&s->counts, 0, sizeof(s->counts));
		pf_store_release(&s->generation, generation);
		source_first_sample();
	}
	/* 31,000 instructions, at 1 MiB: as long as three samples at 100 kHz, which are lost. */
	if (!stack_store_clear(&s->store, s->generation)) {
		s->counts.nr_attempts++;
		count_drop(s, s->store.log ? DROP_PINNED : DROP_NO_MEMORY,
			   os_regs_user(regs) ? HEAT_USER :
						kernel_class(in_nmi, os_current_task()));
		return false;
	}
	forget_recent(s);
	pf_write_once(s->store.generation, generation);
	return true;
}

static pf_noinline void take_slow(struct sample_cpu *s, const os_regs_t *regs, u64 start_cycles,
				  u32 in_nmi)
{
	if (enter_generation(s, regs, in_nmi))
		take_sample(s, regs, start_cycles, in_nmi);
	else
		finish_sample(s, start_cycles);
}

/* Jumps to the slow paths at its very end, so that no register has to be saved for them. */
void sample_take(const os_regs_t *regs, u64 start_cycles, u32 in_nmi)
{
	struct sample_cpu *s = os_this_cpu_ptr(&os_local(sample_cpus));

	os_assert_irqs_off();
	asm("" : "+r"(s)); /* keeps the compiler from computing it again at each use */
	if (pf_unlikely(s->store.seq & 1)) {
		/* In one instruction, because this NMI may have interrupted another writer. */
		os_this_cpu_inc(os_local(sample_cpus).counts.nr_dropped[DROP_NESTED][HEAT_KERNEL]);
		return;
	}
	seq_begin(&s->store.seq);
	if (pf_likely(s->store.generation == pf_read_once(sample_newest_generation)))
		take_sample(s, regs, start_cycles, in_nmi);
	else
		take_slow(s, regs, start_cycles, in_nmi);
}

static struct stack_store *store_of_cpu(unsigned int cpu)
{
	return &os_per_cpu(sample_cpus, cpu).store;
}

/* Keeps only the function that was interrupted, and the instruction in user code if asked to. */
static void cut_chain(struct sample_record *rec, bool keeps_user)
{
	if (rec->truncated == PROFILE_STACK_TRUNCATED_REPORT)
		return; /* it has no chain */
	if (rec->nr_kernel && !os_symbol_lookup(rec->pcs[0], &rec->pcs[0], NULL, 0))
		rec->pcs[0] = 0;
	rec->nr_user = keeps_user && !rec->nr_kernel && rec->nr_user;
	rec->nr_kernel = rec->nr_kernel != 0;
	rec->truncated = PROFILE_STACK_TRUNCATED_ROOM;
	rec->replayable = PROFILE_STACK_NOT_REPLAYABLE;
}

static bool has_ended(const struct sample_record *rec)
{
	return (rec->flags & SAMPLE_ENDED) ||
	       (rec->pid && os_live_key_floor(rec->pid) >= rec->task_key);
}

/* An instruction in user code stays until it weighs so much less than a call chain that goes. */
#define INSTRUCTION_SHARE 8

/* Records without a pid are of kernel threads. */
static void fold_record(void *rec_, u32 level)
{
	struct sample_record *rec = rec_;
	bool ended = has_ended(rec);
	u64 weight = stack_level_weight(level, ended);

	if (ended)
		rec->flags |= SAMPLE_ENDED;
	if (ended || !rec->pid || level >= STACK_LEVEL_LIVE)
		rec->task_key = rec->tid = rec->pid = 0;
	if (rec->nr < weight)
		cut_chain(rec, rec->nr >= weight / INSTRUCTION_SHARE);
	if (level >= (ended ? STACK_LEVEL_OTHERS : STACK_LEVEL_LAST)) {
		rec->code_map = 0;
		memcpy(rec->comm, "[others]\0\0\0\0\0\0\0", sizeof(rec->comm));
	}
	if (level >= STACK_LEVEL_LAST) {
		rec->syscall = OS_NO_SYSCALL;
		rec->flags |= SAMPLE_NO_ROOM;
		if (rec->nr_kernel)
			rec->pcs[0] = 0;
	}
}

static void add_sample_counts(void *to_, const void *from_)
{
	struct sample_record *to = to_;
	const struct sample_record *from = from_;

	to->nr += from->nr;
	to->nr_before += from->nr_before;
}

struct stack_kind sample_kind = {
	.name = "samples",
	.store = store_of_cpu,
	.max_record_bytes = RECORD_BYTES(SAMPLE_MAX_DEPTH),
	.key_offset = __builtin_offsetof(struct sample_record, tid),
	.record_bytes = record_bytes,
	.fold = fold_record,
	.add = add_sample_counts,
	.newest = &sample_newest_generation,
	.read = sample_read_cpu,
};

void sample_self_cost(u64 *nr, u64 *cycles)
{
	const struct sample_cpu *s = os_this_cpu_ptr(&os_local(sample_cpus));

	*nr = pf_read_once(s->counts.nr_attempts);
	*cycles = pf_read_once(s->counts.self_cycles);
}
