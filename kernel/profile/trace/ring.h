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
 */

#include "../util.h"

#include <lego/profile_abi.h>

#define TRACE_PAGE_WORDS      (PROFILE_TRACE_PAGE_BYTES / sizeof(u64))
#define TRACE_PAGE_HEAD_WORDS 2
/* The longest record, with its head. */
#define TRACE_MAX_BYTES (PROFILE_TRACE_PAGE_BYTES - sizeof(struct profile_trace_page))

/*
 * In head and commit: a position in words, which never wraps in practice but is compared modulo
 * its bits; above it the lowest bits of the number of events.
 */
#define TRACE_POSITION_BITS  44
#define TRACE_POSITION(head) ((head) & (PF_BIT(TRACE_POSITION_BITS) - 1))
#define TRACE_ONE_EVENT	     PF_BIT(TRACE_POSITION_BITS)

#define TRACE_MAX_RING_BYTES (4ull << 20)

#define TRACE_NOT_RECORDING (~0ull)

struct trace_ring {
	u64 head;
	u64 commit;
	u64 high; /* of the TSC of the latest record; TRACE_NOT_RECORDING: take the slow path */
	u64 *words;
	u64 mask; /* words - 1 */
	u64 nr;	  /* the number of an event of late, in full */
	u64 tail; /* position of the oldest page that may not be overwritten */
};

OS_DECLARE_PER_CPU(struct trace_ring, trace_ring);

/* A reserved record. */
struct trace_slot {
	void *content; /* NULL: nothing is to be recorded */
	u64 start;     /* for trace_commit() */
};

/* When a page is needed and none is free: overwrite the oldest one, or lose the event. */
extern bool trace_overwrites;

/* ring.c: the rest of trace_reserve(): a new page, an extension, or no room. words: the record. */
struct trace_slot trace_reserve_slowly(u64 words);

static pf_always_inline u64 trace_record_head(u64 kind, u64 words, u64 cycles)
{
	return kind << PROFILE_TRACE_KIND_SHIFT | words * sizeof(u64) << PROFILE_TRACE_BYTES_SHIFT |
	       (u32)cycles;
}

/*
 * Reserves a record with so many bytes of content: a multiple of 8, at most TRACE_MAX_BYTES - 8.
 * The caller fills in the content and calls trace_commit(), unless content is NULL. Any context.
 */
static pf_always_inline struct trace_slot trace_reserve(u64 bytes)
{
	u64 words = bytes / sizeof(u64) + 1, head, cycles, *at;

	do {
		head = os_this_cpu_read(trace_ring.head);
		cycles = os_cycles();
		/* At the start of a page, where its head goes, or without room in it. */
		if (pf_unlikely((head - 1) % TRACE_PAGE_WORDS > TRACE_PAGE_WORDS - 1 - words))
			return trace_reserve_slowly(words);
		if (pf_unlikely(cycles >> 32 != os_this_cpu_read(trace_ring.high)))
			return trace_reserve_slowly(words);
	} while (pf_unlikely(os_this_cpu_cmpxchg(trace_ring.head, head,
						 head + TRACE_ONE_EVENT + words) != head));
	at = os_this_cpu_read(trace_ring.words) + (head & os_this_cpu_read(trace_ring.mask));
	*at = trace_record_head(PROFILE_TRACE_EVENT, words, cycles);
	return (struct trace_slot){ at + 1, head };
}

/*
 * Completes a record. The outermost writer, whose record begins where all is complete, publishes
 * all up to head: its own record and those of its interrupts. An interrupt that comes while it does
 * so is not outermost, or publishes by itself; in both cases head has moved, so it looks again.
 */
static pf_always_inline void trace_commit(u64 start)
{
	u64 head;

	/* Pairs with the acquire in ring_read.c. On x86 stores are seen in their order. */
	pf_barrier();
	if (os_this_cpu_read(trace_ring.commit) != start)
		return;
	do {
		head = os_this_cpu_read(trace_ring.head);
		os_this_cpu_write(trace_ring.commit, head);
	} while (pf_unlikely(head != os_this_cpu_read(trace_ring.head)));
}

/*
 * Controls. Process context, one caller at a time. ring_set_bytes() allocates the rings, or drops
 * all that is in them and allocates others; the size is rounded up to a power of two of pages, and
 * down to what the memory of the machine is fit for; 0 frees them. Returns 0, -OS_EINVAL or
 * -OS_ENOMEM; then the rings are as they were.
 */
int ring_set_bytes(u64 bytes);
u64 ring_bytes(void); /* of each CPU's ring; 0: none yet */
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
 * not the oldest any more, because somebody else has consumed or cleared. Any context but NMI.
 */
bool ring_consume(u32 cpu, u64 from_position, const struct ring_place *place);
void ring_clear(void);

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
