// SPDX-License-Identifier: BSD-2-Clause
/*
 * Switches events, tracers, filters, call chains and recording, and resizes the rings. The rings
 * get their memory when the first event or tracer is switched on, or a marker is written. All
 * switches are serialized by one lock. files.c calls these functions for /sys/kernel/tracing.
 */

#include "trace.h"

#include "../hook_keys.h"
#include "../words.h"
#include "tasks.h"

#define DEFAULT_BYTES (1ull << 20)
#define WORD_BYTES    96

static const struct tracer nop = { .name = "nop" };

struct poll_lock trace_lock; /* guards all below but nr_holders */
static bool wants_recording = true;
static u64 wanted_bytes = DEFAULT_BYTES;
static const struct tracer *tracer = &nop;
/*
 * The number of readers that hold the rings; RESIZING is added, with trace_lock held, while they
 * are resized, and readers without the lock give up then. Changed by atomic operations only.
 */
#define RESIZING 0x80000000u
static u32 nr_holders;
static pf_flag_t is_in_session;

bool trace_pin_rings(void)
{
	if (__atomic_fetch_add(&nr_holders, 1, __ATOMIC_SEQ_CST) < RESIZING)
		return true;
	trace_unpin_rings();
	return false;
}

void trace_unpin_rings(void)
{
	__atomic_fetch_sub(&nr_holders, 1, __ATOMIC_SEQ_CST);
}

/* Allocates the rings if needed, and starts recording. Returns 0 or a negative errno. */
static int need_rings(void)
{
	int error = 0;

	if (!ring_bytes())
		error = ring_set_bytes(wanted_bytes);
	if (!error)
		error = trace_tasks_init();
	if (!error && !ring_is_recording())
		ring_record(wants_recording);
	return error;
}

int trace_need_rings(void)
{
	int error;

	poll_lock(&trace_lock);
	error = need_rings();
	poll_unlock(&trace_lock);
	return error;
}

/* Returns whether anything may write to the rings. */
static bool is_in_use(void)
{
	struct trace_event *event;

	trace_for_each_event(event) {
		if (event->is_on)
			return true;
	}
	return tracer != &nop;
}

static void free_unused_filters(void)
{
	struct trace_event *event;

	trace_for_each_event(event) {
		os_free(event->other_filter);
		event->other_filter = NULL;
		if (event->wanted_slow & TRACE_SLOW_FILTER)
			continue;
		os_free(event->filter);
		event->filter = NULL;
	}
}

static int resize(u64 bytes)
{
	int error;

	if (bytes > TRACE_MAX_RING_BYTES)
		return -OS_EINVAL;
	if (!bytes && is_in_use())
		return -OS_EBUSY;
	error = ring_bytes() ? ring_set_bytes(bytes) : 0;
	if (error)
		return error;
	if (bytes) {
		wanted_bytes = bytes;
		return 0;
	}
	trace_tasks_free();
	free_unused_filters();
	return 0;
}

int trace_resize_rings(u64 bytes)
{
	int error = -OS_EBUSY;

	poll_lock(&trace_lock);
	if (!pf_cmpxchg(&nr_holders, 0, RESIZING)) {
		error = resize(bytes);
		__atomic_fetch_sub(&nr_holders, RESIZING, __ATOMIC_SEQ_CST);
	}
	poll_unlock(&trace_lock);
	return error;
}

u64 trace_ring_bytes(void)
{
	return ring_bytes() ? ring_bytes() : ring_fitting_bytes(wanted_bytes);
}

int trace_set_recording(bool on)
{
	poll_lock(&trace_lock);
	pf_write_once(wants_recording, on);
	if (on)
		trace_tasks_add_all();
	ring_record(on);
	poll_unlock(&trace_lock);
	return 0;
}

bool trace_is_recording(void)
{
	return pf_read_once(wants_recording);
}

