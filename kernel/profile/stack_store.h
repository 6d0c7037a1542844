/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STACK_STORE_H
#define PROFILE_STACK_STORE_H

/*
 * One CPU's store of records that end in a call chain: samples and waits have one each. Records are
 * in a log, one for each different key, and a hash leads to them. A new record is put together
 * behind the last one, where there is always room for one, and looked up. If it is not there yet,
 * the log grows over it. A record never moves.
 *
 * Only the CPU itself writes, with interrupts off, and seq is odd meanwhile. Readers on other CPUs
 * pin the log: then it is not emptied, and the pinned records stay as they are but for their
 * counters. No event allocates, locks or waits; to look a record up takes at most
 * STACK_STORE_PROBES steps.
 */

#include "util.h"

#define STACK_STORE_BYTES_A_SLOT 128 /* of log: the hash has a slot of 8 bytes for each */
#define STACK_STORE_PROBES	 64

struct stack_store {
	u64 seq;   /* odd while the CPU changes its store */
	u64 *hash; /* high half: of the record's hash; low half: its offset + 1, 0: free */
	u32 hash_mask;
	char *log; /* NULL: there was no memory */
	u32 log_bytes;
	u32 log_used;	  /* published with release */
	u32 pinned_bytes; /* how much of the log is pinned; 0: nothing, so it may be emptied */
};

/*
 * Allocates a store of *bytes, or of half as much and so on, not less than min_bytes, and sets
 * *bytes to its size. Without memory, log stays NULL. max_record_bytes: the longest record.
 */
void stack_store_init(struct stack_store *s, u64 *bytes, u64 min_bytes, u64 max_record_bytes);

/* Halves bytes, not below min_bytes, until the stores of all CPUs are a share of the memory. */
u64 stack_store_affordable(u64 bytes, u64 min_bytes, u32 share);

/* Pins all of the log. A CPU that is within a change sees it when it next empties its log. */
void stack_store_pin(struct stack_store *s);
/* Keeps only the records pinned that are there now. Returns how long they are together. */
u32 stack_store_pin_records(struct stack_store *s);
void stack_store_unpin(struct stack_store *s);

/* Waits until the CPU is not within a change. Does not wait in a panic, which may stop it there. */
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
	/* seq is odd before pinned_bytes is read: pairs with the barrier in stack_store_pin(). */
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
 * Returns the slot of the record whose key is that of the new one: nr_words from key_offset on;
 * tag: a hash of them. If there is none, returns a free slot for it, which is 0, or NULL if none is
 * in reach.
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

/* Lets the log grow over the new record, which is complete and has room. */
static pf_always_inline void stack_store_add(struct stack_store *s, u64 *slot, u32 tag, u32 bytes)
{
	*slot = (u64)tag << 32 | (s->log_used + 1);
	/* Pairs with the acquire in stack_store_pin_records(). */
	pf_store_release(&s->log_used, s->log_used + bytes);
}

/*
 * Returns the pinned record behind rec, which is rec_bytes long; for NULL, the first one. Returns
 * NULL behind the last one.
 */
static inline const void *stack_store_next(const struct stack_store *s, const void *rec,
					   u32 rec_bytes)
{
	const char *next = rec ? (const char *)rec + rec_bytes : s->log;

	return s->pinned_bytes && next != s->log + s->pinned_bytes ? next : NULL;
}

#endif
