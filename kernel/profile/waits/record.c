// SPDX-License-Identifier: BSD-2-Clause
/*
 * The hooks of waits. schedule() notes when a thread leaves its CPU; task_wake() notes when the
 * thread was woken, and by which call chain. When the thread runs again, it adds the time asleep
 * and the time ready to the record of its own call chain. schedule() passes the TSC that it uses
 * for the CPU time of threads, so a thread's CPU time and waits add up to its whole life, to the
 * cycle.
 *
 * Records are in the store of each CPU (stack_store.h). A thread usually waits where it waited
 * before, or where another one of its program did. So the thread's last records, and a cache of
 * those that were found on its CPU, are compared with its stack, which is less work than a walk.
 *
 * profile_wait_ended() and profile_thread_woken() look at the last record only. Each compares, then
 * counts, and gets what it needs for the second part again: so few registers hold something across
 * a call that may be needed, and have to be saved. Anything else is left to a function of its own.
 */

#include "store.h"

#define KEY_WORDS 8 /* without pcs */
/* The maximum depth of an interrupt's chain. The interrupted code is not the waker. */
#define INTERRUPT_DEPTH 6

/* The part of a record's key that is known before the stack is walked. */
struct wait_key {
	u64 task_key;
	const struct wait_record *waker;
	const char *name;
	u64 addr;
	u32 context; /* its lower half */
};

/* Empties the store, unless a reader has pinned it. Returns true if it was emptied. */
static pf_noinline bool start_again(struct wait_cpu *w, u64 generation)
{
	if (!stack_store_clear(&w->store, generation))
		return false;
	stack_log_clear(&w->wakers, generation);
	waits_forget_recent(w);
	w->lost = (struct wait_lost){ 0 };
	pf_write_once(w->store.generation, generation);
	return true;
}

/* Begins a change of the store. Returns true if records may be added. */
static pf_always_inline bool begin_record(struct wait_cpu *w)
{
	u64 generation = pf_read_once(waits_generation);

	os_assert_irqs_off();
	seq_begin(&w->store.seq);
	return pf_likely(w->store.generation == generation) || start_again(w, generation);
}

/*
 * Returns the record with the key of the new one; if there is none, adds the new one. NULL: no
 * room.
 */
static pf_always_inline struct wait_record *store_record(struct stack_log *log,
							 struct wait_record *new, u32 tag)
{
	u32 nr_pcs = new->nr_kernel + new->nr_user;
	/*
	 * Compares as many pcs as new has: if a record has another number of pcs, its context
	 * differs, which is compared first.
	 */
	u64 *slot = stack_log_find(log, new, tag, __builtin_offsetof(struct wait_record, name),
				   KEY_WORDS + nr_pcs);

	if (slot && *slot)
		return stack_log_record(log, slot);
	if (!slot || !stack_log_has_room(log, RECORD_BYTES(nr_pcs)))
		return NULL;
	new->nr = new->asleep_cycles = new->ready_cycles = new->max_cycles = 0;
	stack_log_add(log, slot, tag, RECORD_BYTES(nr_pcs));
	return new;
}

/* Returns the log for a new record. Makes room in the log of waits. */
static pf_always_inline struct stack_log *log_for(struct wait_cpu *w, bool is_waker)
{
	if (is_waker)
		return &w->wakers;
	if (pf_unlikely(stack_log_is_half_full(w->store.log)) && stack_store_switch(&w->store))
		waits_forget_recent(w);
	return w->store.log;
}

/*
 * Returns a number for a name that does not depend on where a kernel's constants begin, so that
 * code which is not run changes no costs. For the same reason, find_record() leaves out the page
 * of the stack.
 */
static u64 name_hash(const char *name)
{
	static const char anchor[1];

	return name ? name - anchor : 0;
}

static bool is_waker_key(const struct wait_key *key)
{
	return (u8)(key->context >> 16) >= WAKER_THREAD;
}

static u64 process_of(const struct wait_key *key, os_task_t *task)
{
	os_process_t *proc = is_waker_key(key) ? NULL : os_task_process(task);

	return proc ? stack_process_number(proc) : 0;
}

