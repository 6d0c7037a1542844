/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STACK_STORE_H
#define PROFILE_STACK_STORE_H

/*
 * A per-CPU store of records that end in a call chain; samples and waits have one each. Records are
 * in a log, one for each different key, and a hash table leads to them. A new record is built
 * behind the last one, where there is always room for one, and looked up by its key. If there is no
 * record with this key, the log grows to include the new one. A record never moves within its log.
 *
 * Only the CPU itself writes to its log, with interrupts off (seq.h). No event
 * allocates, locks or waits. A look-up takes at most STACK_STORE_PROBES steps.
 *
 * A log that is half full is replaced by an empty one. Then a worker thread copies its records to
 * the CPU's archive, where those of ended processes become one for each program (stack_collect.c):
 *
 *	CPU --> logs[0] <-- switch --> logs[1] --> worker --> archive
 *
 * A store of a CPU is thus its archive, the log that the worker has not copied yet, and the log
 * that the CPU writes to. Readers on other CPUs pin all of them: then logs are neither emptied nor
 * switched, the archive stays, and only the counters of pinned records change.
 */

#include "os_stacks.h"
#include "seq.h"
#include "util.h"

#define STACK_STORE_BYTES_A_SLOT 128 /* of a log for each slot (8 bytes) of its hash table */
#define STACK_STORE_PROBES	 64

struct stack_log {
	u64 generation; /* of all its records; a reset begins a new generation */
	u64 *hash;	/* slots: high half the record's hash, low half its offset + 1; 0: free */
	char *records;	/* NULL: there is no memory */
	u32 hash_mask;
	u32 bytes; /* room for records */
	u32 used;  /* published with release */
	u32 nr_records;
	u32 nr_switches; /* of an archive: how many switches of its store it includes */
};

/* A part of the pinned records, one after the other. */
struct stack_part {
	const char *records;
	u32 bytes;
};

#define STACK_PARTS 3 /* the archive, the log before the last switch, and the present log */

struct stack_store {
	u64 seq;	       /* of the CPU's changes: see seq.h */
	struct stack_log *log; /* the one that the CPU writes to */
	struct stack_log logs[2];
	u32 nr_switches;	   /* published with release; its parity is that of `log` */
	u32 may_switch;		   /* the worker allows this switch; the first one is 1 */
	struct stack_log *archive; /* the worker's, published with release; NULL: none */
	u32 level;		   /* the worker's: see stack_collect.c */
	bool is_replacing;	   /* the worker is replacing the archive */
	u64 generation;		   /* for which the CPU has emptied it last */
	bool is_pinned;
	u32 nr_pins; /* how often it was pinned */
	struct stack_part parts[STACK_PARTS];
};

/*
 * Describes the records in the stores of one profiler, for the worker. It copies each record and
 * calls fold() on the copy. fold() may shorten the record, and leaves its counts as they are;
 * stack_collect.c explains the levels. The key of a folded record is from key_offset to its end.
 * The worker joins records with equal keys by add().
 */
struct stack_kind {
	const char *name; /* plural */
	struct stack_store *(*store)(unsigned int cpu);
	u32 max_record_bytes;
	u32 key_offset; /* of the key of a folded record */
	u32 (*record_bytes)(const void *rec);
	void (*fold)(void *rec, u32 level);
	void (*add)(void *to, const void *from);
	const u64 *newest; /* the newest generation, which grows with each reset; 0: not ready */
	/*
	 * Called for each CPU, whose store has been pinned if it has records: calls
	 * stack_store_pin_records() then. NULL: stack_pin() does.
	 */
	void (*read)(unsigned int cpu, bool has_records);

	struct stack_log *spare; /* for the next archive */
	struct stack_kind *next;
	/* There is one reader at a time, which may pin again what it has pinned: */
	u32 nr_pins;
	u64 nr_reads; /* how often it has pinned the stores */
	u64 generation;
};

/*
 * Allocates the first log of a store, of *bytes. If there is no memory, tries half as much and so
 * on, down to min_bytes. Sets *bytes to the size, or leaves records NULL.
 */
void stack_store_init(struct stack_store *s, u64 *bytes, u64 min_bytes, u64 max_record_bytes);

/* Does the same for one log, whose size is *bytes. Returns whether there was memory. */
bool stack_log_init(struct stack_log *log, u64 bytes, u64 max_record_bytes);

