// SPDX-License-Identifier: BSD-2-Clause
/*
 * A ring for each CPU, allocated when lines are first switched on. head and tail count bytes and
 * never wrap (64 bits); a record is its size, the call, and what fills it up to 8 bytes, and may
 * go round the end of the buffer. Room is reserved by looking at tail, the record is written, and
 * what makes it one is the store to head, last of all. The reader takes the record with the
 * earliest end among the rings' first ones, so that lines come in order as far as they are there.
 */

#include "live.h"

struct live_ring {
	u64 head;		/* written by its CPU's threads */
	u64 tail __aligned(64); /* written by the reader */
	char buf[LIVE_RING_BYTES] __aligned(64);
};

static DEFINE_PER_CPU(struct live_ring *, ring);

int live_ring_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct live_ring *new;

		if (READ_ONCE(per_cpu(ring, cpu)))
			continue;
		new = os_zalloc(sizeof(*new));
		if (!new)
			return -ENOMEM;
		/* Pairs with the acquires below: a ring that is seen is empty. */
		smp_store_release(&per_cpu(ring, cpu), new);
	}
	return 0;
}

static size_t record_bytes(size_t size)
{
	return (sizeof(u64) + size + 7) & ~7ul;
}

static void copy_in(struct live_ring *r, u64 at, const void *src, size_t size)
{
	size_t offset = at % LIVE_RING_BYTES, first = min(size, LIVE_RING_BYTES - offset);

	memcpy(r->buf + offset, src, first);
	memcpy(r->buf, (const char *)src + first, size - first);
}

static void copy_out(const struct live_ring *r, u64 at, void *dst, size_t size)
{
	size_t offset = at % LIVE_RING_BYTES, first = min(size, LIVE_RING_BYTES - offset);

	memcpy(dst, r->buf + offset, first);
	memcpy((char *)dst + first, r->buf, size - first);
}

bool live_ring_put(const struct live_call *call)
{
	u64 size = live_call_bytes(call);
	struct live_ring *r = smp_load_acquire(this_cpu_ptr(&ring));
	u64 head;

	if (!r)
		return false;
	head = r->head;
	/* Pairs with the release in live_ring_get(): what is there was read. */
	if (record_bytes(size) > LIVE_RING_BYTES - (head - smp_load_acquire(&r->tail)))
		return false;
	copy_in(r, head, &size, sizeof(size));
	copy_in(r, head + sizeof(size), call, size);
	/* Pairs with the acquire in peek(): the record is whole. */
	smp_store_release(&r->head, head + record_bytes(size));
	return true;
}

/* When the first call of a ring ended; false when there is none. */
static bool peek(const struct live_ring *r, u64 *end_cycles)
{
	u64 tail;

	if (!r)
		return false;
	tail = r->tail;
	/* Pairs with the release in live_ring_put(). */
	if (smp_load_acquire(&r->head) == tail)
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

	for_each_possible_cpu(cpu) {
		struct live_ring *r = smp_load_acquire(&per_cpu(ring, cpu));

		if (peek(r, &cycles) && (!first || (s64)(cycles - first_cycles) < 0)) {
			first = r;
			first_cycles = cycles;
		}
	}
	if (!first)
		return false;
	copy_out(first, first->tail, &size, sizeof(size));
	copy_out(first, first->tail + sizeof(size), call, min(size, (u64)sizeof(*call)));
	/* Pairs with the acquire in live_ring_put(). */
	smp_store_release(&first->tail, first->tail + record_bytes(size));
	return true;
}
