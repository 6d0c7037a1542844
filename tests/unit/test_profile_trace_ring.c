// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the rings of events: which events they keep, which they lose, and how they count lost ones.
 */

#include "trace_unit.h"

#define TEST(name) HOST_TEST_WITH(name, set_up, tear_down)

TEST(order_and_content)
{
	u64 values[16], lost;

	for (u64 i = 0; i < 10; i++)
		write_event(1 + i % 3, i);
	assert_int_equal(read_all(values, 16, &lost), 10);
	assert_int_equal(lost, 0);
	for (u64 i = 0; i < 10; i++)
		assert_int_equal(values[i], i);
	/* Reading does not consume events; clearing removes them. */
	assert_int_equal(read_all(values, 16, &lost), 10);
	ring_clear();
	assert_int_equal(read_all(values, 16, &lost), 0);
	assert_int_equal(lost, 0);
	write_event(2, 77);
	assert_int_equal(read_all(values, 16, &lost), 1);
	assert_int_equal(values[0], 77);
	assert_int_equal(lost, 0);
}

/* With overwriting, the newest events are kept and the others count as lost. */
TEST(overwrites)
{
	u64 values[512], lost;
	u32 nr;

	for (u64 i = 0; i < 5000; i++)
		write_event(1 + i % 5, i);
	nr = read_all(values, 512, &lost);
	assert_in_range(nr, RING_BYTES / 64 / 2, 512);
	assert_int_equal(nr + lost, 5000);
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(values[i], lost + i);
}

/* Without overwriting, the oldest events are kept until they are consumed. */
TEST(keeps_the_oldest)
{
	static struct ring_reader reader;
	u64 values[512], lost, from;
	struct ring_event event;
	u32 nr;

	ring_set_overwrite(false);
	for (u64 i = 0; i < 5000; i++)
		write_event(2, i);
	nr = read_all(values, 512, &lost);
	assert_in_range(nr, RING_BYTES / 32 - 8, RING_BYTES / 32);
	assert_int_equal(nr + lost, 5000);
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(values[i], i);

	/* Consuming makes room. The next event knows how many were lost before it. */
	ring_reader_init(&reader, host_cpu);
	from = reader.place.position;
	for (u32 i = 0; i < nr; i++)
		assert_true(ring_read(&reader, &event));
	assert_true(ring_consume(host_cpu, from, &reader.place, nr));
	assert_false(ring_consume(host_cpu, from, &reader.place, nr));
	write_event(2, 6000);
	ring_reader_init(&reader, host_cpu);
	assert_true(ring_read(&reader, &event));
	assert_int_equal(value_of(&event), 6000);
	assert_int_equal(event.lost, 5000 - nr);
	assert_int_equal(event.nr, ring_newest(host_cpu).nr - 1);
}

/* Overwriting is switched off after the ring has wrapped; it keeps its events. */
TEST(change_of_mode)
{
	u64 values[512], lost, before;
	u32 nr;

	for (u64 i = 0; i < 3000; i++)
		write_event(1, i);
	nr = read_all(values, 512, &before);
	ring_set_overwrite(false);
	for (u64 i = 0; i < 3000; i++)
		write_event(1, 10000 + i);
	assert_true(read_all(values, 512, &lost) >= nr);
	assert_int_equal(values[0], before);
	assert_true(lost > before);
}

TEST(positions_wrap)
{
	u64 values[256], lost;

	move_to_last_page(1);
	for (u64 i = 0; i < 190; i++)
		write_event(2, i);
	assert_int_equal(read_all(values, 256, &lost), 190);
	assert_int_equal(lost, 0);
	for (u64 i = 0; i < 190; i++)
		assert_int_equal(values[i], i);
	assert_true(TRACE_POSITION(os_per_cpu(trace_ring, 0).head) < RING_BYTES);
}

/* The low half of the TSC wraps, once or many times, between two events. */
TEST(extensions)
{
	static const u64 times[] = { 5,		  0xffffffff,  0x100000000,  0x1ffffffff,
				     0x700000003, 0x700000004, 0x12300000000 };
	static struct ring_reader reader;
	struct ring_event event;

	host_step = 0;
	for (u32 i = 0; i < ARRAY_SIZE(times); i++) {
		host_now = (9ull << 32) + times[i];
		write_event(1, i);
	}
	ring_reader_init(&reader, host_cpu);
	for (u32 i = 0; i < ARRAY_SIZE(times); i++) {
		assert_true(ring_read(&reader, &event));
		assert_int_equal(event.cycles, (9ull << 32) + times[i]);
		assert_int_equal(value_of(&event), i);
		assert_int_equal(event.lost, 0);
	}
	assert_false(ring_read(&reader, &event));
}

/*
 * While recording is off, nothing is written and nothing counts as lost. A new size drops all
 * events.
 */