/* Copies a key, which has as many words in a record with as many pcs. */
static pf_always_inline void copy_key(struct wait_record *to, const struct wait_record *from)
{
	u64 *words = (u64 *)&to->name;
	const u64 *end = from->pcs + from->nr_kernel + from->nr_user;

#pragma GCC unroll 4
	for (const u64 *word = (const u64 *)&from->name; word != end; word++)
		*words++ = *word;
}

/* Whether a stack can be compared with the record's call chain: see same_user_part(). */
static bool is_replayable(const struct wait_record *rec)
{
	return rec->replayable == PROFILE_STACK_REPLAYABLE || rec->replayable == PROFILE_STACK_PATH;
}

/* Walks the stack, and sets the key of a new record but for the process. Returns its hash. */
static pf_noinline u64 make_key(struct wait_record *new, const struct wait_key *key,
				const os_regs_t *regs, const struct stack_log *log)
{
	bool is_waker = is_waker_key(key);
	u32 depth = key->task_key ? WAIT_MAX_DEPTH : INTERRUPT_DEPTH;
	struct profile_stack_walk walk = os_stack_walk(regs, new->pcs, depth);
	u64 hash = walk.hash;

	new->comm[0] = new->comm[1] = new->code_map = 0;
	if (key->task_key) {
		new->code_map = os_task_code_map(os_current_task());
		os_task_comm(os_current_task(), new->comm);
	}
	new->waker = key->waker;
	new->name = key->name;
	new->addr = key->addr;
	new->context = key->context | walk.counts << 32;
	if (pf_unlikely(is_waker && stack_log_is_half_full(log) && new->nr_user)) {
		new->nr_user = 0;
		new->truncated = PROFILE_STACK_TRUNCATED_ROOM;
		if (new->replayable == PROFILE_STACK_PATH)
			new->replayable = PROFILE_STACK_REPLAYABLE; /* as the kernel's part is */
		hash = 0;
		for (u32 i = 0; i < new->nr_kernel; i++)
			hash = profile_stack_hash(hash, new->pcs[i]);
	}
	hash = profile_stack_hash(hash, name_hash(new->name));
	for (const u64 *word = new->comm; word != new->pcs; word++)
		hash = profile_stack_hash(hash, *word);
	return hash;
}

/* Walks the stack, and looks its call chain up. */
static struct wait_record *look_up(struct wait_cpu *w, const struct wait_key *key,
				   const os_regs_t *regs, struct recent_wait *recent)
{
	struct stack_log *log = log_for(w, is_waker_key(key));
	struct wait_record *new = stack_log_new(log), *rec;
	u64 hash = make_key(new, key, regs, log);

	new->process = key->task_key ? process_of(key, os_current_task()) : 0;
	rec = store_record(log, new, profile_stack_hash(hash, new->process) >> 32);
	if (rec && is_replayable(rec)) {
		*recent = (struct recent_wait){ key->task_key, rec };
		w->hashes[recent - w->recent] = hash;
	}
	return rec;
}

/* Looks up a wait that differs from the recent one in the process alone. */
static pf_noinline struct wait_record *look_up_sibling(struct wait_cpu *w, u64 task_key,
						       u64 process, struct recent_wait *recent)
{
	u64 hash = profile_stack_hash(w->hashes[recent - w->recent], process);
	const struct wait_record *same = recent->rec;
	struct stack_log *log = log_for(w, false); /* may clear *recent, but not the hash */
	struct wait_record *new = stack_log_new(log), *rec;

	copy_key(new, same);
	new->process = process;
	rec = store_record(log, new, hash >> 32);
	if (rec)
		*recent = (struct recent_wait){ task_key, rec };
	return rec;
}

static pf_always_inline bool same_kernel_part(const struct wait_record *rec, const os_task_t *task,
					      const os_regs_t *regs)
{
	return rec->pcs[0] == os_regs_pc(regs) &&
	       os_stack_matches_here(task, regs, rec->pcs, rec->nr_kernel);
}

