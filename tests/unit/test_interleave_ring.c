// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the rings of events in all interleavings of a writer, its interrupt and a reader, with few
 * preemptions (interleave.h). The ring has four pages, and the writer writes over the one that the
 * reader may be copying. Each event that is read is whole, and each gap is known.
 */

#include "trace_unit.h"

#define NR_FILLED  7
#define NR_PAGES   4
#define PAGE_BYTES PROFILE_TRACE_PAGE_BYTES

static u64 nr_read, nr_lost, nr_written;

static struct trace_ring *first_ring(void)
{
	return &os_per_cpu(trace_ring, 0);
}

/* Writes an event with room for more values than it has. */
static void write_large(u32 nr_values, u32 room, u64 value)
{
	fill_in(trace_reserve(sizeof(struct record) + room * sizeof(u64)), nr_values, value);
	nr_written++;
}

/* Fills seven pages up to the room for one event. The ring wraps after the eighth. */
static void fill_pages(void)
{
	host_step = 1;
	assert_int_equal(ring_set_bytes(0), 0);
	memset(first_ring(), 0, sizeof(*first_ring()));
	assert_int_equal(ring_set_bytes(NR_PAGES * PAGE_BYTES), 0);
	ring_record(true);
	nr_read = nr_lost = nr_written = 0;
	for (int i = 0; i < NR_FILLED; i++)
		write_large(500, 502, i);
	il_share(first_ring()->words, NR_PAGES * PAGE_BYTES);
	il_share(&first_ring()->head, sizeof(u64));
	il_share(&first_ring()->commit, sizeof(u64));
	il_share(&first_ring()->nr, sizeof(u64));
	il_keep(&nr_read, sizeof(nr_read));
	il_keep(&nr_lost, sizeof(nr_lost));
	il_keep(&nr_written, sizeof(nr_written));
}

static void fill_pages_without_interrupts(void)
{
	fill_pages();
	il_keep(first_ring(), sizeof(*first_ring()));
}

/* The CPU shares the rest with its interrupts. */
static void fill_pages_for_interrupts(void)
{
	fill_pages();
	il_share(first_ring(), sizeof(*first_ring()));
}

/* The second one begins a page. */
static void write_two(void)
{
	write_large(2, 2, 3);
	write_large(2, 2, 4);
}

/* The first one fills a page, so an interrupt after that begins the next one. */
static void write_page(void)
{
	write_large(2, 504, 5);
	write_large(1, 1, 6);
}

static void write_in_interrupt(void)
{
	write_large(1, 1, 7);
}

static void read_ring(void)
{
	static struct ring_reader reader;
	struct ring_event event;

	ring_reader_init(&reader, 0);
	while (ring_read(&reader, &event)) {
		const struct record *record = (const struct record *)event.content;

		il_check(record->common.type == 7);
		il_check(event.bytes >= sizeof(*record) + record->common.pid * sizeof(u64));
		for (int i = 1; i < record->common.pid; i += i < 8 ? 1 : 30)
			il_check(record->values[i] == record->values[0]);
		nr_read++;
		nr_lost += event.lost;
	}
	il_check(nr_read + nr_lost >= NR_FILLED);
}

/* Afterwards, all events that were not overwritten can be read. */
static void read_the_rest(void)
{
	u64 nr_before = nr_read + nr_lost;

	nr_read = nr_lost = 0;
	read_ring();
	il_check(nr_read + nr_lost >= nr_before);
	il_check(nr_read + nr_lost == nr_written);
	il_check(first_ring()->head == first_ring()->commit);
}

/*
 * Without an interrupt, no cmpxchg fails. These loads are volatile, so they keep their order. The
 * cmpxchg of head comes before all later stores, as on x86.
 */
#define NO_INTERRUPTS                                             \
	" ring_newest:pf_mb remember:pf_barrier"                  \
	" trace_reserve_quickly:pf_wmb trace_reserve_slow:pf_wmb" \
	" trace_reserve_quickly:os_local(trace_ring).head"        \
	" trace_reserve_slow:os_local(trace_ring).head"           \
	" trace_commit_quickly:os_local(trace_ring).commit"       \
	" remember:os_local(trace_ring).bias remember:os_local(trace_ring).limit "
/* Only readers need the barrier. No interrupt moves commit while a writer is at work. */
#define NO_READER                                                 \
	" trace_commit_quickly:pf_wmb remember:pf_barrier"        \
	" trace_reserve_quickly:pf_wmb trace_reserve_slow:pf_wmb" \
	" trace_commit_quickly:os_local(trace_ring).commit"       \
	" trace_commit_nested:os_local(trace_ring).commit"        \
	" remember:os_local(trace_ring).limit "

const struct il_test il_tests[] = {
	{ "a writer and a reader",
	  fill_pages_without_interrupts,
	  { { write_two, 0 }, { read_ring, 1 } },
	  read_the_rest,
	  2,
	  NO_INTERRUPTS },
	{ "a writer and its interrupt",
	  fill_pages_for_interrupts,
	  { { write_page, 0 }, { write_in_interrupt, 0 } },
	  read_the_rest,
	  2,
	  NO_READER },
	{ "a writer, its interrupt and a reader",
	  fill_pages_for_interrupts,
	  { { write_page, 0 }, { write_in_interrupt, 0 }, { read_ring, 1 } },
	  read_the_rest,
	  1,
	  NULL },
	{ 0 },
};
