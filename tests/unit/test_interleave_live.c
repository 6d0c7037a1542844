// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests in all interleavings (interleave.h) the ring that carries ended system calls from a CPU to
 * the reader. It is made so small that the writer waits for room, and begins again after three
 * calls.
 */

#include "../../kernel/profile/strace/live/live.h"

#undef LIVE_RING_BYTES
#define LIVE_RING_BYTES 1024u
#include "../../kernel/profile/strace/live/ring.c"

#include "unit.h"

#define NR_CALLS 4

static void make_ring(void)
{
	struct live_ring *r;

	assert_int_equal(live_ring_init(), 0);
	r = os_per_cpu(ring, 0);
	r->head = r->tail = LIVE_RING_BYTES;
	il_share(r, sizeof(*r));
}

static void put_calls(void)
{
	struct live_call call = { .nr_bytes = 8 };

	for (u64 i = 1; i <= NR_CALLS; i++) {
		call.ret = call.end_cycles = i;
		memset(call.bytes, i, 8);
		while (!live_ring_put(&call))
			il_relax();
	}
}

static void get_calls(void)
{
	static struct live_call call;

	for (u64 i = 1; i <= NR_CALLS; i++) {
		while (!live_ring_get(&call))
			il_relax();
		il_check(call.ret == i && call.end_cycles == i && call.nr_bytes == 8);
		il_check(call.bytes[0] == i && call.bytes[7] == i);
		live_ring_drop(&call);
	}
}

static void is_empty(void)
{
	static struct live_call call;

	il_check(!live_ring_get(&call));
}

/* The reader's loads come before its store on x86. */
const struct il_test il_tests[] = {
	{ "ring",
	  make_ring,
	  { { put_calls, 0 }, { get_calls, 1 } },
	  is_empty,
	  2,
	  " live_ring_drop:pf_store_release " },
	{ 0 },
};