/* Returns whether an event, or another one with the same key, has to run its writer. */
static bool is_needed(const struct trace_event *event)
{
	const struct trace_event *other;

	if (event->is_on || event->wanted_slow & TRACE_SLOW_USES)
		return true;
	for (other = __start_trace_events; !event->call && other < __stop_trace_events; other++) {
		if (other->key == event->key &&
		    (other->is_on || other->wanted_slow & TRACE_SLOW_USES))
			return true;
	}
	return false;
}

static u8 slow_of(const struct trace_event *event)
{
	bool no_ring = !event->is_on && is_needed(event);

	return event->wanted_slow | (no_ring ? TRACE_SLOW_NO_RING : 0);
}

/*
 * Puts into effect what is wanted of events with this key; NULL: of all. An event that is not for
 * the ring takes the slow path before its key is switched on, and as long as it is on.
 */
static void apply_to(const os_key_t *key)
{
	struct trace_event *event;

	hook_keys_begin(key);
	for (u32 step = 0; step < 3; step++) {
		os_keys_begin();
		trace_for_each_event(event) {
			if (!event->key || (key && key != event->key))
				continue;
			if (step == 1) {
				hook_keys_add(event->key, is_needed(event));
				continue;
			}
			pf_write_once(event->slow, slow_of(event) | (step ? 0 : event->slow));
			os_keys_add(event->slow_key, event->slow);
		}
		hook_keys_commit();
	}
	hook_keys_end(key);
}

static void want_slow(struct trace_event *event, u8 bits, bool on)
{
	event->wanted_slow = on ? event->wanted_slow | bits : event->wanted_slow & ~bits;
}

/* Does the same, and lets the raw events of system calls serve those of each call. */
static void apply_key(const os_key_t *key)
{
	apply_to(key);
	for (u32 i = 0; i < PF_ARRAY_SIZE(trace_raw_calls); i++) {
		struct trace_event *raw = trace_raw_calls[i];

		if (!raw || trace_calls_are_needed(i) == !!(raw->wanted_slow & TRACE_SLOW_CALLS))
			continue;
		want_slow(raw, TRACE_SLOW_CALLS, trace_calls_are_needed(i));
		apply_to(raw->key);
	}
}

void trace_set_slow(struct trace_event *event, u8 bits, bool on)
{
	poll_lock(&trace_lock);
	want_slow(event, bits, on);
	apply_key(event->key);
	poll_unlock(&trace_lock);
}

typedef u64 __attribute__((__may_alias__)) word_t;

/* Copies whole words, so that no writer uses a part of a pointer. */
static void copy_filter(struct trace_filter *to, const struct trace_filter *from)
{
	for (u32 i = 0; i < sizeof(*to) / sizeof(word_t); i++)
		pf_write_once(((word_t *)to)[i], ((const word_t *)from)[i]);
}

int trace_put_filter(struct trace_event *event, const struct trace_filter *filter)
{
	struct trace_filter *copy = NULL;

	poll_lock(&trace_lock);
	if (filter) {
		copy = event->other_filter ?: os_alloc(sizeof(*copy));
		if (!copy) {
			poll_unlock(&trace_lock);
			return -OS_ENOMEM;
		}
		copy_filter(copy, filter);
		event->other_filter = event->filter;
		/* Pairs with the load in trace_write_slow(). */
		pf_store_release(&event->filter, copy);
	}
	want_slow(event, TRACE_SLOW_FILTER, filter);
	apply_key(event->key);
	poll_unlock(&trace_lock);
	return 0;
}

static void set_slow_all(u8 bits, bool on)
{
	struct trace_event *event;

	poll_lock(&trace_lock);
	trace_for_each_event(event)
		want_slow(event, bits, on);
	apply_key(NULL);
	poll_unlock(&trace_lock);
}

bool trace_has_stacks;

void trace_set_stacks(bool on)
{
	trace_has_stacks = on;
	set_slow_all(TRACE_SLOW_STACK, on);
}

int trace_select_pids(bool on)
{
	set_slow_all(TRACE_SLOW_PIDS, on);
	return 0;
}

/* NULL matches all. */
struct choice {
	const struct trace_event *event;
	const char *system, *name; /* shell patterns */
};