static pf_always_inline bool same_user_part(const struct wait_record *rec, const os_task_t *task)
{
	const os_regs_t *regs = os_user_regs(task);
	const u64 *pcs = rec->pcs + rec->nr_kernel;

	if (rec->replayable == PROFILE_STACK_PATH)
		return os_stack_matches_path(regs, pcs, rec->nr_user, rec->truncated);
	return !rec->nr_user || os_stack_matches_user(regs, pcs, rec->nr_user, rec->truncated);
}

static bool matches(const struct wait_record *rec, const struct wait_key *key,
		    const os_task_t *task, const os_regs_t *regs)
{
	return rec->waker == key->waker && rec->name == key->name && rec->addr == key->addr &&
	       (u32)rec->context == key->context && same_kernel_part(rec, task, regs) &&
	       same_user_part(rec, task);
}

/* Returns whether a thread has the name and code of the one whose record this is. */
static bool is_of_program(const struct wait_record *rec, const os_task_t *task)
{
	u64 comm[2];

	if (rec->code_map != os_task_code_map(task))
		return false;
	os_task_comm(task, comm);
	return comm[0] == rec->comm[0] && comm[1] == rec->comm[1];
}

/*
 * The place of a thread's recent records depends on its process and its stack, not on the thread,
 * so a new thread finds the records of those that have waited there before.
 */
static pf_always_inline u64 place_of(os_task_t *task)
{
	const os_regs_t *regs = os_user_regs(task);

	return (u64)os_task_profile(task)->process + (regs ? os_regs_sp(regs) : 0);
}

static pf_always_inline struct recent_wait *
recent_of(struct wait_cpu *w, const struct wait_key *key, os_task_t *task, const os_regs_t *regs)
{
	u64 place = key->task_key ? place_of(task) : 0;
	u64 hash = profile_stack_hash(place + (u64)key->waker,
				      key->context + key->addr + os_regs_sp(regs) % 4096);

	return &w->recent[hash >> (64 - LOG2_RECENT)];
}

/* Returns the record of the running thread or of the interrupt, or NULL if there is no room. */
static pf_noinline struct wait_record *find_record(struct wait_cpu *w, const struct wait_key *key,
						   os_task_t *task, const os_regs_t *regs)
{
	struct recent_wait *recent = recent_of(w, key, task, regs);
	struct wait_record *rec = recent->rec;
	bool same = rec && matches(rec, key, task, regs);
	u64 process;

	if (pf_likely(same && recent->task_key == key->task_key))
		return rec;
	if (!same || !recent->task_key || !key->task_key || !is_of_program(rec, task))
		return look_up(w, key, regs, recent);
	process = process_of(key, task);
	if (rec->process != process)
		return look_up_sibling(w, key->task_key, process, recent);
	recent->task_key = key->task_key;
	return rec;
}

/* Returns a key's context without a phase. regs: of the code that waits, or wakes. */
static pf_always_inline u32 context_of(os_task_t *task, const os_regs_t *regs, u32 kind)
{
	return os_task_syscall(task, regs) | kind << 16;
}

static pf_always_inline void set_thread(struct wait_key *key, os_task_t *task,
					const os_regs_t *regs, u32 kind)
{
	key->task_key = os_task_key(task);
	key->context = context_of(task, regs, kind);
}

/*
 * Returns whether the thread's last records are those of this CPU, which has noticed all resets,
 * and of the program that the thread runs.
 */
static pf_always_inline bool has_last(const struct wait_cpu *w, os_task_t *task)
{
	const struct profile_last_waits *last = &os_task_profile(task)->waits.last;

	return w->store.generation == pf_read_once(waits_generation) && last->id == w->last_id &&
	       last->task_key == os_task_key(task);
}

static pf_always_inline struct wait_record *last_record(os_task_t *task, u32 which)
{
	return os_task_profile(task)->waits.last.recs[which];
}

