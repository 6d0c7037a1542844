/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_RING_H
#define PROFILE_TRACE_RING_H

/*
 * The rings of events: one for each CPU, made of pages of 4096 bytes (<profile/abi.h>). A CPU
 * writes its own ring from any context, NMI included, without a lock and without a locked
 * instruction. An interrupt in the middle of a write may write, too. Readers copy pages
 * (ring_read.c); show.c prints the events, and export.c exports the pages. An event with two
 * arguments costs 40 instructions.
 *
 * head holds the position of the next record and the number of the next event. A writer reads head,
 * then the TSC, and reserves its record by one cmpxchg of head. If an interrupt has moved head
 * meanwhile, the writer tries again with a new TSC, so times never run backwards. When the
 * outermost writer is done, it moves commit; all records before commit are complete. Two things are
 * required: os_this_cpu_*() are single instructions, and the writer stays on its CPU from
 * trace_reserve() to trace_commit().
 *
 * The fast path writes inside a page: limit is the end of the page, and position + bias is an
 * address. The writer that begins a page moves bias, then limit, each by a cmpxchg from the value
 * it had before head was read. If one fails, an interrupt has begun a later page. So if limit is
 * the end of the page of head, bias belongs to that page, too. Otherwise limit is below head.
 */

#include "../util.h"

#include <profile/abi.h>

#define TRACE_PAGE_WORDS      (PROFILE_TRACE_PAGE_BYTES / sizeof(u64))
#define TRACE_PAGE_HEAD_WORDS 2
/* The longest record, its head included. */
#define TRACE_MAX_BYTES (PROFILE_TRACE_PAGE_BYTES - sizeof(struct profile_trace_page))

/*
 * The layout of head and commit. Bits 21 to 63: the position in words. It never wraps in practice,
 * but is compared modulo its 43 bits. Bits 18 to 20: zeros, so that a shift turns words into bytes.
 * Bits 0 to 17: the number of events. The slow path truncates it to TRACE_NR_BITS; the bit above
 * takes the carry of the events in the rest of the page.
 */
#define TRACE_NR_BITS	     17
#define TRACE_COUNT_BITS     (TRACE_NR_BITS + 1 + 3)
#define TRACE_POSITION_BITS  (64 - TRACE_COUNT_BITS)
#define TRACE_POSITION(head) ((head) >> TRACE_COUNT_BITS)
#define TRACE_HEAD(position, nr) \
	((u64)(position) << TRACE_COUNT_BITS | (nr) % PF_BIT(TRACE_NR_BITS))
/* The highest value of head at a position. */
#define TRACE_LIMIT(position)	   (TRACE_HEAD(position, 0) | (PF_BIT(TRACE_COUNT_BITS) - 1))
#define TRACE_POSITION_BYTES(head) ((head) >> (TRACE_COUNT_BITS - 3))

/* Returns a position, or a distance of two, modulo TRACE_POSITION_BITS. */
static inline u64 trace_wrap(u64 position)
{
	return position % PF_BIT(TRACE_POSITION_BITS);
}

#define TRACE_MAX_RING_BYTES (4ull << 20)

struct trace_ring {
	u64 head;
	u64 commit;
	u64 limit; /* the fast path may move head up to here; 0 while recording is off */
	u64 bias;  /* the address of a position, minus the position in bytes */
	u64 high;  /* upper half of the TSC of the latest record */
	u64 *words;
	u64 mask;    /* words - 1 */
	u64 nr;	     /* the full number of a recent event of the slow path */
	u64 tail;    /* position of the oldest page that must be kept if trace_overwrites is off */
	u64 nr_lost; /* events that found no room */
	bool is_off; /* nothing is recorded on this CPU */
};

OS_DECLARE_PER_CPU(struct trace_ring, trace_ring);

/* A reserved record. */
struct trace_slot {
	void *content;	/* NULL: the event is not recorded */
	u64 start, end; /* head before and after, for trace_commit() */
	u64 cycles;	/* the TSC of the record */
};