/*
 * Returns bytes, halved until the stores of all CPUs, with logs of this size, take at most 1/share
 * of the machine's memory, but not below min_bytes.
 */
u64 stack_store_affordable(u64 bytes, u64 min_bytes, u32 share);

#define STACK_FIRST_GENERATION 1

/*
 * Allocates the stores of all CPUs, with logs of at most this size, which together take at most
 * 1/64 of the machine's memory, and has the worker collect them. They are empty, and of the first
 * generation. Process context.
 */
void stack_kind_init(struct stack_kind *kind, u64 bytes, u64 min_bytes);

/* Pins the store. A CPU in the middle of a change notices when it next empties or switches. */
void stack_store_pin(struct stack_store *s);
/*
 * Reduces the pin to the records of this generation that are in the store now. Returns their total
 * length.
 */
u32 stack_store_pin_records(struct stack_store *s, u64 generation);
void stack_store_unpin(struct stack_store *s);

/*
 * Pin the stores of all CPUs, and unpin them. In between, the reader sees the records of one
 * generation. One reader at a time; an inner one sees the same as the outer one. Any context but
 * NMI.
 */
void stack_pin(struct stack_kind *kind);
void stack_unpin(struct stack_kind *kind);

/*
 * stack_collect.c: the worker. stack_collect_start() adds a profiler's stores to its work.
 * stack_collect() does it at once. Process context.
 */
void stack_collect_start(struct stack_kind *kind);
void stack_collect(void);
void stack_collect_wake(void);
/* A CPU wants its log to be switched, or its old log to be copied. */
extern bool stack_collect_wanted;

/* Wakes the worker if it has work. Called where that is allowed: any context but NMI. */
static pf_always_inline void stack_collect_poll(void)
{
	if (pf_unlikely(pf_read_once(stack_collect_wanted)))
		stack_collect_wake();
}

/* Ticks of a CPU, for selftest/. */
#ifdef CONFIG_PROFILE_SELFTEST
OS_DECLARE_PER_CPU(u64, stack_nr_ticks);
#define stack_count_tick() os_this_cpu_inc(os_local(stack_nr_ticks))
#else
#define stack_count_tick() ((void)0)
#endif

/*
 * The levels of stack_collect.c, and their meaning for a record: at STACK_LEVEL_OTHERS programs
 * lose their names, at STACK_LEVEL_LIVE processes that still run are folded, too, and at
 * STACK_LEVEL_LAST so few different records are left that they always have room.
 */
#define STACK_LEVEL_OTHERS 15
#define STACK_LEVEL_LIVE   16
#define STACK_LEVEL_LAST   17

/* Returns the weight below which a record loses its call chain at this level. */
u64 stack_level_weight(u32 level, bool ended);

/*
 * The numbers of processes in records: the number of a process is never another one's, and has the
 * pid in its low bits.
 */
#define STACK_PID_BITS	    24
#define STACK_PROCESS_ENDED (~0ull << STACK_PID_BITS) /* any that has ended */

#ifdef CONFIG_PROFILE_HEATMAP
static inline u64 stack_number_of(u64 key_floor, u32 pid)
{
	return key_floor >> 8 << STACK_PID_BITS | pid;
}

static inline u64 stack_process_number(os_process_t *proc)
{
	return stack_number_of(os_process_profile(proc)->samples.key_floor, os_process_pid(proc));
}

static inline u32 stack_process_pid(u64 process_number)
{
	return process_number & (PF_BIT(STACK_PID_BITS) - 1);
}

static inline bool stack_process_has_ended(u64 process_number)
{
	u32 pid = stack_process_pid(process_number);

	return process_number == STACK_PROCESS_ENDED ||
	       process_number != stack_number_of(os_live_key_floor(pid), pid);
}
#endif

/* Makes a log empty. */
static inline void stack_log_clear(struct stack_log *log, u64 generation)
{
	memset(log->hash, 0, (log->hash_mask + 1ul) * sizeof(*log->hash));
	pf_write_once(log->used, 0);
	log->nr_records = 0;
	pf_write_once(log->generation, generation);
}

/*
 * Empties the log, and begins a generation. Returns false if a reader has pinned it, or if there is
 * none.
 */
static inline bool stack_store_clear(struct stack_store *s, u64 generation)
{
	/*
	 * Orders seq before the read of is_pinned. Pairs with the barrier in stack_store_pin():
	 * either this CPU sees the pin, or the reader sees that seq is odd and waits.
	 */
	pf_mb();
	if (!s->log || pf_read_once(s->is_pinned))
		return false;
	stack_log_clear(s->log, generation);
	return true;
}

