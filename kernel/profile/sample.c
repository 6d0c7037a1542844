// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sample store. Each CPU has a log of records, one for each different sample, and a hash that
 * leads to them; the same sample again adds one to its record. A sample is put together behind the
 * last record, where there is always room for one, and compared with what the hash has; if it is
 * new, it is there already, and the log grows over it.
 *
 * Most samples need none of that: what is known of one without its callers leads to the record that
 * it was last time, and to compare callers with those of a record takes less than to collect them.
 *
 * Only the CPU itself writes, with interrupts off. An NMI that comes meanwhile sees that seq is odd
 * and is dropped. A record stays where it is and, but for its counters, as it is; a reader takes
 * the length of the log first, and finds seq changed if its sums may not add up.
 *
 * A reader holds the samples: it notes each record's number in the record itself and works with
 * that. profile_reset() only moves sample_gate on; each CPU starts again at its next sample, which
 * is dropped while a reader still needs the records.
 */

#include "internal.h"

#define READ_TRIES 100
#define WAIT_TRIES 1000000 /* for one sample to be finished, elsewhere */
#define ALL_BYTES  0xffffffffu
#define GATE_OFF   BIT(0)
#define GATE_STEP  2
#define NO_GATE	   ~0ull /* has no epoch */

#define LOG2_RECENT 12

#define RECORD_BYTES(nr) (sizeof(struct sample_record) + (nr) * sizeof(u64))
#define MAX_RECORD_BYTES RECORD_BYTES(SAMPLE_MAX_DEPTH)

struct sample_cpu {
	u64 seq;
	u64 gate; /* sample_gate when samples simply count; else something different */
	struct sample_books books;
	bool is_stale; /* the log is an older epoch's, not emptied yet, or there is none */
	u64 epoch;     /* of the books */
	u64 *hash;     /* high half: of the record's hash; low half: its offset + 1, 0: free */
	u32 hash_mask;
	char *log; /* NULL: there was no memory */
	u32 log_bytes;
	u32 log_used; /* published with release */

	/* The reader's. */
	struct sample_books held;
	u32 held_bytes; /* of the log: it may not be emptied unless this is 0 */

	/* By recent_hash(): plain ones of the log, or nobody. */
	struct sample_record *recent[BIT(LOG2_RECENT)];
};

/* What no sample is like. */
static struct sample_record nobody = { .who = ~0ull };

static DEFINE_PER_CPU(struct sample_cpu, sample_cpus) = { .gate = NO_GATE };
static u64 sample_gate;	 /* 0: not ready; else the epoch, from 2 on in steps of 2; with GATE_OFF */
static u64 start_cycles; /* of the epoch */
static u32 nr_holds;	 /* the one reader's */
static u64 log_bytes = SAMPLE_DEFAULT_LOG;
static u64 sp_mask; /* all ones with call chains, else 0 */
static u32 max_depth = IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) ? SAMPLE_DEFAULT_DEPTH : 1;

static u32 nr_pcs(const struct sample_record *rec)
{
	return rec->nr_kernel + rec->nr_user;
}

static u32 record_bytes(const struct sample_record *rec)
{
	return RECORD_BYTES(nr_pcs(rec));
}

static int set_bytes(const char *value)
{
	u64 bytes;

	if (parse_u64(value, &bytes) || bytes < SAMPLE_MIN_LOG || bytes > SAMPLE_MAX_LOG)
		return -EINVAL;
	log_bytes = bytes;
	return 0;
}
BOOT_PARAM(profile_samples, "profile.samples", "<bytes for each CPU>", set_bytes);

#ifdef CONFIG_PROFILE_CALLCHAIN
static int set_depth(const char *value)
{
	u64 depth;

	if (parse_u64(value, &depth) || depth < 1 || depth > SAMPLE_MAX_DEPTH)
		return -EINVAL;
	max_depth = depth;
	return 0;
}
BOOT_PARAM(profile_depth, "profile.depth", "<functions>", set_depth);
#endif

static __always_inline bool with_chains(void)
{
	return IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) && sp_mask;
}

static u32 log2_slots(u64 bytes)
{
	u32 log2 = 0;

	while ((u64)SAMPLE_BYTES_A_SLOT << (log2 + 1) <= bytes)
		log2++;
	return log2;
}