/* Finds the record, and notes it as the thread's last. */
static pf_always_inline struct wait_record *find_other(struct wait_cpu *w,
						       const struct wait_key *key, os_task_t *task,
						       const os_regs_t *regs, u32 which)
{
	struct profile_waits_task *waits = &os_task_profile(task)->waits;
	struct wait_record *rec = find_record(w, key, task, regs);

	if (waits->ran_on != w) {
		waits->nr_migrations += waits->ran_on != NULL;
		waits->ran_on = w;
	}
	if (!has_last(w, task))
		waits->last = (struct profile_last_waits){ w->last_id,
							   key->task_key,
							   { &waits_no_record, &waits_no_record } };
	waits->last.recs[which] = rec && is_replayable(rec) ? rec : &waits_no_record;
	return rec;
}

/*
 * Now the thread will wake its parent, probably as the last one did that ended. So it begins with
 * the record of that wake-up, if that had the same name.
 */
void waits_end_process(struct profile_task *pt)
{
	const struct wait_cpu *w = os_this_cpu_ptr(&os_local(wait_cpus));
	os_task_t *task = os_task_of(pt);

	os_assert_irqs_off();
	if (w->ended_waker && is_of_program(w->ended_waker, task))
		pt->waits.last = (struct profile_last_waits){
			w->last_id, os_task_key(task), { &waits_no_record, w->ended_waker }
		};
}

/* Returns the record of the running thread, or of the interrupt, that wakes another one. */
static struct wait_record *find_waker(struct wait_cpu *w, os_task_t *task, const os_regs_t *regs)
{
	struct wait_key key = { .context = OS_NO_SYSCALL | WAKER_INTERRUPT << 16 };

	if (os_irq_depth())
		return find_record(w, &key, task, regs);
	set_thread(&key, task, regs, WAKER_THREAD);
	return find_other(w, &key, task, regs, PROFILE_LAST_WAKE);
}

/* Returns whether find_waker() would find the thread's last record. */
static pf_always_inline bool is_last_waker(const os_regs_t *regs)
{
	const struct wait_cpu *w = os_this_cpu_ptr(&os_local(wait_cpus));
	os_task_t *task = os_current_task();
	const struct wait_record *rec;

	if (os_irq_depth() || !has_last(w, task))
		return false;
	rec = last_record(task, PROFILE_LAST_WAKE);
	return (u32)rec->context == context_of(task, regs, WAKER_THREAD) &&
	       same_kernel_part(rec, task, regs) && same_user_part(rec, task);
}

static pf_always_inline void set_waker(os_task_t *thread, const struct wait_cpu *w,
				       struct wait_record *rec)
{
	struct profile_waits_task *waits = &os_task_profile(thread)->waits;

	waits->waker = rec;
	waits->waker_generation = w->store.generation;
	/* Pairs with the acquire in set_times(): who finds it finds the waker. */
	pf_store_release(&waits->woken_cycles, os_woken_cycles(thread));
}

/* Adds a wake-up for which is_last_waker() returned true. */
static pf_always_inline void add_last_waker(os_task_t *thread)
{
	struct wait_cpu *w = os_this_cpu_ptr(&os_local(wait_cpus));
	struct wait_record *rec = last_record(os_current_task(), PROFILE_LAST_WAKE);

	seq_begin(&w->store.seq);
	rec->nr++;
	set_waker(thread, w, rec);
	seq_end(&w->store.seq);
}

static bool has_ended(os_task_t *task)
{
	return os_task_profile(task)->waits.call_phase == PROFILE_EXITED << PROFILE_PHASE_SHIFT;
}

static pf_noinline void woken_by_other(os_task_t *thread, const os_regs_t *regs)
{
	struct wait_cpu *w = os_this_cpu_ptr(&os_local(wait_cpus));
	os_task_t *task = os_current_task();
	struct wait_record *rec = NULL;

	if (begin_record(w))
		rec = find_waker(w, task, regs);
	if (pf_likely(rec)) {
		rec->nr++;
		if (rec->kind == WAKER_THREAD && is_replayable(rec) && has_ended(task))
			w->ended_waker = rec;
	} else {
		w->lost.nr_wakers++;
	}
	set_waker(thread, w, rec);
	seq_end(&w->store.seq);
}

