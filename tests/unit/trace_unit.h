/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_TRACE_UNIT_H
#define TESTS_TRACE_UNIT_H

/* Shared by the tests of the rings of events: writes and checks events that can be told apart. */

#include "unit.h"

#include "../../kernel/profile/trace/ring.h"

#define RING_BYTES 8192

/* An event, whose words all have the same value. */
struct record {
	struct profile_trace_event common;
	u64 values[];
};

static inline void fill_in(struct trace_slot slot, u32 nr_values, u64 value)
{
	struct record *record = slot.content;

	if (!record)
		return;
	record->common = (struct profile_trace_event){ .type = 7, .pid = nr_values };
	for (u32 i = 0; i < nr_values; i++)
		record->values[i] = value;
	trace_commit(slot);
}

static inline void write_event(u32 nr_values, u64 value)
{
	fill_in(trace_reserve(sizeof(struct record) + nr_values * sizeof(u64)), nr_values, value);
}

static inline int set_up(void **state)
{
	host_now = 1ull << 32;
	host_step = 1;
	ring_set_overwrite(true);
	assert_int_equal(ring_set_bytes(RING_BYTES), 0);
	assert_int_equal(ring_bytes(), RING_BYTES);
	ring_record(true);
	return 0;
}

/* Moves the ring to the start of a page, the nr-th last before positions wrap. */
static inline void move_to_last_page(u32 nr)
{
	struct trace_ring *ring = &os_per_cpu(trace_ring, 0);

	ring->head = ring->commit =
		TRACE_HEAD(PF_BIT(TRACE_POSITION_BITS) - nr * TRACE_PAGE_WORDS, ring->head);
	ring->limit = 0;
	ring_clear();
}

static inline int tear_down(void **state)
{
	ring_record(false);
	return 0;
}

static inline void check_content(const struct ring_event *event)
{
	const struct record *record = (const struct record *)event->content;

	assert_int_equal(record->common.type, 7);
	assert_int_equal(event->bytes, sizeof(*record) + record->common.pid * sizeof(u64));
	for (int i = 1; i < record->common.pid; i++)
		assert_int_equal(record->values[i], record->values[0]);
}

static inline u64 value_of(const struct ring_event *event)
{
	return ((const struct record *)event->content)->values[0];
}

/* Reads all of this CPU's events. Returns how many, and the values of the first max ones. */
static inline u32 read_all(u64 *values, u32 max, u64 *lost)
{
	static struct ring_reader reader;
	struct ring_event event;
	u64 last_cycles = 0;
	u32 nr = 0;

	*lost = 0;
	ring_reader_init(&reader, host_cpu);
	while (ring_read(&reader, &event)) {
		check_content(&event);
		assert_true(event.cycles > last_cycles);
		last_cycles = event.cycles;
		*lost += event.lost;
		if (nr < max)
			values[nr] = value_of(&event);
		nr++;
	}
	*lost += ring_newest(host_cpu).nr - reader.place.nr;
	return nr;
}

#endif
