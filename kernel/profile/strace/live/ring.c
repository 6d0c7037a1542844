// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rings that carry ended calls to the log: one for each CPU, allocated when trace output is
 * first switched on. A record is its size and the call, padded to 8 bytes; it may wrap around the
 * end of the buffer. head and tail count bytes in 64 bits and never wrap.
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

static size_t record_bytes(size_t size)
{
	return (sizeof(u64) + size + 7) & ~7ul;
}

static void copy_in(struct live_ring *r, u64 at, const void *src, size_t size)
{
	size_t offset = at % LIVE_RING_BYTES, first = pf_min(size, LIVE_RING_BYTES - offset);

	memcpy(r->buf + offset, src, first);
	memcpy(r->buf, (const char *)src + first, size - first);
}

static void copy_out(const struct live_ring *r, u64 at, void *dst, size_t size)
{
	size_t offset = at % LIVE_RING_BYTES, first = pf_min(size, LIVE_RING_BYTES - offset);

	memcpy(dst, r->buf + offset, first);
	memcpy((char *)dst + first, r->buf, size - first);
}

bool live_ring_put(const struct live_call *call)
{
	u64 size = live_call_bytes(call);
	struct live_ring *r = pf_load_acquire(os_this_cpu_ptr(&os_local(ring)));
	u64 head;

	if (!r)
		return false;
	head = r->head;
	os_assert(head - pf_read_once(r->tail) <= LIVE_RING_BYTES);
	/* Pairs with the release in live_ring_get(): the room has been read before it is reused. */
	if (record_bytes(size) > LIVE_RING_BYTES - (head - pf_load_acquire(&r->tail)))
		return false;
	copy_in(r, head, &size, sizeof(size));
	copy_in(r, head + sizeof(size), call, size);
	/* Pairs with the acquire in peek(): the reader sees the record complete. */
	pf_store_release(&r->head, head + record_bytes(size));
	return true;
}

/* Copies when the first call of a ring ended. Returns false if the ring is empty. */
static bool peek(const struct live_ring *r, u64 *end_cycles)
{
	u64 tail;

	if (!r)
		return false;
	tail = r->tail;
	/* Pairs with the release in live_ring_put(). */
	if (pf_load_acquire(&r->head) == tail)
		return false;
	copy_out(r, tail + sizeof(u64) + offsetof(struct live_call, end_cycles), end_cycles,
		 sizeof(*end_cycles));
	return true;
}

bool live_ring_get(struct live_call *call)
{
	struct live_ring *first = NULL;
	u64 first_cycles = 0, cycles, size;
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		struct live_ring *r = pf_load_acquire(&os_per_cpu(ring, cpu));

		if (peek(r, &cycles) && (!first || (s64)(cycles - first_cycles) < 0)) {
			first = r;
			first_cycles = cycles;
		}
	}
	if (!first)
		return false;
	copy_out(first, first->tail, &size, sizeof(size));
	os_assert(size <= sizeof(*call));
	copy_out(first, first->tail + sizeof(size), call, pf_min(size, (u64)sizeof(*call)));
	/* Pairs with the acquire in live_ring_put(): the copy is made before the room is free. */
	pf_store_release(&first->tail, first->tail + record_bytes(size));
	return true;
}