/* The log's size is the last thing set: 0 stands for no memory. */
static bool alloc_cpu(struct sample_cpu *s, u64 bytes)
{
	u32 log2 = log2_slots(bytes);
	u64 *hash = os_zalloc(sizeof(*hash) << log2);
	char *log = hash ? os_alloc(bytes) : NULL;

	if (!log) {
		os_free(hash);
		return false;
	}
	s->hash = hash;
	s->hash_mask = (1u << log2) - 1;
	s->log = log;
	s->log_bytes = bytes - MAX_RECORD_BYTES; /* there is room for one more, always */
	return true;
}

/* A sixteenth of the memory for all CPUs together, if not as much as asked for. */
static u64 affordable_bytes(void)
{
	u64 bytes = log_bytes;
	unsigned int cpu, nr = 0;

	for_each_possible_cpu(cpu)
		nr++;
	while (bytes / 2 >= SAMPLE_MIN_LOG && bytes * nr > os_memory_bytes() / 16)
		bytes /= 2;
	return bytes;
}

void sample_init(void)
{
	u64 bytes = affordable_bytes();
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct sample_cpu *s = &per_cpu(sample_cpus, cpu);

		while (!alloc_cpu(s, bytes) && bytes / 2 >= SAMPLE_MIN_LOG)
			bytes /= 2;
		if (!s->log)
			printk("profile: no memory for samples of CPU %u\n", cpu);
	}
	if (bytes != log_bytes)
		printk("profile: memory is short: %lu bytes, not %lu, for samples of a CPU\n",
		       bytes, log_bytes);
	if (IS_ENABLED(CONFIG_PROFILE_CALLCHAIN) && max_depth > 1) {
		os_stack_walk_init();
		sp_mask = ~0ull;
	}
	start_cycles = os_cycles();
	/* Who sees this sees the logs: pairs with the barrier in pass_gate(). */
	smp_store_release(&sample_gate, READ_ONCE(sample_gate) + GATE_STEP);
}

/* Any CPU may be here, too. */
static void move_gate(u64 step, u64 clear, u64 set)
{
	u64 gate = READ_ONCE(sample_gate), seen;

	for (;; gate = seen) {
		if (step && gate < GATE_STEP)
			return; /* there is nothing to reset yet */
		seen = cmpxchg(&sample_gate, gate, ((gate + step) & ~clear) | set);
		if (seen == gate)
			return;
	}
}

void sample_switch(bool on)
{
	move_gate(0, GATE_OFF, on ? 0 : GATE_OFF);
}

void sample_reset(void)
{
	WRITE_ONCE(start_cycles, os_cycles());
	move_gate(GATE_STEP, 0, 0);
}

static u64 current_epoch(void)
{
	return READ_ONCE(sample_gate) & ~GATE_OFF;
}

/* What the timer or the NMI hit in the kernel; its own interrupt does not count. */
static __always_inline u32 kernel_class(u32 in_nmi, const struct task *task)
{
	if (os_irq_depth() + in_nmi > 1)
		return HEAT_IRQ;
	return os_task_idle(task) ? HEAT_IDLE : HEAT_KERNEL;
}

void profile_task_changed(struct task *task)
{
	static u64 last_who;
	struct process *proc = os_task_process(task);
	u64 who = __atomic_add_fetch(&last_who, 1 << 8, __ATOMIC_RELAXED);

	WRITE_ONCE(os_task_profile(task)->who, who | (proc ? os_process_program(proc) : 0));
}

/* Behind the last record, where there is always room for one. */
static __always_inline struct sample_record *next_record(struct sample_cpu *s)
{
	return (struct sample_record *)(s->log + s->log_used);
}

static __always_inline void finish(struct sample_cpu *s, u64 start_cycles)
{
	s->books.self_cycles += os_cycles() - start_cycles;
	/* Pairs with the acquire in hold_once(). */
	smp_store_release(&s->seq, s->seq + 1);
}

static __always_inline void count(struct sample_cpu *s, struct sample_record *rec, u64 start_cycles,
				  u64 late_cycles)
{
	rec->nr++;
	rec->late_cycles += late_cycles;
	finish(s, start_cycles);
}