/* A record. Its head is two 32-bit words, because a constant word needs no register. */
struct trace_record {
	u32 cycles, kind_and_bytes;
	u64 content[];
} __attribute__((__may_alias__));

static pf_always_inline void *trace_write_head(struct trace_record *record, u32 kind, u64 words,
					       u64 cycles)
{
	record->cycles = cycles;
	record->kind_and_bytes = kind << (PROFILE_TRACE_KIND_SHIFT - 32) |
				 (u32)(words * sizeof(u64)) << (PROFILE_TRACE_BYTES_SHIFT - 32);
	return record->content;
}

/* If a new page is needed and none is free: true overwrites the oldest, false loses the event. */
extern bool trace_overwrites;

/*
 * ring.c: reserves a record of so many words, its head included, with a new page or an extension if
 * needed. Any context. content is NULL if recording is off or there is no room.
 */
struct trace_slot trace_reserve_slow(u64 words);

/*
 * ring.c: ends trace_commit() of a record up to end if other records follow it. Publishes these,
 * too, if the record itself is published. Any context.
 */
void trace_commit_nested(u64 end);

/*
 * Reserves a record by the fast path. Any context. bytes, of content, is a constant multiple of 8
 * and at most TRACE_MAX_BYTES - 8. content is NULL if the slow path is needed.
 */
static pf_always_inline struct trace_slot trace_reserve_quickly(u64 bytes)
{
	u64 words = bytes / sizeof(u64) + 1, head, start, after, low, high;
	struct trace_record *record;

	head = os_this_cpu_read(os_local(trace_ring).head);
	os_cycles_halves(&low, &high);
	start = head;
	asm("" : "+r"(start)); /* keeps the compiler from copying head twice */
	after = head + TRACE_HEAD(words, 1);
	if (pf_unlikely(os_this_cpu_below(os_local(trace_ring).limit, after)))
		return (struct trace_slot){ 0 };
	record = (void *)os_this_cpu_plus(os_local(trace_ring).bias, TRACE_POSITION_BYTES(head));
	if (pf_unlikely(!os_this_cpu_equal(os_local(trace_ring).high, high)) ||
	    pf_unlikely(!os_this_cpu_try_cmpxchg(os_local(trace_ring).head, &start, after)))
		return (struct trace_slot){ 0 };
	/*
	 * Pairs with pf_mb() in copy_page(): without it, a reader could copy a part of this record
	 * over an older page, and not find that head has passed that page.
	 */
	pf_wmb();
	return (struct trace_slot){ trace_write_head(record, PROFILE_TRACE_EVENT, words, low),
				    start, after, low | high << 32 };
}

/*
 * Reserves a record by the fast or the slow path. Any context. If content is not NULL, the caller
 * fills it in and calls trace_commit().
 */
static pf_always_inline struct trace_slot trace_reserve(u64 bytes)
{
	struct trace_slot slot = trace_reserve_quickly(bytes);

	if (pf_unlikely(!slot.content))
		return trace_reserve_slow(bytes / sizeof(u64) + 1);
	return slot;
}

/*
 * Completes a record. Any context. The record of the outermost writer begins at commit, so its
 * cmpxchg moves commit past the record. The cmpxchg of an interrupt's writer fails; the outermost
 * writer publishes its record later. Returns false if the caller must call
 * trace_commit_nested(slot.end), because interrupts have moved head.
 */
static pf_always_inline bool trace_commit_quickly(struct trace_slot slot)
{
	/*
	 * Pairs with the acquire in ring_reader_init(): without it, a reader could copy a record
	 * before its content.
	 */
	pf_wmb();
	(void)os_this_cpu_try_cmpxchg(os_local(trace_ring).commit, &slot.start, slot.end);
	return pf_likely(os_this_cpu_equal(os_local(trace_ring).head, slot.end));
}

