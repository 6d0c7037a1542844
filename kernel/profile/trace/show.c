// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the rings as text. Merges the events of all CPUs by time: the next line is the earliest of
 * the next events of each CPU. The file `trace` shows the events that there were when it was
 * opened; trace_pipe consumes the events that it shows. Writers are never stopped.
 */

#include "trace.h"

#include "text.h"

#define EVENTS_A_STEP 64

/* One CPU of a merge. */
struct source {
	struct ring_reader reader;
	struct ring_event event;  /* the next one, if has_event */
	struct ring_place before; /* the place of the reader before that event */
	u64 from;		  /* the position where the reader began */
	u64 nr_read;		  /* events read, the next one included */
	bool has_event;
	u64 *state; /* the tracer's memory of earlier lines */
	u64 own_state[TRACER_STATE_WORDS];
};

/*
 * The tracer's memory for trace_pipe, which continues where the last read ended. Guarded by
 * trace_lock.
 */
static OS_DEFINE_PER_CPU(u64[TRACER_STATE_WORDS], pipe_state);

struct merge {
	bool head_is_printed;
	const void *cpu; /* TRACE_CPU(), or NULL: all CPUs */
	u32 nr_sources;
	struct source sources[];
};

static void fetch(struct source *source)
{
	source->before = source->reader.place;
	source->has_event = ring_read(&source->reader, &source->event);
	source->nr_read += source->has_event;
}

/* Returns whether a file with this argument shows the events of a CPU. */
static bool is_shown(const void *argument, u32 cpu)
{
	return !argument || TRACE_CPU_OF(argument) == cpu;
}

/* Begins a merge and holds the rings. Called with trace_lock held. Returns NULL without memory. */
static struct merge *begin_merge(const void *argument)
{
	u32 cpu, nr = 0;
	struct merge *merge;

	os_for_each_cpu(cpu)
		nr = cpu + 1;
	merge = os_alloc(sizeof(*merge) + nr * sizeof(merge->sources[0]));
	if (!merge)
		return NULL;
	trace_pin_rings(); /* succeeds with trace_lock held */
	merge->head_is_printed = false;
	merge->cpu = argument;
	merge->nr_sources = nr;
	os_for_each_cpu(cpu) {
		struct source *source = &merge->sources[cpu];

		ring_reader_init(&source->reader, cpu);
		source->from = source->reader.place.position;
		source->nr_read = 0;
		source->state = source->own_state;
		memset(source->own_state, 0, sizeof(source->own_state));
		source->has_event = false;
		if (is_shown(argument, cpu))
			fetch(source);
	}
	return merge;
}

static void end_merge(void *data)
{
	trace_unpin_rings();
	os_free(data);
}

static struct source *earliest(struct merge *merge)
{
	struct source *first = NULL;

	for (u32 i = 0; i < merge->nr_sources; i++) {
		struct source *source = &merge->sources[i];

		if (source->has_event && (!first || source->event.cycles < first->event.cycles))
			first = source;
	}
	return first;
}

/* Prints the next event of a CPU, and fetches the one after it. */
static void print_event(os_text_t *text, struct source *source)
{
	const struct tracer *tracer = trace_current_tracer();
	struct ring_event event = source->event;
	u64 copy[8]; /* fetching the next event may overwrite this one */
	struct tracer_line line = { source->reader.cpu, &event, .state = source->state };
	bool looks_ahead = tracer->print_line && event.bytes <= sizeof(copy);

	if (looks_ahead) {
		memcpy(copy, event.content, event.bytes);
		event.content = (const void *)copy;
		fetch(source);
		line.next = source->has_event ? &source->event : NULL;
	}
	if (event.lost)
		os_text_printf(text, "CPU:%u [LOST %lu EVENTS]\n", line.cpu, event.lost);
	if (!tracer->print_line || !tracer->print_line(text, &line))
		trace_print_event(text, line.cpu, &event);
	if (!looks_ahead || line.takes_next)
		fetch(source);
}

/* Prints up to EVENTS_A_STEP events. Returns false if there are none. */
static bool print_some(os_text_t *text, struct merge *merge)
{
	struct source *source;
	u32 nr = 0;

	for (; nr < EVENTS_A_STEP && (source = earliest(merge)); nr++)
		print_event(text, source);
	return nr;
}

/* The events of a CPU that are still in its ring. */
struct kept {
	u64 nr, bytes;
	u64 first_cycles; /* time of the oldest event, or 0 */
};

static struct kept count_kept(struct ring_reader *reader, u32 cpu)
{
	struct kept kept = { 0 };
	struct ring_event event;