/* The same as delay_wait(): returns the thread, or NULL if waits are off. */
static pf_noinline os_task_t *delay_wake(os_task_t *thread)
{
	report_delay_wake(os_task_profile(thread));
	return pf_read_once(waits_off_time.is_off) ? NULL : thread;
}

pf_noinline void profile_thread_woken(os_task_t *thread)
{
	os_regs_t regs, again;

	if (os_key_on(&profile_delays_key)) {
		thread = delay_wake(thread);
		if (!thread)
			return;
	}
	os_regs_here(&regs);
	if (pf_likely(is_last_waker(&regs))) {
		add_last_waker(thread);
		return;
	}
	os_regs_here(&again); /* so that regs need not be in memory */
	woken_by_other(thread, &again);
}

static pf_always_inline void add_times(struct wait_record *rec, u64 asleep, u64 ready)
{
	rec->nr++;
	rec->asleep_cycles += asleep;
	rec->ready_cycles += ready;
	if (rec->max_cycles < asleep + ready)
		rec->max_cycles = asleep + ready;
}

static void count(struct wait_cpu *w, struct wait_record *rec, u64 asleep, u64 ready)
{
	if (pf_likely(rec)) {
		add_times(rec, asleep, ready);
	} else {
		w->lost.nr++;
		w->lost.cycles += asleep + ready;
	}
}

/*
 * Counts what the running code has just done. Turns interrupts off, because an interrupt that comes
 * now might spin for a lock, too.
 */
static pf_always_inline void count_here(struct wait_key key, u32 kind, u64 cycles)
{
	os_task_t *task = os_current_task();
	struct wait_record *rec = NULL;
	struct wait_cpu *w;
	unsigned long flags;
	os_regs_t regs;

	if (os_key_on(&profile_delays_key) && pf_read_once(waits_off_time.is_off))
		return;
	flags = os_irq_save();
	w = os_this_cpu_ptr(&os_local(wait_cpus));
	os_regs_here(&regs);
	if (!os_irq_depth())
		set_thread(&key, task, &regs, kind);
	if (begin_record(w))
		rec = find_record(w, &key, task, &regs);
	if (rec || kind != TIMER_SET)
		count(w, rec, cycles, 0);
	seq_end(&w->store.seq);
	os_irq_restore(flags);
}

pf_noinline void profile_spun_for_lock(const char *name, u64 start)
{
	struct wait_key key = { .name = name, .context = OS_NO_SYSCALL | WAIT_SPUN << 16 };

	count_here(key, WAIT_SPUN, os_cycles() - start);
}

pf_noinline void profile_note_timer(void)
{
	count_here((struct wait_key){ 0 }, TIMER_SET, 0);
}

static pf_always_inline const struct wait_record *waker_of(const struct wait_cpu *w,
							   const struct profile_waits_task *waits)
{
	return waits->waker_generation == w->store.generation ? waits->waker : NULL;
}

/* Returns the record of the running thread's wait, which has ended. */
static struct wait_record *find_wait(struct wait_cpu *w, os_task_t *task, const os_regs_t *regs)
{
	const struct profile_waits_task *waits = &os_task_profile(task)->waits;
	struct wait_key key = { 0 };

	set_thread(&key, task, regs, waits->woken_cycles ? WAIT_SLEPT : WAIT_PREEMPTED);
	key.context |= waits->call_phase;
	if (waits->woken_cycles) {
		key.name = os_wait_name(task);
		key.addr = os_wait_addr(task);
		key.waker = waker_of(w, waits);
	}
	return find_other(w, &key, task, regs, PROFILE_LAST_WAIT);
}