static pf_always_inline void trace_commit(struct trace_slot slot)
{
	if (!trace_commit_quickly(slot))
		trace_commit_nested(slot.end);
}

/* Returns the full number of the event at head. nr: the full number of a recent event. */
static inline u64 trace_nr(u64 head, u64 nr)
{
	return nr + (head - nr) % PF_BIT(TRACE_NR_BITS);
}

/*
 * The controls: process context, one caller at a time.
 *
 * ring_set_bytes() sets the size of each CPU's ring and drops all events; 0 frees the rings. The
 * size is rounded up to a power of two of pages; all rings together take at most an eighth of the
 * machine's memory. Returns 0, or -OS_EINVAL or -OS_ENOMEM, which leave the rings as they were.
 */
int ring_set_bytes(u64 bytes);
u64 ring_fitting_bytes(u64 bytes); /* the size that bytes, not 0, are rounded to */
u64 ring_bytes(void);		   /* the size of each CPU's ring; 0: no memory */
void ring_record(bool on);
bool ring_is_recording(void);
/* Switch recording on one CPU, which is on from boot; the second one follows, for all CPUs. */
void ring_record_cpu(u32 cpu, bool on);
void ring_record_cpus_changed(void);
bool ring_records_cpu(u32 cpu);
void ring_set_overwrite(bool on);

/* A place in a ring, for example the one that a reader has reached. */
struct ring_place {
	u64 position; /* of the next record */
	u64 nr;	      /* the number of its event if no event is lost before it */
};

/* An event, as ring_read() returns it. */
struct ring_event {
	const struct profile_trace_event *content;
	u32 bytes; /* size of content */
	u64 cycles;
	u64 nr;	  /* its number */
	u64 lost; /* events missing between the event read before and this one */
};

/* A reader of one ring, with a copy of its current page. */
struct ring_reader {
	u32 cpu;
	struct ring_place place;
	u64 end;	   /* position at which to stop */
	u64 page_position; /* position of the page in words[]; ~0: none */
	u32 at, nr_words;  /* the next record in words[], and the number of valid words */
	u64 high;	   /* the upper half of the TSC at ->at, as bits 32 to 63 */
	u64 page_nr;	   /* the number of the event at ->at */
	u64 words[TRACE_PAGE_WORDS];
};

/* Returns the place of the oldest event that was neither cleared nor consumed. */
struct ring_place ring_oldest(u32 cpu);
/* Returns the place of the next event to be written. */
struct ring_place ring_newest(u32 cpu);

/*
 * Consumes the events before a place: it becomes the oldest, and writers may use the room before
 * it. Any context but NMI. from_position is where the reader began, at ring_oldest(), and place is
 * the one it has reached. nr_read: the events that it got. Returns false, and changes nothing, if
 * the oldest place is not from_position any more, as the ring was consumed or cleared meanwhile.
 */
bool ring_consume(u32 cpu, u64 from_position, const struct ring_place *place, u64 nr_read);
void ring_clear(void);

/* The numbers of events of a CPU since its ring was cleared. */
struct ring_totals {
	u64 nr;	     /* all events, the lost ones included */
	u64 nr_lost; /* events that found no room */
	u64 nr_read; /* consumed */
};

struct ring_totals ring_totals(u32 cpu);

/* Returns whether there is no complete event that was neither cleared nor consumed. */
bool ring_is_empty(u32 cpu);

/* Starts a reader at the oldest event. It ends after the last event that is complete now. */
void ring_reader_init(struct ring_reader *reader, u32 cpu);

/* Reads the next event, which is valid until the next call. Returns false if there is none. */
bool ring_read(struct ring_reader *reader, struct ring_event *event);

/*
 * Copies the reader's current page, from its head to the last complete record, to reader->words,
 * and moves on to the next page. Returns the number of valid words; 0: there is no page left.
 */
u32 ring_read_page(struct ring_reader *reader);

#endif
