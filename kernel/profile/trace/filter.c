// SPDX-License-Identifier: BSD-2-Clause
/*
 * Filters events. A filter is a list of comparisons, each of which says where to go on
 * (filter_parse.c). All comparisons of numbers are one range check, so an event that the first
 * comparison refuses costs 59 instructions. Events that match are copied to the ring.
 */

#include "trace.h"

#include "pids.h"

#define WHERE	       "event filter parse error" /* as Linux's error_log has it */
#define MAX_TEXT_BYTES 256			  /* the longest text of a field, with its NUL */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

void trace_text_of(const struct trace_field *field, const char *content, char *text, size_t size)
{
	u32 offset = field->offset, bytes = field->bytes, len = 0;
	u64 comm[2];

	if (field->is_comm) {
		os_task_comm(os_current_task(), comm);
		content = (const char *)comm;
	}
	if (field->is_moved) {
		memcpy(&offset, content + field->offset, sizeof(offset));
		bytes = offset >> 16;
		offset &= 0xffff;
	}
	for (; len < bytes && len < size - 1 && content[offset + len]; len++)
		text[len] = content[offset + len];
	text[len] = '\0';
}

static pf_noinline bool matches_text(const struct trace_filter *filter,
				     const struct trace_term *term, const void *content)
{
	const char *value = filter->values + term->text;
	char text[MAX_TEXT_BYTES];

	trace_text_of(term->field, content, text, sizeof(text));
	if (term->compare == TRACE_GLOB)
		return os_glob_match(value, text);
	return !strcmp(value, text) == (term->compare == TRACE_EQUAL);
}

/* Returns whether a number is in the range of its term. Always true for a text. */
static pf_always_inline bool matches_number(const struct trace_term *term, const void *content)
{
	u64 value;

	__builtin_memcpy(&value, (const char *)content + term->offset, sizeof(value));
	value = value << term->shift & term->mask;
	return value - term->first <= term->last_less_first;
}

static pf_always_inline bool matches(const struct trace_filter *filter, const void *content)
{
	u64 at = 0;

	do {
		const struct trace_term *term = (const void *)((const char *)filter->terms + at);
		bool is_true = matches_number(term, content) &&
			       (!term->is_text || matches_text(filter, term, content));

		at = term->next[is_true];
	} while (pf_unlikely(at < sizeof(filter->terms)));
	return at == TRACE_ACCEPT;
}

bool trace_filter_matches(const struct trace_filter *filter, const void *content)
{
	return matches(filter, content);
}

static pf_always_inline bool record_copy(const struct trace_event *event, const void *content,
					 struct trace_slot slot)
{
	if (!slot.content)
		return false;
	memcpy(slot.content, content, event->bytes);
	trace_commit(slot);
	return true;
}

bool trace_record_copy(const struct trace_event *event, const void *content)
{
	return record_copy(event, content, trace_reserve(event->bytes));
}

/* Returns whether set_event_pid has the running thread, or one that the event switches to. */
static bool is_of_pids(const struct trace_event *event, const void *content)
{
	u32 other = 0;

	if (event->other_tid)
		memcpy(&other, (const char *)content + event->other_tid, sizeof(other));
	return trace_pids_have(&trace_event_pids, os_current_tid()) ||
	       (other && trace_pids_have(&trace_event_pids, other));
}

/* Returns whether the event's filter refuses the record. Fills in the common fields if needed. */
static pf_always_inline bool is_refused(const struct trace_event *event,
					struct profile_trace_event *content)
{
	/* Pairs with the release in trace_put_filter(): the filter is complete. */
	const struct trace_filter *filter = pf_load_acquire(&event->filter);

	if (pf_unlikely(filter->wants_common))
		trace_fill_common(content, event->id);
	return !matches(filter, content);
}

/* Returns whether the ring gets the event, and does all else that may be wanted of it. */
static pf_noinline bool use_event(const struct trace_event *event,
				  struct profile_trace_event *content)
{
	u8 slow = pf_read_once(event->slow);

	/* As on Linux, triggers see all events. */
	if (slow & TRACE_SLOW_HIST)
		trace_hist_add(event, content);
	if (slow & TRACE_SLOW_CALLS)
		trace_write_call(event, content);
	if (slow & TRACE_SLOW_PIDS && !is_of_pids(event, content))
		return false;
	if (slow & TRACE_SLOW_FILTER && is_refused(event, content))
		return false;
	if (slow & TRACE_SLOW_COUNT)
		trace_count(event);
	return !(slow & TRACE_SLOW_NO_RING);
}

void trace_write_slow(const struct trace_event *event, struct profile_trace_event *content)
{
	u8 slow = pf_read_once(event->slow);

	if (pf_unlikely(slow & ~(TRACE_SLOW_FILTER | TRACE_SLOW_STACK))) {
		if (!use_event(event, content))
			return;
	} else if (slow & TRACE_SLOW_FILTER && is_refused(event, content)) {
		return;
	}
	/* Read again, so that no register has to keep it while the filter is applied. */
	slow = pf_read_once(event->slow);
	trace_fill_common(content, event->id);
	if (slow & TRACE_SLOW_STACK)
		trace_record_with_stack(event, content);
	else if (slow)
		trace_record_copy(event, content);
	else /* the writer has tried the fast path */
		record_copy(event, content, trace_reserve_slow(event->bytes / sizeof(u64) + 1));
}

bool trace_copy_trimmed(const char *text, char line[TRACE_FILTER_BYTES])
{
	size_t len;

	while (is_blank(*text))
		text++;
	for (len = strlen(text); len && is_blank(text[len - 1]); len--)
		;
	if (len >= TRACE_FILTER_BYTES)
		return false;
	memcpy(line, text, len);
	line[len] = '\0';
	return true;
}

/*
 * Parses the filter of an event in the memory at filter, and sets it. Keeps the error that is
 * furthest in the text: of several events, that one had the fields before it.
 */
static int set_filter(struct trace_event *event, struct trace_filter *filter, const char *text,
		      struct trace_filter_error *error)
{
	struct trace_filter_error found;

	if (!strcmp(text, "0"))
		return trace_put_filter(event, NULL);
	memset(filter, 0, sizeof(*filter));
	memcpy(filter->text, text, strlen(text) + 1);
	found = trace_parse_filter(event, filter);
	if (!found.what)
		return trace_put_filter(event, filter);
	if (!error->what || found.at > error->at)
		*error = found;
	return -OS_EINVAL;
}

int trace_set_filters(const char *system, const char *name, const char *text)
{
	struct trace_filter_error error = { 0 };
	struct trace_filter *filter;
	struct trace_event *event;
	char line[TRACE_FILTER_BYTES];
	int result = -OS_EINVAL;

	if (!trace_copy_trimmed(text, line)) {
		error.what = "the filter is too long";
		trace_log_error(WHERE, text, &error);
		return -OS_EINVAL;
	}
	filter = os_alloc(sizeof(*filter));
	if (!filter)
		return -OS_ENOMEM;
	trace_for_each_event(event) {
		if (event->key && (!system || !strcmp(system, event->system)) &&
		    (!name || !strcmp(name, event->name))) {
			int failed = set_filter(event, filter, line, &error);

			result = result == -OS_EINVAL ? failed : result;
		}
	}
	if (result == -OS_EINVAL)
		trace_log_error(WHERE, line, &error);
	os_free(filter);
	return result;
}
