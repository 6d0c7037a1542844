// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rings that carry ended calls to the log: one for each CPU, allocated when trace output is
 * first switched on. A record is the call up to its last byte in use. It begins only where the
 * longest record would fit before the end of the buffer, so none wraps. head and tail count bytes
 * in 64 bits and never wrap.
 *
 * The writer checks tail for room, writes the record, and publishes it by storing head. The reader
 * compares the first records of all rings and takes the one that ended first. So lines are in
 * order, unless an earlier call reaches its ring after a later one was read.
 */

#include "live.h"

struct live_ring {
	u64 head;		 /* written by its CPU's threads */
	u64 tail pf_aligned(64); /* written by the reader */
	char buf[LIVE_RING_BYTES] pf_aligned(64);
};

static OS_DEFINE_PER_CPU(struct live_ring *, ring);
static struct live_ring *read_last; /* by the one reader */

int live_ring_init(void)
{
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		struct live_ring *new;

		if (pf_read_once(os_per_cpu(ring, cpu)))
			continue;
		new = os_zalloc(sizeof(*new));
		if (!new)
			return -OS_ENOMEM;
		/* Pairs with the acquires below: a CPU that sees the ring sees it zeroed. */
		pf_store_release(&os_per_cpu(ring, cpu), new);
	}
	return 0;
}

/* Returns where the next record begins, after a call that begins at a place. */
static u64 next_place(u64 place, const struct live_call *call)
{
	u64 next = place + ((live_call_bytes(call) + 7) & ~7ul);
	u64 left = LIVE_RING_BYTES - next % LIVE_RING_BYTES;

	return left < sizeof(*call) ? next + left : next;
}

bool live_ring_put(const struct live_call *call)
{
	struct live_ring *r = pf_load_acquire(os_this_cpu_ptr(&os_local(ring)));
	u64 next;

	if (!r)
		return false;
	os_assert(r->head - pf_read_once(r->tail) <= LIVE_RING_BYTES);
	next = next_place(r->head, call);
	/* Pairs with the release in live_ring_drop(): the reader is through with the room. */
	if (next - pf_load_acquire(&r->tail) > LIVE_RING_BYTES)
		return false;
	memcpy(r->buf + r->head % LIVE_RING_BYTES, call, live_call_bytes(call));
	/* Pairs with the acquire in first_call(): the reader sees the record complete. */
	pf_store_release(&r->head, next);
	return true;
}

/* Returns the first call of a ring, or NULL if it is empty. */
static const struct live_call *first_call(const struct live_ring *r)
{
	/* Pairs with the release in live_ring_put(). */
	if (!r || pf_load_acquire(&r->head) == r->tail)
		return NULL;
	return (const void *)(r->buf + r->tail % LIVE_RING_BYTES);
}

bool live_ring_get(struct live_call *call)
{
	const struct live_call *first = NULL, *other;
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		struct live_ring *r = pf_load_acquire(&os_per_cpu(ring, cpu));

		other = first_call(r);
		if (other && (!first || (s64)(other->end_cycles - first->end_cycles) < 0)) {
			first = other;
			read_last = r;
		}
	}
	if (!first)
		return false;
	os_assert(live_call_bytes(first) <= sizeof(*call));
	memcpy(call, first, live_call_bytes(first));
	return true;
}

void live_ring_drop(const struct live_call *call)
{
	/* Pairs with the acquire in live_ring_put(): the copy was made before the room is free. */
	pf_store_release(&read_last->tail, next_place(read_last->tail, call));
}