TEST(off_and_size)
{
	u64 values[8], lost;

	write_event(1, 1);
	ring_record(false);
	write_event(1, 2);
	assert_int_equal(read_all(values, 8, &lost), 1);
	assert_int_equal(lost, 0);
	ring_record(true);
	write_event(1, 3);
	assert_int_equal(read_all(values, 8, &lost), 2);
	assert_int_equal(values[1], 3);
	assert_int_equal(ring_set_bytes(5 * 4096), 0);
	assert_int_equal(ring_bytes(), 8 * 4096);
	assert_int_equal(read_all(values, 8, &lost), 0);
	write_event(1, 4);
	assert_int_equal(read_all(values, 8, &lost), 1);
	assert_int_equal(lost, 0);
	assert_int_equal(ring_set_bytes(0), 0);
	write_event(1, 5);
	assert_int_equal(read_all(values, 8, &lost), 0);
	assert_int_equal(lost, 0);
	assert_int_equal(ring_set_bytes(8 * 4096), 0);
	ring_record(true);
	write_event(1, 6);
	assert_int_equal(ring_set_bytes(8ull << 20), -EINVAL);
	host_fail_alloc = 3;
	assert_int_equal(ring_set_bytes(4 * 4096), -ENOMEM);
	host_fail_alloc = 0;
	assert_int_equal(read_all(values, 8, &lost), 1);
}

static u32 nr_in_page(const struct ring_reader *reader)
{
	u32 nr = 0;

	for (u32 at = TRACE_PAGE_HEAD_WORDS; at < reader->nr_words;
	     at += (u16)(reader->words[at] >> PROFILE_TRACE_BYTES_SHIFT) / 8)
		nr += reader->words[at] >> PROFILE_TRACE_KIND_SHIFT == PROFILE_TRACE_EVENT;
	return nr;
}

/* Reads pages as an export does: each once, the last one up to its last complete event. */
TEST(pages)
{
	static struct ring_reader reader;
	u64 first = ring_newest(0).nr;
	u32 nr_words, nr_pages = 0, nr_before = 0;

	for (u64 i = 0; i < 200; i++)
		write_event(1, i);
	ring_reader_init(&reader, host_cpu);
	while ((nr_words = ring_read_page(&reader))) {
		nr_pages++;
		assert_in_range(nr_words, 3, TRACE_PAGE_WORDS);
		assert_int_equal(reader.words[1], first + nr_before);
		nr_before += nr_in_page(&reader);
	}
	assert_int_equal(nr_pages, 2);
	assert_int_equal(nr_before, 200);
	assert_int_equal(TRACE_POSITION(os_per_cpu(trace_ring, 0).commit), reader.place.position);
}

/*
 * A reader does not lock the rings while they get memory. Positions must not change, or it would
 * read the new memory as events.
 */
TEST(first_memory)
{
	struct ring_place oldest, newest;

	assert_int_equal(ring_set_bytes(0), 0);
	oldest = ring_oldest(0);
	newest = ring_newest(0);
	assert_int_equal(oldest.position, newest.position);
	assert_int_equal(ring_set_bytes(RING_BYTES), 0);
	assert_int_equal(ring_oldest(0).position, oldest.position);
	assert_int_equal(ring_newest(0).position, newest.position);
}

/* Writes two events and consumes all three, once, in the middle of ring_clear(). */
static bool was_consumed;

static void consume_meanwhile(os_lock_t *lock)
{
	static struct ring_reader reader;
	struct ring_event event;
	u64 from;

	if (was_consumed)
		return;
	was_consumed = true;
	write_event(1, 8);
	write_event(1, 9);
	ring_reader_init(&reader, 0);
	from = reader.place.position;
	while (ring_read(&reader, &event))
		;
	assert_true(ring_consume(0, from, &reader.place, 3));
}

/* ring_clear() must not undo a concurrent read. */
TEST(clear_meanwhile)
{
	u64 values[8], lost;

	ring_clear();
	write_event(1, 7);
	was_consumed = false;
	host_on_lock = consume_meanwhile;
	ring_clear();
	host_on_lock = NULL;
	assert_true(was_consumed);
	assert_int_equal(read_all(values, 8, &lost), 0);
	assert_int_equal(lost, 0);
	assert_int_equal(ring_totals(0).nr, 0);
}

/* A reader on another CPU, concurrent with the writer. */
static bool writer_is_done;

static void *write_many(void *unused)
{
	for (u64 i = 0; i < 300000; i++)
		write_event(1 + i % 7, i);
	__atomic_store_n(&writer_is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void read_during_writes(bool overwrite)
{
	static struct ring_reader reader;
	u64 nr_read = 0, nr_lost = 0, nr_before, from;
	struct ring_event event;
	pthread_t writer;
	bool done;

	ring_set_overwrite(overwrite);
	ring_clear();
	__atomic_store_n(&writer_is_done, false, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&writer, NULL, write_many, NULL), 0);
	do {
		done = __atomic_load_n(&writer_is_done, __ATOMIC_ACQUIRE);
		ring_reader_init(&reader, 0);
		from = reader.place.position;
		nr_before = nr_read;
		while (ring_read(&reader, &event)) {
			nr_lost += event.lost;
			assert_int_equal(value_of(&event), nr_read + nr_lost);
			check_content(&event);
			nr_read++;
		}
		assert_true(ring_consume(0, from, &reader.place, nr_read - nr_before));
	} while (!done);
	pthread_join(writer, NULL);
	nr_lost += ring_newest(0).nr - reader.place.nr;
	assert_int_equal(nr_read + nr_lost, 300000);
	assert_true(nr_read);
	assert_int_equal(ring_totals(0).nr, 300000);
	assert_int_equal(ring_totals(0).nr_read, nr_read);
	assert_int_equal(ring_totals(0).nr_lost, overwrite ? 0 : nr_lost);
}

TEST(reader_on_another_cpu)
{
	read_during_writes(true);
	ring_clear();
	read_during_writes(false);
}