/* The record behind the last one, its key complete, becomes a part of the log, if it has room. */
static bool append(struct sample_cpu *s, u64 *slot, u32 tag, u64 late_cycles)
{
	struct sample_record *rec = next_record(s);
	const struct task *task = os_current_task();
	u32 bytes = record_bytes(rec);

	if (s->log_bytes - s->log_used < bytes) {
		s->books.nr_dropped[DROP_LOG_FULL]++;
		return false;
	}
	rec->nr = 1;
	rec->late_cycles = late_cycles;
	rec->nr_held = 0;
	rec->tid = os_task_tid(task);
	rec->pid = os_task_pid(task);
	os_task_comm(task, rec->comm);
	*slot = (u64)tag << 32 | (s->log_used + 1);
	/* Pairs with the acquire in hold_once(). */
	smp_store_release(&s->log_used, s->log_used + bytes);
	return true;
}

/* As many pcs as new has: if rec has not, their numbers are different, and stand before. */
static bool is_same(const struct sample_record *rec, const struct sample_record *new)
{
	return os_same_words(&rec->who, &new->who, 2 + nr_pcs(new));
}

/* What is behind the last record counts: with a record like it, which it may become. NULL: not. */
static struct sample_record *store(struct sample_cpu *s, u32 tag, u64 late_cycles)
{
	struct sample_record *new = next_record(s);

	for (u32 probe = 0; probe < SAMPLE_MAX_PROBES; probe++) {
		u64 *slot = &s->hash[(tag + probe) & s->hash_mask];
		struct sample_record *rec = (struct sample_record *)(s->log + (u32)*slot - 1);

		if (!*slot)
			return append(s, slot, tag, late_cycles) ? new : NULL;
		if (*slot >> 32 == tag && is_same(rec, new)) {
			rec->nr++;
			rec->late_cycles += late_cycles;
			return rec;
		}
	}
	s->books.nr_dropped[DROP_HASH_FULL]++;
	return NULL;
}

/* Of what is known without a walk. */
static __always_inline u64 recent_hash(u64 who, u32 what, u64 pc, u64 sp)
{
	return stack_hash(stack_hash(pc, who), what + sp) >> (64 - LOG2_RECENT);
}

/* A sample that is not its recent record's. what: without counts. */
static noinline void take_other(struct sample_cpu *s, const struct pt_regs *regs, u32 what,
				u64 start_cycles, u64 late_cycles)
{
	struct sample_record *new = next_record(s), *rec;
	u64 who = os_task_who(os_current_task()), pc = os_regs_pc(regs);
	struct stack_walk walk;

	if (with_chains()) {
		walk = os_stack_walk(regs, new->pcs, max_depth);
	} else {
		new->pcs[0] = pc;
		walk.hash = pc;
		walk.counts = os_regs_user(regs) ? STACK_COUNTS(0, 1, STACK_WHOLE, STACK_PLAIN) :
						   STACK_COUNTS(1, 0, STACK_WHOLE, STACK_PLAIN);
	}
	new->who = who;
	new->what = what | walk.counts << 32;
	/* A product's upper half is the better mixed one. */
	rec = store(s, stack_hash(stack_hash(walk.hash, who), new->what) >> 32, late_cycles);
	if (rec && rec->plain)
		s->recent[recent_hash(who, what, pc, os_regs_sp(regs) & sp_mask)] = rec;
	finish(s, start_cycles);
}

/* Whether the user's part is that of rec; regs: the user's. */
static __always_inline bool is_user_part(const struct sample_record *rec,
					 const struct pt_regs *regs)
{
	return os_stack_matches_user(regs, rec->pcs + rec->nr_kernel, rec->nr_user) == rec->cut;
}

/* Its first caller is found by other means. */
static noinline void take_beside(struct sample_cpu *s, const struct pt_regs *regs, u32 what,
				 u64 start_cycles, u64 late_cycles, struct sample_record *rec)
{
	if (!os_stack_matches_beside(regs, rec->pcs, rec->nr_kernel, rec->plain) ||
	    (rec->nr_user && !is_user_part(rec, os_user_regs(os_current_task()))))
		return take_other(s, regs, what, start_cycles, late_cycles);
	count(s, rec, start_cycles, late_cycles);
}

