/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_SEQ_H
#define PROFILE_SEQ_H

/*
 * Sequence counts: one CPU changes several words, with interrupts off, and readers on other CPUs
 * copy them as they were at one moment. Neither waits for a lock. The count is odd during a change,
 * so a copy is good if the count was even before it and is still the same after it:
 *
 *	writer						reader
 *	seq = 1						begin = seq	(acquire)
 *	write barrier					copy
 *	change						full barrier
 *	write barrier					begin is even, and seq == begin
 *	seq = 2
 *
 * The writer's first barrier keeps any part of the change from being seen before seq is odd: a
 * reader could copy that part and see nothing but an even count. It pairs with the reader's full
 * barrier, which keeps the second look behind the copy; otherwise a change could begin between the
 * look and the copy. The second barrier pairs with the reader's acquire: a reader that sees the
 * even count copies the whole change. The writer is alone, and x86 keeps stores in order, so there
 * it needs neither a locked instruction nor a fence.
 *
 * An NMI may interrupt a change, so a writer that can be an NMI, too, looks at the count first. A
 * reader must not run in an NMI: it would wait for the CPU that it has interrupted.
 */

#include "os.h"

/*
 * Bounds the wait for a writer. A writer needs some hundred cycles, but a host may stop its virtual
 * CPU for many milliseconds, so only a CPU that never goes on reaches this bound.
 */
#define SEQ_MAX_TRIES 10000000

/* Begins a change. Interrupts are off. */
static pf_always_inline void seq_begin(u64 *seq)
{
	os_assert(!(*seq & 1));
	*seq += 1; /* one instruction: only this CPU writes to it */
	pf_wmb();
}

static pf_always_inline void seq_end(u64 *seq)
{
	os_assert(*seq & 1);
	pf_wmb();
	*seq += 1;
}

/*
 * Waits until a change that has begun is complete, and returns the count. Not in a panic, which may
 * have stopped the writer in the middle.
 */
static inline u64 seq_wait(const u64 *seq)
{
	u64 begin;

	for (u32 i = 0; (begin = pf_load_acquire(seq)) & 1 && i < SEQ_MAX_TRIES; i++) {
		if (os_panicking())
			break;
		os_cpu_relax();
	}
	return begin;
}

/* A copy that is being made. */
struct seq_copy {
	const u64 *seq;
	u64 begin;
	u32 nr_tries;
};

static inline bool seq_try_again(struct seq_copy *copy)
{
	if (copy->nr_tries) {
		pf_mb();
		if (!(copy->begin & 1) && pf_read_once(*copy->seq) == copy->begin)
			return false;
		if (copy->nr_tries == SEQ_MAX_TRIES || os_panicking())
			return false;
		os_cpu_relax();
	}
	copy->nr_tries++;
	copy->begin = seq_wait(copy->seq);
	return true;
}

/*
 * Repeats the block, which makes a copy, until no change has come in between. If the writer has
 * stopped, as in a panic, the copy may be of the middle of a change.
 */
#define SEQ_COPY(seq_) for (struct seq_copy _copy = { .seq = (seq_) }; seq_try_again(&_copy);)

#endif
