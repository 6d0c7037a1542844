/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_RING_H
#define PROFILE_TRACE_RING_H

/*
 * The rings of events: one for each CPU, of pages of 4096 bytes (<lego/profile_abi.h>). A CPU
 * writes its own ring from any context, NMI included, without a lock and without a locked
 * instruction; an interrupt in the middle of a write may write, too. Readers copy.
 *
 * head is the position where the next record goes, and the number of the next event. A writer
 * reserves by one cmpxchg of it. The TSC is read in between, so a writer that was interrupted tries
 * again, and times never run backwards. commit follows when the outermost writer is done: what lies
 * before it is complete. The seam's os_this_cpu_*() must be single instructions, and nothing may
 * move the writer to another CPU between trace_reserve() and trace_commit().
 *
 * A write is quick inside a page: limit is the page's end, and bias turns a position into an
 * address. The writer that begins a page moves bias, then limit, each by a cmpxchg from what it was
 * before head was read. If one fails, an interrupt has begun a later page. So where limit is the
 * end of the page that head is in, bias fits, too; elsewhere limit is below head.
 */

#include "../util.h"

#include <lego/profile_abi.h>

#define TRACE_PAGE_WORDS      (PROFILE_TRACE_PAGE_BYTES / sizeof(u64))
#define TRACE_PAGE_HEAD_WORDS 2
/* The longest record, with its head. */
#define TRACE_MAX_BYTES (PROFILE_TRACE_PAGE_BYTES - sizeof(struct profile_trace_page))

/*
 * In head and commit: a position in words, which never wraps in practice but is compared modulo
 * its bits; below it three zeros, so that a shift turns words into bytes; below them the number of
 * events. The slow path cuts that to TRACE_NR_BITS; one bit more holds those of the rest of a page.
 */
#define TRACE_NR_BITS	     17
#define TRACE_COUNT_BITS     (TRACE_NR_BITS + 1 + 3)
#define TRACE_POSITION_BITS  (64 - TRACE_COUNT_BITS)
#define TRACE_POSITION(head) ((head) >> TRACE_COUNT_BITS)
#define TRACE_HEAD(position, nr) \
	((u64)(position) << TRACE_COUNT_BITS | (nr) % PF_BIT(TRACE_NR_BITS))
/* The highest head at a position. */
#define TRACE_LIMIT(position)	   (TRACE_HEAD(position, 0) | (PF_BIT(TRACE_COUNT_BITS) - 1))
#define TRACE_POSITION_BYTES(head) ((head) >> (TRACE_COUNT_BITS - 3))

/* Returns the position, or the distance, modulo its bits. */
static inline u64 trace_wrap(u64 position)
{
	return position % PF_BIT(TRACE_POSITION_BITS);
}

#define TRACE_MAX_RING_BYTES (4ull << 20)

struct trace_ring {
	u64 head;
	u64 commit;
	u64 limit; /* a quick write may move head up to here; 0 while nothing is recorded */
	u64 bias;  /* the address of a position, less its bytes */
	u64 high;  /* of the TSC of the latest record */
	u64 *words;
	u64 mask;    /* words - 1 */
	u64 nr;	     /* the number of an event of late, in full */
	u64 tail;    /* position of the oldest page that may not be overwritten */
	u64 nr_lost; /* events for which there was no room */
};

OS_DECLARE_PER_CPU(struct trace_ring, trace_ring);

/* A reserved record. */
struct trace_slot {
	void *content;	/* NULL: nothing is to be recorded */
	u64 start, end; /* heads, for trace_commit() */
	u64 cycles;	/* the record's time */
};

/* A record: its head as two words, for constants need no register then. */
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

/* When a page is needed and none is free: overwrite the oldest one, or lose the event. */
extern bool trace_overwrites;

/* ring.c: the rest of trace_reserve(): a new page, an extension, or no room. words: the record. */
struct trace_slot trace_reserve_slowly(u64 words);

/*
 * ring.c: the rest of trace_commit(), of a record up to end: there are records behind it. Publishes
 * them if the record is published.
 */
void trace_commit_nested(u64 end);

/*
 * Reserves a record with so many bytes of content, a constant: a multiple of 8, at most
 * TRACE_MAX_BYTES - 8. content is NULL if it takes the slow path. Any context.
 */
static pf_always_inline struct trace_slot trace_reserve_quickly(u64 bytes)
{
	u64 words = bytes / sizeof(u64) + 1, head, start, after, low, high;
	struct trace_record *record;

	head = os_this_cpu_read(trace_ring.head);
	os_cycles_halves(&low, &high);
	start = head;
	asm("" : "+r"(start)); /* or the compiler would copy head twice */
	after = head + TRACE_HEAD(words, 1);
	if (pf_unlikely(os_this_cpu_below(trace_ring.limit, after)))
		return (struct trace_slot){ 0 };
	record = (void *)os_this_cpu_plus(trace_ring.bias, TRACE_POSITION_BYTES(head));
	if (pf_unlikely(!os_this_cpu_equal(trace_ring.high, high)) ||
	    pf_unlikely(!os_this_cpu_try_cmpxchg(trace_ring.head, &start, after)))
		return (struct trace_slot){ 0 };
	return (struct trace_slot){ trace_write_head(record, PROFILE_TRACE_EVENT, words, low),
				    start, after, low | high << 32 };
}

