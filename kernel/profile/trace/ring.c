// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slow path of a write, and the memory of the rings. The slow path handles four cases: the
 * write begins a page, the upper half of the TSC has changed, there is no room, or recording is
 * off. Like the fast path, it reserves all that it needs by one cmpxchg: padding, the page's head
 * or an extension, and the record. It costs 230 instructions at the start of a page.
 *
 * A lost event takes a number, but no room. The rest of its page becomes padding, so the next event
 * begins a page. The head of that page has the event's number, so readers see every gap.
 */

#include "ring.h"

#define DEFAULT_SHARE 8 /* all rings take at most an eighth of the machine's memory */
#define MIN_BYTES     (2 * PROFILE_TRACE_PAGE_BYTES)

OS_DEFINE_PER_CPU(struct trace_ring, trace_ring);
bool trace_overwrites = true;

static bool recording;
static u64 ring_size_bytes;

/* The reservation of a slow write. */
struct plan {
	u64 cycles;
	u64 limit, bias, head; /* their values before */
	u64 after;	       /* the value of head afterwards */
	u64 start;	       /* position of the page's head, or of the extension */
	u64 nr;		       /* the number of the event */
	u32 room;	       /* words left in the current page */
	bool new_page, lost;
};

static bool records_here(void)
{
	return pf_read_once(recording) && !os_this_cpu_read(os_local(trace_ring).is_off);
}

/*
 * Returns whether the page at a position may be written. It must not hold a record of an
 * interrupted writer. Unless trace_overwrites is set, it must not hold an event that readers may
 * still want.
 */
static bool page_is_free(u64 position)
{
	u64 size = os_this_cpu_read(os_local(trace_ring).mask) + 1;
	u64 oldest = TRACE_POSITION(os_this_cpu_read(os_local(trace_ring).commit)) &
		     ~(TRACE_PAGE_WORDS - 1);
	u64 end = position + TRACE_PAGE_WORDS;

	if (trace_wrap(end - oldest) > size)
		return false;
	return pf_read_once(trace_overwrites) ||
	       trace_wrap(end - os_this_cpu_read(os_local(trace_ring).tail)) <= size;
}

static void make_plan(struct plan *p, u64 words)
{
	/*
	 * limit and bias are read before head. An interrupt that moves them later moves head, too,
	 * so the cmpxchg of head fails. Read after head, they could be newer than it.
	 */
	p->limit = os_this_cpu_read(os_local(trace_ring).limit);
	p->bias = os_this_cpu_read(os_local(trace_ring).bias);
	p->head = os_this_cpu_read(os_local(trace_ring).head);
	p->nr = trace_nr(p->head, os_this_cpu_read(os_local(trace_ring).nr));
	p->cycles = os_cycles();
	p->start = TRACE_POSITION(p->head);
	p->room = -p->start % TRACE_PAGE_WORDS;
	p->new_page = p->room < words + TRACE_PAGE_HEAD_WORDS;
	if (p->new_page)
		p->start = trace_wrap(p->start + p->room);
	p->lost = p->new_page && !page_is_free(p->start);
	p->after =
		TRACE_HEAD(p->start + (p->lost ? 0 : TRACE_PAGE_HEAD_WORDS + words), p->head + 1);
}

/* Prepares the fast path for the events that follow. */
static void remember(const struct plan *p)
{
	u64 page = p->start & ~(TRACE_PAGE_WORDS - 1);
	u64 lap = p->start & ~os_this_cpu_read(os_local(trace_ring).mask);

	os_this_cpu_write(os_local(trace_ring).nr, p->nr);
	os_this_cpu_write(os_local(trace_ring).high, p->cycles >> 32);
	if (p->lost)
		return;
	os_this_cpu_cmpxchg(os_local(trace_ring).bias, p->bias,
			    (u64)os_this_cpu_read(os_local(trace_ring).words) - lap * sizeof(u64));
	os_this_cpu_cmpxchg(os_local(trace_ring).limit, p->limit,
			    TRACE_LIMIT(page + TRACE_PAGE_WORDS));
	/*
	 * Pairs with stop_cpu(), an interrupt that may have come before limit was set. Without the
	 * second look, the fast path would go on while recording is off.
	 */
	pf_barrier();
	if (!records_here())
		os_this_cpu_write(os_local(trace_ring).limit, 0);
}

static void *at(u64 position)
{
	return os_this_cpu_read(os_local(trace_ring).words) +
	       (position & os_this_cpu_read(os_local(trace_ring).mask));
}

pf_noinline struct trace_slot trace_reserve_slow(u64 words)
{
	struct plan p;
	u64 *first;

	do {
		if (!records_here())
			return (struct trace_slot){ 0 };
		make_plan(&p, words);
	} while (!os_this_cpu_try_cmpxchg(os_local(trace_ring).head, &p.head, p.after));
	pf_wmb(); /* as in trace_reserve_quickly() */

	if (p.new_page && p.room)
		trace_write_head(at(TRACE_POSITION(p.head)), PROFILE_TRACE_PADDING, p.room,
				 p.cycles);
	remember(&p);
	if (p.lost) {
		os_this_cpu_inc(os_local(trace_ring).nr_lost);
		trace_commit((struct trace_slot){ .start = p.head, .end = p.after });
		return (struct trace_slot){ 0 };
	}
	first = at(p.start);
	if (p.new_page) {
		first[0] = p.cycles;
		first[1] = p.nr;
	} else {
		u64 *whole = trace_write_head((void *)first, PROFILE_TRACE_EXTENSION,
					      TRACE_PAGE_HEAD_WORDS, p.cycles);

		*whole = p.cycles;
	}
	return (struct trace_slot){ trace_write_head((void *)(first + TRACE_PAGE_HEAD_WORDS),
						     PROFILE_TRACE_EVENT, words, p.cycles),
				    p.head, p.after, p.cycles };
}