static __always_inline void take(struct sample_cpu *s, const struct pt_regs *regs, u64 start_cycles,
				 u64 late_cycles, u32 in_nmi)
{
	const struct task *task = os_current_task();
	u64 who = os_task_who(task), class = HEAT_USER, pc = os_regs_pc(regs);
	const struct pt_regs *user_regs = regs;
	struct sample_record *rec;
	u32 what = OS_NO_SYSCALL;

	if (!os_regs_user(regs)) {
		class = kernel_class(in_nmi, task);
		what = os_task_syscall(task, regs);
	}
	/* Or both ways would be compiled to their ends, with more registers. */
	asm volatile("" : "+r"(class) : : "memory");
	s->books.nr_attempts++;
	s->books.nr_class[class]++;
	what |= class << 16 | in_nmi * SAMPLE_IN_NMI << 24 |
		!os_regs_irqs_off(regs) * SAMPLE_IRQS_ON << 24;
	rec = s->recent[recent_hash(who, what, pc, os_regs_sp(regs) & sp_mask)];
	if (unlikely(rec->who != who || (u32)rec->what != what || rec->pcs[0] != pc))
		return take_other(s, regs, what, start_cycles, late_cycles);
	if (with_chains()) {
		if (unlikely(rec->plain != STACK_PLAIN))
			return take_beside(s, regs, what, start_cycles, late_cycles, rec);
		if (rec->nr_kernel) {
			if (!os_stack_matches_kernel(regs, rec->pcs, rec->nr_kernel))
				return take_other(s, regs, what, start_cycles, late_cycles);
			user_regs = os_user_regs(task);
		}
		if (rec->nr_user && !is_user_part(rec, user_regs))
			return take_other(s, regs, what, start_cycles, late_cycles);
	}
	count(s, rec, start_cycles, late_cycles);
}

/*
 * A sample that does not simply count: before sample_init(), while switched off, or as the first
 * one behind a reset. True when it counts now as any other; false when that has been done.
 */
static bool pass_gate(struct sample_cpu *s, const struct pt_regs *regs, u32 in_nmi)
{
	u64 gate = READ_ONCE(sample_gate);

	if (gate < GATE_STEP)
		return false;
	if (s->epoch != (gate & ~GATE_OFF)) {
		memset(&s->books, 0, sizeof(s->books));
		s->is_stale = true;
		WRITE_ONCE(s->epoch, gate & ~GATE_OFF);
	}
	if (gate & GATE_OFF) {
		s->books.nr_attempts++;
		s->books.nr_dropped[DROP_OFF]++;
		return false;
	}
	/* seq is odd before the look at held_bytes: pairs with the one in hold_once(). */
	smp_mb();
	if (!s->log || READ_ONCE(s->held_bytes)) {
		s->books.nr_attempts++;
		s->books.nr_class[os_regs_user(regs) ? HEAT_USER :
						       kernel_class(in_nmi, os_current_task())]++;
		s->books.nr_dropped[s->log ? DROP_HELD : DROP_NO_MEMORY]++;
		return false;
	}
	memset(s->hash, 0, (s->hash_mask + 1ul) * sizeof(*s->hash));
	for (u32 i = 0; i < ARRAY_SIZE(s->recent); i++)
		s->recent[i] = &nobody;
	WRITE_ONCE(s->log_used, 0);
	s->is_stale = false;
	s->gate = gate;
	return true;
}

static noinline void take_slowly(struct sample_cpu *s, const struct pt_regs *regs, u64 start_cycles,
				 u64 late_cycles, u32 in_nmi)
{
	if (pass_gate(s, regs, in_nmi))
		take(s, regs, start_cycles, late_cycles, in_nmi);
	else
		finish(s, start_cycles);
}

/* What is out of the ordinary is done in the last place, so that no register has to be saved. */
void sample_take(const struct pt_regs *regs, u64 start_cycles, u64 late_cycles, u32 in_nmi)
{
	struct sample_cpu *s = this_cpu_ptr(&sample_cpus);
	u64 seq = s->seq;

	asm("" : "+r"(s)); /* or the compiler would work it out again and again */
	if (unlikely(seq & 1)) {
		/* One instruction: the other writer of this counter may be at it. */
		this_cpu_inc(sample_cpus.books.nr_dropped[DROP_NESTED]);
		return;
	}
	WRITE_ONCE(s->seq, seq + 1);
	barrier();
	if (likely(s->gate == READ_ONCE(sample_gate)))
		take(s, regs, start_cycles, late_cycles, in_nmi);
	else
		take_slowly(s, regs, start_cycles, late_cycles, in_nmi);
}