/*
 * The same, by either path. The caller fills in the content and calls trace_commit(), unless
 * content is NULL.
 */
static pf_always_inline struct trace_slot trace_reserve(u64 bytes)
{
	struct trace_slot slot = trace_reserve_quickly(bytes);

	if (pf_unlikely(!slot.content))
		return trace_reserve_slowly(bytes / sizeof(u64) + 1);
	return slot;
}

/*
 * Completes a record. The outermost writer, whose record begins where all is complete, publishes
 * all up to head: its own record and those of its interrupts. The others' cmpxchg does nothing.
 * Returns false if the caller has to call trace_commit_nested(slot.end).
 */
static pf_always_inline bool trace_commit_quickly(struct trace_slot slot)
{
	/* Pairs with the acquire in ring_read.c. On x86 stores are seen in their order. */
	pf_barrier();
	(void)os_this_cpu_try_cmpxchg(trace_ring.commit, &slot.start, slot.end);
	return pf_likely(os_this_cpu_equal(trace_ring.head, slot.end));
}

static pf_always_inline void trace_commit(struct trace_slot slot)
{
	if (!trace_commit_quickly(slot))
		trace_commit_nested(slot.end);
}

/* Returns the number, in full, of the event that head is at: nr is that of one shortly before. */
static inline u64 trace_nr(u64 head, u64 nr)
{
	return nr + (head - nr) % PF_BIT(TRACE_NR_BITS);
}

/*
 * Controls. Process context, one caller at a time. ring_set_bytes() allocates the rings, or drops
 * all that is in them and allocates others; the size is rounded up to a power of two of pages, and
 * down to what the memory of the machine is fit for; 0 frees them. Returns 0, -OS_EINVAL or
 * -OS_ENOMEM; then the rings are as they were.
 */
int ring_set_bytes(u64 bytes);
u64 ring_fitting_bytes(u64 bytes); /* the size that this is rounded to; not 0 */
u64 ring_bytes(void);		   /* of each CPU's ring; 0: none yet */
void ring_record(bool on);
bool ring_is_recording(void);
void ring_set_overwrite(bool on);

/* How far a reader has read in a ring. */
struct ring_place {
	u64 position; /* of the next record */
	u64 nr;	      /* the number that its event has if none is lost */
};

/* An event, as a reader gets it. */
struct ring_event {
	const struct profile_trace_event *content;
	u32 bytes; /* of content */
	u64 cycles;
	u64 nr;	  /* its number */
	u64 lost; /* events before it, and behind the one before, that are not there */
};

/* Reads one ring: a copy of the page that it is in. */
struct ring_reader {
	u32 cpu;
	struct ring_place place;
	u64 end;	   /* position at which to stop */
	u64 page_position; /* of the page in words[]; ~0: none */
	u32 at, nr_words;  /* in words[] */
	u64 high;	   /* of the TSC, in its place */
	u64 page_nr;	   /* the number of the event at ->at */
	u64 words[TRACE_PAGE_WORDS];
};

/* Returns the place of the oldest event that was neither cleared nor consumed. */
struct ring_place ring_oldest(u32 cpu);
/* Returns the place of the next event. */
struct ring_place ring_newest(u32 cpu);

/*
 * Makes what is before a place free for new events: the place is now the oldest. It must be one
 * that the reader of this ring has reached since ring_oldest() was from. Returns false if from is
 * not the oldest any more, because somebody else has consumed or cleared. nr_read: how many events
 * the reader got. Any context but NMI.
 */
bool ring_consume(u32 cpu, u64 from_position, const struct ring_place *place, u64 nr_read);
void ring_clear(void);

/* Events of a CPU since its ring was cleared. */
struct ring_totals {
	u64 nr;	     /* all of them, the lost ones included */
	u64 nr_lost; /* there was no room */
	u64 nr_read; /* consumed */
};

struct ring_totals ring_totals(u32 cpu);

/* Begins at the oldest event, and ends with what is complete now. */
void ring_reader_init(struct ring_reader *reader, u32 cpu);

/* Returns the next event. It is valid until the next call. false: there is none. */
bool ring_read(struct ring_reader *reader, struct ring_event *event);

/*
 * Copies the rest of the page that the reader is in, from its head on, and moves to the next page.
 * Returns how many words of reader->words are valid; 0: there is none.
 */
u32 ring_read_page(struct ring_reader *reader);

#endif