	ring_reader_init(reader, cpu);
	while (ring_read(reader, &event)) {
		if (!kept.nr++)
			kept.first_cycles = event.cycles;
		kept.bytes += event.bytes + sizeof(u64);
	}
	return kept;
}

static void print_head(os_text_t *text, const void *argument)
{
	struct ring_reader *reader = os_alloc(sizeof(*reader));
	const struct tracer *tracer = trace_current_tracer();
	u64 nr_kept = 0, nr_written = 0;
	u32 cpu;

	os_for_each_cpu(cpu) {
		if (!is_shown(argument, cpu))
			continue;
		nr_written += ring_newest(cpu).nr - ring_oldest(cpu).nr;
		if (reader)
			nr_kept += count_kept(reader, cpu).nr;
	}
	os_free(reader);
	if (tracer->print_head) {
		os_text_printf(text, "# tracer: %s\n", tracer->name);
		tracer->print_head(text);
	} else {
		trace_print_head(text, tracer->name, nr_kept, nr_written);
	}
}

static bool show_more(os_text_t *text, void *data)
{
	struct merge *merge = data;

	if (merge->head_is_printed)
		return print_some(text, merge);
	merge->head_is_printed = true;
	print_head(text, merge->cpu);
	return true;
}

int trace_show(os_text_t *text, const void *cpu)
{
	struct merge *merge;

	poll_lock(&trace_lock);
	merge = begin_merge(cpu);
	poll_unlock(&trace_lock);
	if (!merge)
		return -OS_ENOMEM;
	os_text_stream(text, show_more, end_merge, merge);
	return 0;
}

/*
 * Prints and consumes up to EVENTS_A_STEP events. Called with trace_lock held, so that each event
 * is shown once. Returns false without memory.
 */
static bool take_some(os_text_t *text, const void *cpu)
{
	struct merge *merge = begin_merge(cpu);

	if (!merge)
		return false;
	for (u32 i = 0; i < merge->nr_sources; i++)
		merge->sources[i].state = os_per_cpu(pipe_state, i);
	print_some(text, merge);
	for (u32 i = 0; i < merge->nr_sources; i++) {
		struct source *source = &merge->sources[i];

		/* Does nothing if the ring was cleared meanwhile: its oldest place has moved. */
		ring_consume(i, source->from,
			     source->has_event ? &source->before : &source->reader.place,
			     source->nr_read - source->has_event);
	}
	end_merge(merge);
	return true;
}

bool trace_show_next(os_text_t *text, const void *cpu, bool waits)
{
	/* Read before the events, so those recorded until the switch are shown before the end. */
	bool recording = trace_is_recording(), looked;

	if (!ring_bytes())
		return recording;
	poll_lock(&trace_lock);
	looked = take_some(text, cpu);
	poll_unlock(&trace_lock);
	return recording || !looked;
}

bool trace_has_next(const void *argument)
{
	bool has_next = false;
	u32 cpu;

	os_for_each_cpu(cpu)
		has_next |= is_shown(argument, cpu) && !ring_is_empty(cpu);
	return has_next;
}

void trace_show_restart(void)
{
	u32 cpu;

	os_for_each_cpu(cpu)
		memset(os_per_cpu(pipe_state, cpu), 0, sizeof(os_per_cpu(pipe_state, cpu)));
}

static void print_time(os_text_t *text, const char *what, u64 cycles)
{
	u64 us = os_cycles_to_ns(cycles) / 1000;

	os_text_printf(text, "%s: %5lu.%06lu\n", what, us / 1000000, us % 1000000);
}

int trace_show_stats(os_text_t *text, const void *argument)
{
	struct ring_reader *reader = os_alloc(sizeof(*reader));
	u32 cpu = TRACE_CPU_OF(argument);
	struct ring_totals totals;
	struct kept kept;
	u64 nr_gone;

	if (!reader)
		return -OS_ENOMEM;
	poll_lock(&trace_lock);
	totals = ring_totals(cpu);
	kept = count_kept(reader, cpu);
	poll_unlock(&trace_lock);
	os_free(reader);
	/* Later events may be in kept, but not in totals, so the sum may exceed totals.nr. */
	nr_gone = totals.nr_lost + totals.nr_read + kept.nr;
	os_text_printf(text, "entries: %lu\noverrun: %lu\ncommit overrun: 0\nbytes: %lu\n", kept.nr,
		       totals.nr > nr_gone ? totals.nr - nr_gone : 0, kept.bytes);
	print_time(text, "oldest event ts", kept.first_cycles);
	print_time(text, "now ts", os_cycles());
	os_text_printf(text, "dropped events: %lu\nread events: %lu\n", totals.nr_lost,
		       totals.nr_read);
	return 0;
}