/* One look at a CPU: every record's number, then the counters. False: it may be torn. */
static bool hold_once(struct sample_cpu *s)
{
	u64 nr_stored = 0, seq;
	u32 nr_records = 0;
	bool empty;

	/* The log is not emptied from here on: pairs with the one in pass_gate(). */
	WRITE_ONCE(s->held_bytes, ALL_BYTES);
	smp_mb();
	/* A CPU that was stopped half way (panic) will not move on. */
	for (u32 i = 0; (READ_ONCE(s->seq) & 1) && i < WAIT_TRIES && !os_panicking(); i++)
		cpu_relax();
	/* Pairs with the release in finish(). */
	seq = smp_load_acquire(&s->seq);
	empty = s->is_stale || READ_ONCE(s->epoch) != current_epoch();
	/* Pairs with the release in append(). */
	WRITE_ONCE(s->held_bytes, empty ? 0 : smp_load_acquire(&s->log_used));
	for (u32 at = 0; at < s->held_bytes; nr_records++) {
		struct sample_record *rec = (struct sample_record *)(s->log + at);

		rec->nr_held = READ_ONCE(rec->nr);
		nr_stored += rec->nr_held;
		at += record_bytes(rec);
	}
	barrier(); /* so that what comes meanwhile makes too many attempts, not too few */
	s->held = s->books;
	if (READ_ONCE(s->epoch) != current_epoch())
		memset(&s->held, 0, sizeof(s->held));
	s->held.nr_stored = nr_stored;
	s->held.nr_records = nr_records;
	smp_mb(); /* the copy before the second look at seq */
	return !(seq & 1) && READ_ONCE(s->seq) == seq;
}

static void hold_cpu(struct sample_cpu *s)
{
	struct sample_books *held = &s->held;
	/* First, so that a sample in between does not look missed. */
	u64 elapsed = os_cycles() - READ_ONCE(start_cycles), nr_known;

	for (u32 i = 0; i < READ_TRIES; i++) {
		if (hold_once(s) || os_panicking())
			break;
	}
	held->log_bytes = s->held_bytes;
	held->elapsed_cycles = elapsed;
	held->nr_attempts += held->nr_dropped[DROP_NESTED];
	nr_known = held->nr_stored;
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
		nr_known += held->nr_dropped[i];
	held->nr_unread = held->nr_attempts - nr_known;
}

void samples_hold(void)
{
	unsigned int cpu;
	u64 epoch;

	/* A dying kernel may have been in the middle of it. */
	if (nr_holds++ && !os_panicking())
		return;
	/* Again if there was a reset meanwhile. */
	do {
		epoch = current_epoch();
		for_each_possible_cpu(cpu)
			hold_cpu(&per_cpu(sample_cpus, cpu));
	} while (epoch != current_epoch());
}

void samples_release(void)
{
	unsigned int cpu;

	if (--nr_holds)
		return;
	/* What was read has been read. */
	for_each_possible_cpu(cpu)
		smp_store_release(&per_cpu(sample_cpus, cpu).held_bytes, 0);
}

const struct sample_books *samples_books(unsigned int cpu)
{
	return &per_cpu(sample_cpus, cpu).held;
}

const struct sample_record *samples_next(unsigned int cpu, const struct sample_record *rec)
{
	const struct sample_cpu *s = &per_cpu(sample_cpus, cpu);
	const char *next = rec ? (const char *)rec + record_bytes(rec) : s->log;

	if (!s->held_bytes || next == s->log + s->held_bytes)
		return NULL;
	return (const struct sample_record *)next;
}

/*
 * What stands behind the NUL is left over from a longer name; a program calls itself what it likes.
 */
void sample_comm(const struct sample_record *rec, char comm[SAMPLE_COMM_BYTES])
{
	const char *from = (const char *)rec->comm;

	memset(comm, 0, SAMPLE_COMM_BYTES);
	for (u32 i = 0; i < sizeof(rec->comm) && from[i]; i++)
		comm[i] = from[i] > ' ' && from[i] <= '~' && from[i] != ';' ? from[i] : '?';
}
