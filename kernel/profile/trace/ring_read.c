// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the rings without stopping their writers. A reader copies a page and then looks at head. If
 * the writer has come round to that page meanwhile, the reader drops the copy and goes on with the
 * oldest page left. The number in the head of each page tells how many events were lost. show.c
 * reads events, and export.c whole pages.
 *
 * The events before `oldest` of a CPU were consumed or cleared. A ring that does not overwrite
 * keeps all pages from `tail` on, the page of `oldest`.
 */

#include "ring.h"

static os_lock_t lock = OS_LOCK_INIT; /* guards all below, and tail of the rings */
static OS_DEFINE_PER_CPU(struct ring_place, oldest);
static OS_DEFINE_PER_CPU(u64, nr_consumed);
static OS_DEFINE_PER_CPU(struct ring_totals, totals_when_cleared);

static u64 page_of(u64 position)
{
	return position & ~(TRACE_PAGE_WORDS - 1);
}

/* Returns the signed distance of two positions, a - b. */
static s64 distance(u64 a, u64 b)
{
	return (s64)((a - b) << (64 - TRACE_POSITION_BITS)) >> (64 - TRACE_POSITION_BITS);
}

struct ring_place ring_oldest(u32 cpu)
{
	bool locked;
	unsigned long flags = snapshot_lock(&lock, &locked);
	struct ring_place place = os_per_cpu(oldest, cpu);

	snapshot_unlock(&lock, locked, flags);
	return place;
}

struct ring_place ring_newest(u32 cpu)
{
	struct trace_ring *ring = &os_per_cpu(trace_ring, cpu);
	u64 nr, head;

	/*
	 * trace_nr() needs an nr that is not ahead of head, nor far behind it. The slow path
	 * changes nr at each page, so head is read again if nr has changed meanwhile.
	 */
	do {
		nr = pf_read_once(ring->nr);
		pf_mb();
		head = pf_read_once(ring->head);
		pf_mb();
	} while (nr != pf_read_once(ring->nr));
	return (struct ring_place){ TRACE_POSITION(head), trace_nr(head, nr) };
}

static void set_oldest(u32 cpu, const struct ring_place *place)
{
	os_assert_held(&lock);
	os_per_cpu(oldest, cpu) = *place;
	pf_store_release(&os_per_cpu(trace_ring, cpu).tail, page_of(place->position));
}

bool ring_consume(u32 cpu, u64 from_position, const struct ring_place *place, u64 nr_read)
{
	unsigned long flags = os_lock(&lock);
	bool valid = os_per_cpu(oldest, cpu).position == from_position;

	if (valid) {
		set_oldest(cpu, place);
		os_per_cpu(nr_consumed, cpu) += nr_read;
	}
	os_unlock(&lock, flags);
	return valid;
}

/* Returns the totals of a CPU since boot. Called with the lock held. */
static struct ring_totals totals(u32 cpu)
{
	os_assert_held(&lock);
	return (struct ring_totals){
		.nr = ring_newest(cpu).nr,
		.nr_lost = pf_read_once(os_per_cpu(trace_ring, cpu).nr_lost),
		.nr_read = os_per_cpu(nr_consumed, cpu),
	};
}

struct ring_totals ring_totals(u32 cpu)
{
	unsigned long flags = os_lock(&lock);
	struct ring_totals now = totals(cpu), before = os_per_cpu(totals_when_cleared, cpu);

	os_unlock(&lock, flags);
	return (struct ring_totals){
		.nr = now.nr - before.nr,
		.nr_lost = now.nr_lost - before.nr_lost,
		.nr_read = now.nr_read - before.nr_read,
	};
}

void ring_clear(void)
{
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		/* Held while head is read, so that the oldest place never moves back. */
		unsigned long flags = os_lock(&lock);
		struct ring_place place = ring_newest(cpu);

		set_oldest(cpu, &place);
		os_per_cpu(totals_when_cleared, cpu) = totals(cpu);
		os_per_cpu(totals_when_cleared, cpu).nr = place.nr;
		os_unlock(&lock, flags);
	}
}

/* Returns the position of the oldest page that is neither overwritten nor about to be. */
static u64 first_page(const struct trace_ring *ring)
{
	return page_of(TRACE_POSITION(pf_read_once(ring->head)) + TRACE_PAGE_WORDS - 1) -
	       (ring->mask + 1);
}

void ring_set_overwrite(bool on)
{
	unsigned int cpu;

	pf_write_once(trace_overwrites, on);
	/* Skips the overwritten pages. Keeps place.nr, so the next reader reports the gap. */
	os_for_each_cpu(cpu) {
		const struct trace_ring *ring = &os_per_cpu(trace_ring, cpu);
		unsigned long flags = os_lock(&lock);
		struct ring_place place = os_per_cpu(oldest, cpu);
		u64 first = first_page(ring);

		if (ring->words && distance(first, place.position) > 0) {
			place.position = trace_wrap(first);
			set_oldest(cpu, &place);
		}
		os_unlock(&lock, flags);
	}
}