static bool is_chosen(const struct trace_event *event, const struct choice *choice)
{
	return event->key && (!choice->event || choice->event->key == event->key) &&
	       (!choice->system || os_glob_match_list(choice->system, event->system)) &&
	       (!choice->name || os_glob_match_list(choice->name, event->name));
}

static bool any_is_chosen(const struct choice *choice)
{
	struct trace_event *event;

	trace_for_each_event(event) {
		if (is_chosen(event, choice))
			return true;
	}
	return false;
}

/* Switches an event, and others with the same key. */
static void switch_event(struct trace_event *event, bool on)
{
	struct trace_event *other;

	trace_for_each_event(other) {
		if (other->key != event->key)
			continue;
		other->is_on = on;
		other->was_on |= on;
	}
}

static int switch_chosen(const struct choice *choice, bool on)
{
	struct trace_event *event;
	int error;

	if (!any_is_chosen(choice))
		return -OS_EINVAL;
	poll_lock(&trace_lock);
	error = on ? need_rings() : 0;
	trace_for_each_event(event) {
		if (!error && is_chosen(event, choice))
			switch_event(event, on);
	}
	apply_key(choice->event ? choice->event->key : NULL);
	poll_unlock(&trace_lock);
	return error;
}

int trace_switch_event(const struct trace_event *event, bool on)
{
	return switch_chosen(&(struct choice){ .event = event }, on);
}

int trace_switch_events(const char *system, const char *name, bool on)
{
	return switch_chosen(&(struct choice){ .system = system, .name = name }, on);
}

/* Switches the events of one word, `[!][system:]name`. Overwrites the word. */
static int switch_word(char *word)
{
	bool on = *word != '!';
	char *name;
	int error;

	word += !on;
	for (name = word; *name && *name != ':'; name++)
		;
	if (*name) {
		*name++ = '\0';
		return trace_switch_events(*word ? word : NULL, *name ? name : NULL, on);
	}
	error = trace_switch_events(word, NULL, on);
	return error == -OS_EINVAL ? trace_switch_events(NULL, word, on) : error;
}

int trace_switch_words(const char *words)
{
	char word[WORD_BYTES];
	int error;

	while ((error = words_next(&words, word, sizeof(word))) > 0) {
		error = switch_word(word);
		if (error)
			return error;
	}
	return error;
}

int trace_begin_session(const char *words, u64 bytes)
{
	struct trace_event *event;
	int error;

	trace_for_each_event(event)
		event->is_of_session = !event->is_on;
	if (!ring_bytes())
		wanted_bytes = bytes;
	error = trace_switch_words(words);
	pf_write_once(is_in_session, !error);
	return error;
}

void trace_end_session(void)
{
	struct trace_event *event;

	if (!pf_xchg(&is_in_session, false))
		return;
	trace_for_each_event(event) {
		if (event->is_of_session && event->is_on)
			trace_switch_event(event, false);
	}
	ring_clear();
	trace_resize_rings(DEFAULT_BYTES);
}

bool trace_session_is_on(void)
{
	return pf_read_once(is_in_session);
}

static int select_tracer(const struct tracer *next)
{
	int error = need_rings();

	if (error || next == tracer)
		return error;
	if (tracer->stop)
		tracer->stop();
	tracer = &nop;
	/* As on Linux. Otherwise the new tracer would print records of the old one. */
	ring_clear();
	trace_show_restart();
	error = next->start ? next->start() : 0;
	if (!error)
		tracer = next;
	return error;
}

int trace_select_tracer(const char *name)
{
	const struct tracer *next = strcmp(name, nop.name) ? NULL : &nop;
	int error;

	for (const struct tracer *t = __start_tracers; t < __stop_tracers; t++)
		next = strcmp(name, t->name) ? next : t;
	if (!next)
		return -OS_EINVAL;
	poll_lock(&trace_lock);
	error = select_tracer(next);
	poll_unlock(&trace_lock);
	return error;
}

const struct tracer *trace_current_tracer(void)
{
	return pf_read_once(tracer);
}