/* Returns whether find_wait() would find the thread's last record, and its times are in order. */
static pf_always_inline bool is_last_wait(u64 now, const os_regs_t *regs)
{
	const struct wait_cpu *w = os_this_cpu_ptr(&os_local(wait_cpus));
	os_task_t *task = os_current_task();
	const struct profile_waits_task *waits = &os_task_profile(task)->waits;
	u64 start = waits->out_cycles, woken = waits->woken_cycles;
	const struct wait_record *rec;
	u32 context = waits->call_phase;

	if (!has_last(w, task) || start < pf_read_once(waits_since_cycles))
		return false;
	rec = last_record(task, PROFILE_LAST_WAIT);
	if (!woken) {
		context |= WAIT_PREEMPTED << 16;
		if (now < start)
			return false;
	} else if (rec->name != os_wait_name(task) || rec->addr != os_wait_addr(task) ||
		   rec->waker != waker_of(w, waits) || woken < start || now < woken) {
		return false; /* only sleeps have a name, an address and a waker */
	}
	return (u32)rec->context == (context | context_of(task, regs, WAIT_SLEPT)) &&
	       same_kernel_part(rec, task, regs) && same_user_part(rec, task);
}

/*
 * Adds a wait to the sums of its thread. slept_for: the one of what it has slept for; NULL: it was
 * preempted.
 */
static pf_always_inline void add_to_thread(struct profile_waits_task *waits,
					   struct profile_top_wait *slept_for, u64 asleep,
					   u64 ready)
{
	if (slept_for) {
		slept_for->nr++;
		slept_for->cycles += asleep + ready;
		slept_for->ready_cycles += ready;
		waits->longest.cycles += asleep + ready;
	} else {
		waits->nr_preempted++;
	}
	waits->nr_waits++;
	waits->ready_cycles += ready;
}

/* Adds a wait for which is_last_wait() returned true. */
static pf_always_inline void add_last_wait(u64 now)
{
	struct wait_cpu *w = os_this_cpu_ptr(&os_local(wait_cpus));
	os_task_t *task = os_current_task();
	struct profile_waits_task *waits = &os_task_profile(task)->waits;
	struct profile_top_wait *slept_for = NULL;
	u64 start, woken;

	seq_begin(&w->store.seq);
	start = woken = waits->out_cycles;
	if (waits->woken_cycles) {
		woken = waits->woken_cycles;
		slept_for = &waits->longest.top[0]; /* as that is the one of the last sleep */
	}
	add_to_thread(waits, slept_for, woken - start, now - woken);
	add_times(last_record(task, PROFILE_LAST_WAIT), woken - start, now - woken);
	seq_end(&w->store.seq);
}

static pf_noinline void other_wait_ended(u64 now, const os_regs_t *regs)
{
	struct wait_cpu *w = os_this_cpu_ptr(&os_local(wait_cpus));
	os_task_t *task = os_current_task();
	struct profile_task *pt = os_task_profile(task);
	struct profile_top_wait *slept_for = NULL;
	struct wait_record *rec = NULL;
	u64 start, woken;

	if (os_task_idle(task))
		return;
	stack_collect_poll();
	if (begin_record(w))
		rec = find_wait(w, task, regs);
	/* Behind the look at the generation: a wait in a store after a reset begins with it. */
	start = woken = pf_min(pf_max(pt->waits.out_cycles, pf_read_once(waits_since_cycles)), now);
	if (pt->waits.woken_cycles) {
		woken = pf_min(pf_max(pt->waits.woken_cycles, start), now);
		slept_for = waits_slept_for(pt, os_wait_name(task), os_wait_addr(task));
	}
	add_to_thread(&pt->waits, slept_for, woken - start, now - woken);
	count(w, rec, woken - start, now - woken);
	seq_end(&w->store.seq);
}

/*
 * Called once reports delay threads, which an idle CPU is not. Returns now, or 0 if waits are off.
 * So the caller need not keep it.
 */
static pf_noinline u64 delay_wait(u64 now)
{
	if (!os_task_idle(os_current_task()))
		report_delay_switch_in(os_task_profile(os_current_task()), now);
	return pf_read_once(waits_off_time.is_off) ? 0 : now;
}

pf_noinline void profile_wait_ended(u64 now)
{
	os_regs_t regs, again;

	if (os_key_on(&profile_delays_key)) {
		now = delay_wait(now);
		if (!now)
			return;
	}
	os_regs_here(&regs);
	if (pf_likely(is_last_wait(now, &regs))) {
		add_last_wait(now);
		return;
	}
	os_regs_here(&again);
	other_wait_ended(now, &again);
}
