/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STACK_STORE_H
#define PROFILE_STACK_STORE_H

/*
 * A per-CPU store of records that end in a call chain; samples and waits have one each. Records are
 * in a log, one for each different key, and a hash table leads to them. A new record is built
 * behind the last one, where there is always room for one, and looked up by its key. If there is no
 * record with this key, the log grows to include the new one. A record never moves.
 *
 * Only the CPU itself writes to its store, with interrupts off; seq is odd meanwhile. Readers on
 * other CPUs pin the log: then it is not emptied, and only the counters of pinned records change.
 * No event allocates, locks or waits. A look-up takes at most STACK_STORE_PROBES steps.
 */

#include "util.h"

#define STACK_STORE_BYTES_A_SLOT 128 /* of the log for each slot (8 bytes) of the hash table */
#define STACK_STORE_PROBES	 64

struct stack_store {
	u64 seq;   /* odd while the CPU changes its store */
	u64 *hash; /* slots: high half the record's hash, low half its offset + 1; 0: free */
	u32 hash_mask;
	char *log; /* NULL: there was no memory */
	u32 log_bytes;
	u32 log_used;	  /* published with release */
	u32 pinned_bytes; /* how much of the log is pinned; 0: the CPU may empty it */
};

/*
 * Allocates a store of *bytes. If there is no memory, tries half as much and so on, down to
 * min_bytes. Sets *bytes to the size, or leaves log NULL. max_record_bytes is the longest record.
 */
void stack_store_init(struct stack_store *s, u64 *bytes, u64 min_bytes, u64 max_record_bytes);

/*
 * Returns bytes, halved until the stores of all CPUs take at most 1/share of the machine's memory,
 * but not below min_bytes.
 */
u64 stack_store_affordable(u64 bytes, u64 min_bytes, u32 share);

/* Pins the whole log. A CPU in the middle of a change notices when it next empties its log. */
void stack_store_pin(struct stack_store *s);
/* Reduces the pin to the records that are in the log now. Returns their total length. */
u32 stack_store_pin_records(struct stack_store *s);
void stack_store_unpin(struct stack_store *s);

/*
 * Waits until the CPU has finished a change. Not in a panic, which may have stopped the CPU there.
 */
void stack_store_wait(const struct stack_store *s);

/* Begins a change. Interrupts are off. */
static pf_always_inline void stack_store_begin(struct stack_store *s)
{
	os_assert(!(s->seq & 1));
	pf_write_once(s->seq, s->seq + 1);
	pf_barrier();
}

static pf_always_inline void stack_store_end(struct stack_store *s)
{
	os_assert(s->seq & 1);
	/* Pairs with the acquires in stack_store_wait() and in readers of counters. */
	pf_store_release(&s->seq, s->seq + 1);
}

/* Empties the log. Returns false if a reader has pinned it, or if there is none. */
static inline bool stack_store_clear(struct stack_store *s)
{
	/*
	 * Orders seq before the read of pinned_bytes. Pairs with the barrier in stack_store_pin():
	 * either this CPU sees the pin, or the reader sees that seq is odd and waits.
	 */
	pf_mb();
	if (!s->log || pf_read_once(s->pinned_bytes))
		return false;
	memset(s->hash, 0, (s->hash_mask + 1ul) * sizeof(*s->hash));
	pf_write_once(s->log_used, 0);
	return true;
}

/* Returns the place behind the last record. */
static pf_always_inline void *stack_store_new(struct stack_store *s)
{
	return s->log + s->log_used;
}

/* Returns the record that a slot of the hash leads to. */
static pf_always_inline void *stack_store_record(const struct stack_store *s, const u64 *slot)
{
	return s->log + (u32)*slot - 1;
}

/*
 * Returns the slot of the record with the same key as the new one: nr_words from key_offset on,
 * with the hash tag. If there is no such record, returns a free slot for it, whose content is 0, or
 * NULL if STACK_STORE_PROBES slots are taken.
 */
static pf_always_inline u64 *stack_store_find(const struct stack_store *s, const void *new, u32 tag,
					      u32 key_offset, u32 nr_words)
{
	const u64 *key = (const u64 *)((const char *)new + key_offset);

	for (u32 probe = 0; probe < STACK_STORE_PROBES; probe++) {
		u64 *slot = &s->hash[(tag + probe) & s->hash_mask];
		const char *rec = stack_store_record(s, slot);

		if (!*slot || (*slot >> 32 == tag &&
			       os_same_words((const u64 *)(rec + key_offset), key, nr_words)))
			return slot;
	}
	return NULL;
}

static pf_always_inline bool stack_store_has_room(const struct stack_store *s, u32 bytes)
{
	os_assert(s->log_used <= s->log_bytes);
	return s->log_bytes - s->log_used >= bytes;
}

/* Adds the new record, which is complete and has room, to the log. */
static pf_always_inline void stack_store_add(struct stack_store *s, u64 *slot, u32 tag, u32 bytes)
{
	*slot = (u64)tag << 32 | (s->log_used + 1);
	/* Pairs with the acquire in stack_store_pin_records(). */
	pf_store_release(&s->log_used, s->log_used + bytes);
}

/*
 * Returns the pinned record after rec, which is rec_bytes long, or the first one if rec is NULL.
 * Returns NULL after the last one.
 */
static inline const void *stack_store_next(const struct stack_store *s, const void *rec,
					   u32 rec_bytes)
{
	const char *next = rec ? (const char *)rec + rec_bytes : s->log;

	return s->pinned_bytes && next != s->log + s->pinned_bytes ? next : NULL;
}

#endif