bool ring_is_empty(u32 cpu)
{
	u64 end = TRACE_POSITION(pf_read_once(os_per_cpu(trace_ring, cpu).commit));

	return distance(end, ring_oldest(cpu).position) <= 0;
}

void ring_reader_init(struct ring_reader *reader, u32 cpu)
{
	reader->cpu = cpu;
	reader->place = ring_oldest(cpu);
	/* Pairs with pf_wmb() in trace_commit_quickly(): records before commit are complete. */
	reader->end = TRACE_POSITION(pf_load_acquire(&os_per_cpu(trace_ring, cpu).commit));
	reader->page_position = ~0ull;
	reader->at = reader->nr_words = 0;
}

/* Copies a page to the reader. Returns false if it was overwritten meanwhile. */
static bool copy_page(struct ring_reader *reader, const struct trace_ring *ring, u64 page)
{
	s64 nr = pf_min(distance(reader->end, page), (s64)TRACE_PAGE_WORDS);

	memcpy(reader->words, ring->words + (page & ring->mask), nr * sizeof(u64));
	/*
	 * Pairs with the cmpxchg of head that reserves. head must be read after the copy was made,
	 * or a page that was overwritten during the copy would pass for a valid one.
	 */
	pf_mb();
	if (distance(TRACE_POSITION(pf_read_once(ring->head)), page) > (s64)ring->mask + 1)
		return false;
	reader->page_position = page;
	reader->nr_words = nr;
	reader->at = 0;
	return true;
}

/* Copies the reader's page, or the oldest one left. Returns false if there is nothing to read. */
static bool fill_page(struct ring_reader *reader)
{
	const struct trace_ring *ring = &os_per_cpu(trace_ring, reader->cpu);
	u64 first;

	while (ring->words && distance(reader->end, reader->place.position) > 0) {
		if (copy_page(reader, ring, page_of(reader->place.position)))
			return true;
		first = first_page(ring);
		if (distance(first, reader->place.position) > 0)
			reader->place.position = trace_wrap(first);
	}
	return false;
}

static u32 record_words(u64 head)
{
	return (u16)(head >> PROFILE_TRACE_BYTES_SHIFT) / sizeof(u64);
}

/*
 * Moves past the record at ->at. Returns 0, or the words of an event, of which it sets content,
 * bytes and cycles.
 */
static u32 take_record(struct ring_reader *reader, struct ring_event *event)
{
	const u64 *record = &reader->words[reader->at];
	u32 nr = record_words(*record);

	/* No writer makes such a record. Skipping the page keeps the reader inside its copy. */
	if (!nr || nr > reader->nr_words - reader->at)
		nr = reader->nr_words - reader->at;
	reader->at += nr;
	switch (*record >> PROFILE_TRACE_KIND_SHIFT) {
	case PROFILE_TRACE_EVENT:
		event->content = (const void *)(record + 1);
		event->bytes = (nr - 1) * sizeof(u64);
		event->cycles = reader->high | (u32)*record;
		return nr;
	case PROFILE_TRACE_EXTENSION:
		reader->high = record[1] >> 32 << 32;
		return 0;
	default:
		return 0;
	}
}

static void take_page_head(struct ring_reader *reader, u64 *nr)
{
	reader->high = reader->words[0] >> 32 << 32;
	*nr = reader->words[1];
	reader->at = TRACE_PAGE_HEAD_WORDS;
}

bool ring_read(struct ring_reader *reader, struct ring_event *event)
{
	for (;;) {
		if (reader->at == reader->nr_words) {
			if (!fill_page(reader))
				return false;
			take_page_head(reader, &reader->page_nr);
		}
		while (reader->at < reader->nr_words) {
			u64 start = reader->page_position + reader->at;
			u32 words = take_record(reader, event);
			u64 nr = reader->page_nr;

			if (words)
				reader->page_nr++;
			/* Already read. Later records need its number and the TSC of extensions. */
			if (distance(start, reader->place.position) < 0)
				continue;
			reader->place.position = trace_wrap(reader->page_position + reader->at);
			if (!words)
				continue;
			event->nr = nr;
			event->lost = nr - reader->place.nr;
			reader->place.nr = nr + 1;
			return true;
		}
		/* The rest of the page has no complete records yet. */
		if (reader->nr_words < TRACE_PAGE_WORDS)
			return false;
	}
}

u32 ring_read_page(struct ring_reader *reader)
{
	if (!fill_page(reader))
		return 0;
	reader->place.position = trace_wrap(reader->page_position + reader->nr_words);
	reader->at = reader->nr_words;
	return reader->nr_words;
}