/*
 * Moves commit up to head. An interrupt after commit has reached head publishes its own records. An
 * earlier one moves head, so the loop reads head again.
 */
pf_noinline void trace_commit_nested(u64 end)
{
	u64 head;

	do {
		head = os_this_cpu_read(os_local(trace_ring).head);
		if (os_this_cpu_cmpxchg(os_local(trace_ring).commit, end, head) != end)
			return;
		end = head;
	} while (!os_this_cpu_equal(os_local(trace_ring).head, end));
}

static void stop_cpu(void *unused)
{
	os_this_cpu_write(os_local(trace_ring).limit, 0);
}

void ring_record(bool on)
{
	pf_write_once(recording, on && ring_size_bytes);
	if (!on)
		os_run_on_all_cpus(stop_cpu);
}

void ring_record_cpu(u32 cpu, bool on)
{
	pf_write_once(os_per_cpu(trace_ring, cpu).is_off, !on);
}

void ring_record_cpus_changed(void)
{
	os_run_on_all_cpus(stop_cpu); /* those that record go on by the slow path */
}

bool ring_records_cpu(u32 cpu)
{
	return !pf_read_once(os_per_cpu(trace_ring, cpu).is_off);
}

bool ring_is_recording(void)
{
	return pf_read_once(recording);
}

/*
 * Ends the use of a CPU's ring by its writers, so that its memory can be replaced. Runs on that
 * CPU, with recording off. Moves head, so that a writer that has not reserved yet must try again,
 * and finds recording off. If a writer has reserved already, sets any_busy instead, and
 * retire_rings() tries again. The events in the ring can no longer be read.
 */
static bool any_busy;

static void retire_ring(void *unused)
{
	u64 head = os_this_cpu_read(os_local(trace_ring).head);

	if (os_this_cpu_read(os_local(trace_ring).commit) != head) {
		pf_write_once(any_busy, true);
		return;
	}
	head = TRACE_HEAD((TRACE_POSITION(head) | (TRACE_PAGE_WORDS - 1)) + 1, head);
	os_this_cpu_write(os_local(trace_ring).head, head);
	os_this_cpu_write(os_local(trace_ring).commit, head);
}

static void retire_rings(void)
{
	for (;;) {
		pf_write_once(any_busy, false);
		os_run_on_all_cpus(retire_ring);
		if (!pf_read_once(any_busy))
			return;
		os_relax_and_yield();
	}
}

static void free_all(u64 **rings)
{
	unsigned int cpu;

	os_for_each_cpu(cpu)
		os_free(rings[cpu]);
	os_free(rings);
}

/* Allocates a ring for each CPU, or an array of NULL for 0 bytes. Returns NULL without memory. */
static u64 **allocate(u64 bytes)
{
	unsigned int cpu, nr = 0;
	u64 **rings;

	os_for_each_cpu(cpu)
		nr = cpu + 1;
	rings = os_zalloc(nr * sizeof(*rings));
	if (!rings)
		return NULL;
	os_for_each_cpu(cpu) {
		rings[cpu] = bytes ? os_alloc(bytes) : NULL;
		if (bytes && !rings[cpu]) {
			free_all(rings);
			return NULL;
		}
	}
	return rings;
}

u64 ring_fitting_bytes(u64 bytes)
{
	u64 fitting = MIN_BYTES, nr_rings = 0;
	unsigned int cpu;

	os_for_each_cpu(cpu)
		nr_rings++;
	while (fitting < bytes && 2 * fitting * nr_rings <= os_memory_bytes() / DEFAULT_SHARE)
		fitting *= 2;
	return fitting;
}

int ring_set_bytes(u64 bytes)
{
	bool was_recording = recording;
	unsigned int cpu;
	u64 **rings;

	if (bytes > TRACE_MAX_RING_BYTES)
		return -OS_EINVAL;
	bytes = bytes ? ring_fitting_bytes(bytes) : 0;
	rings = allocate(bytes);
	if (!rings)
		return -OS_ENOMEM;
	ring_record(false);
	/* The first memory has no writers. Readers do not hold the rings, so head must stay. */
	if (ring_size_bytes)
		retire_rings();
	os_for_each_cpu(cpu) {
		struct trace_ring *ring = &os_per_cpu(trace_ring, cpu);
		u64 *old = ring->words;

		ring->words = rings[cpu];
		ring->mask = bytes ? bytes / sizeof(u64) - 1 : 0;
		rings[cpu] = old;
	}
	free_all(rings);
	ring_size_bytes = bytes;
	ring_clear();
	ring_record(was_recording);
	return 0;
}

u64 ring_bytes(void)
{
	return ring_size_bytes;
}
