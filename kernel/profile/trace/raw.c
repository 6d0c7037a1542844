// SPDX-License-Identifier: BSD-2-Clause
/*
 * per_cpu/cpu<n>/trace_pipe_raw: the events of a CPU in pages as Linux's ring buffer has them, for
 * trace-cmd. A page is made of the CPU's ring when it is read. Then its events are consumed, as
 * those that trace_pipe shows.
 *
 * Format: Documentation/trace/ring-buffer-design.rst of Linux, and the texts of events/header_page
 * and events/header_event.
 */

#include "trace.h"

#define MISSED_EVENTS PF_BIT(31) /* in commit: events were lost before this page */
#define MISSED_STORED PF_BIT(30) /* their number follows the last event */

#define DELTA_BITS	27
#define TIME_EXTEND	30
#define MAX_SHORT_BYTES (28 * sizeof(u32)) /* of an event whose length is in its first word */

/* A page that is not full waits for so long after its first event. */
#define WAIT_NS 100000000

struct raw_page {
	u64 time_ns; /* of its first event */
	u64 commit;  /* bytes of data that are used, and the two bits above */
	char data[TRACE_RAW_PAGE_BYTES - 2 * sizeof(u64)];
};

_Static_assert(sizeof(struct raw_page) == TRACE_RAW_PAGE_BYTES, "as Linux has it");

struct page_writer {
	struct ring_reader reader;
	struct raw_page page;
	u32 used;		    /* bytes of data */
	u64 last_ns;		    /* the time of the last event */
	u64 lost;		    /* events before the page */
	u64 nr;			    /* events */
	bool is_full;		    /* the next event is not for this page */
	struct ring_place from, to; /* where the page's events begin and end in the ring */
};

static void put_word(struct page_writer *w, u32 word)
{
	memcpy(w->page.data + w->used, &word, sizeof(word));
	w->used += sizeof(word);
}

/* Adds an event. Returns false if it is not for this page. */
static bool add_event(struct page_writer *w, const struct ring_event *event)
{
	u64 ns = os_cycles_to_ns(event->cycles), delta = w->nr ? ns - w->last_ns : 0;
	bool extends = delta >> DELTA_BITS, is_long = event->bytes > MAX_SHORT_BYTES;
	u32 size = event->bytes + sizeof(u32) * (1 + 2 * extends + is_long);
	/* Room for the number of lost events, except behind an event that is as long as a page. */
	u32 end = sizeof(w->page.data) - (w->nr && w->lost ? sizeof(u64) : 0);

	if (size > end - w->used || delta >> (DELTA_BITS + 32) || (w->nr && event->lost))
		return false;
	if (!w->nr++) {
		w->page.time_ns = ns;
		w->lost = event->lost;
	}
	if (extends) {
		put_word(w, (u32)delta << (32 - DELTA_BITS) | TIME_EXTEND);
		put_word(w, delta >> DELTA_BITS);
		delta = 0;
	}
	put_word(w, (u32)delta << (32 - DELTA_BITS) | (is_long ? 0 : event->bytes / sizeof(u32)));
	if (is_long)
		put_word(w, event->bytes + sizeof(u32));
	memcpy(w->page.data + w->used, event->content, event->bytes);
	w->used += event->bytes;
	w->last_ns = ns;
	return true;
}

/* Fills a page from the CPU's oldest events on. */
static void fill(struct page_writer *w, u32 cpu)
{
	struct ring_event event;

	ring_reader_init(&w->reader, cpu);
	w->from = w->to = w->reader.place;
	while (!w->is_full && ring_read(&w->reader, &event)) {
		w->is_full = !add_event(w, &event);
		if (!w->is_full)
			w->to = w->reader.place;
	}
	w->page.commit = w->used;
	if (!w->lost)
		return;
	w->page.commit |= MISSED_EVENTS;
	if (sizeof(w->page.data) - w->used < sizeof(u64))
		return;
	w->page.commit |= MISSED_STORED;
	memcpy(w->page.data + w->used, &w->lost, sizeof(u64));
}

/* Returns whether the page is worth reading: full, or old, or all that the reader can get. */
static bool is_ready(const struct page_writer *w, bool waits)
{
	return w->nr &&
	       (w->is_full || !waits || os_cycles_to_ns(os_cycles()) - w->page.time_ns >= WAIT_NS);
}

bool trace_show_next_raw(os_text_t *text, const void *cpu, bool waits)
{
	/* Read before the events, so those recorded until the switch are shown before the end. */
	bool recording = trace_is_recording(), looked;
	struct page_writer *w;

	if (!ring_bytes())
		return recording;
	w = os_zalloc(sizeof(*w));
	looked = w != NULL;
	poll_lock(&trace_lock);
	if (w)
		fill(w, TRACE_CPU_OF(cpu));
	if (w && is_ready(w, recording && waits)) {
		looked = os_text_append(text, &w->page, sizeof(w->page));
		if (looked)
			ring_consume(TRACE_CPU_OF(cpu), w->from.position, &w->to, w->nr);
	}
	poll_unlock(&trace_lock);
	os_free(w);
	return recording || !looked;
}

int trace_show_header_page(os_text_t *text, const void *unused)
{
	os_text_printf(text,
		       "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		       "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
		       "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		       "\tfield: char data;\toffset:16;\tsize:%lu;\tsigned:1;\n",
		       sizeof(((struct raw_page *)NULL)->data));
	return 0;
}

int trace_show_header_event(os_text_t *text, const void *unused)
{
	os_text_printf(text, "# compressed entry header\n"
			     "\ttype_len    :    5 bits\n"
			     "\ttime_delta  :   27 bits\n"
			     "\tarray       :   32 bits\n\n"
			     "\tpadding     : type == 29\n"
			     "\ttime_extend : type == 30\n"
			     "\ttime_stamp : type == 31\n"
			     "\tdata max type_len  == 28\n");
	return 0;
}