/*
 * Switches to the other log, if it is empty. Called by the CPU in the middle of a change, when its
 * log is half full. Returns false if a reader has pinned the store, or the worker has not finished.
 */
static inline bool stack_store_switch(struct stack_store *s)
{
	u32 nr = s->nr_switches + 1;
	struct stack_log *next = &s->logs[nr & 1];

	pf_write_once(stack_collect_wanted, true);
	/* Pairs with the release in stack_collect.c: the other log is empty. */
	if (pf_load_acquire(&s->may_switch) != nr)
		return false;
	pf_mb(); /* as in stack_store_clear() */
	if (pf_read_once(s->is_pinned))
		return false;
	next->generation = s->log->generation;
	s->log = next;
	/* The last change, so a panic finds either the old state or the new one. */
	pf_store_release(&s->nr_switches, nr);
	return true;
}

/* Returns the place behind the last record. */
static pf_always_inline void *stack_log_new(struct stack_log *log)
{
	return log->records + log->used;
}

/* Returns the record that a slot of the hash leads to. */
static pf_always_inline void *stack_log_record(const struct stack_log *log, const u64 *slot)
{
	return log->records + (u32)*slot - 1;
}

/*
 * Returns the slot of the record with the same key as the new one: nr_words from key_offset on,
 * with the hash tag. If there is no such record, returns a free slot for it, whose content is 0, or
 * NULL if STACK_STORE_PROBES slots are taken.
 */
static pf_always_inline u64 *stack_log_find(const struct stack_log *log, const void *new, u32 tag,
					    u32 key_offset, u32 nr_words)
{
	const u64 *key = (const u64 *)((const char *)new + key_offset);

	for (u32 probe = 0; probe < STACK_STORE_PROBES; probe++) {
		u64 *slot = &log->hash[(tag + probe) & log->hash_mask];
		const char *rec = stack_log_record(log, slot);

		if (!*slot || (*slot >> 32 == tag &&
			       os_same_words((const u64 *)(rec + key_offset), key, nr_words)))
			return slot;
	}
	return NULL;
}

static pf_always_inline bool stack_log_has_room(const struct stack_log *log, u32 bytes)
{
	os_assert(log->used <= log->bytes);
	return log->bytes - log->used >= bytes;
}

static pf_always_inline bool stack_log_is_half_full(const struct stack_log *log)
{
	return log->used > log->bytes / 2 || log->nr_records > log->hash_mask / 2;
}

/* Adds the new record, which is complete and has room, to the log. */
static pf_always_inline void stack_log_add(struct stack_log *log, u64 *slot, u32 tag, u32 bytes)
{
	*slot = (u64)tag << 32 | (log->used + 1);
	log->nr_records++;
	/* Pairs with the acquire in stack_store_pin_records(). */
	pf_store_release(&log->used, log->used + bytes);
}

/* Loops over the pinned records of a store. bytes_of(rec) is the length of one. */
#define stack_store_for_each(s, rec, bytes_of)                                              \
	for (const struct stack_part *_part = (s)->parts; _part < (s)->parts + STACK_PARTS; \
	     _part++)                                                                       \
		if (!_part->bytes) {                                                        \
		} else                                                                      \
			for (const char *_end = ((rec) = (void *)_part->records,            \
						_part->records + _part->bytes);             \
			     (const char *)(rec) < _end;                                    \
			     (rec) = (void *)((char *)(rec) + bytes_of(rec)))

/*
 * Returns the pinned record after rec, which is rec_bytes long, or the first one if rec is NULL.
 * Returns NULL after the last one.
 */
static inline const void *stack_store_next(const struct stack_store *s, const void *rec,
					   u32 rec_bytes)
{
	const char *next = rec ? (const char *)rec + rec_bytes : NULL;

	for (const struct stack_part *part = s->parts; part < s->parts + STACK_PARTS; part++) {
		if (!part->bytes)
			continue;
		if (!next)
			return part->records; /* the first one of this part */
		if (next > part->records && next < part->records + part->bytes)
			return next;
		if (next == part->records + part->bytes)
			next = NULL;
	}
	return NULL;
}

/* The same, of the store of a CPU, which stack_pin() has pinned. */
const void *stack_kind_next(const struct stack_kind *kind, unsigned int cpu, const void *rec);

#endif
