// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests per_cpu/cpu<n>/trace_pipe_raw. The pages are decoded here by the texts of header_page and
 * header_event, and compared with the events that were written.
 */

#include "trace_files_unit.h"

#define PAGE_BYTES 4096
#define DATA_BYTES (PAGE_BYTES - 16)

struct decoded {
	u64 ns, lost; /* lost: events before the page of the first one */
	u64 bytes;
	const char *content;
};

/* Decodes a page. Returns the number of events. */
static u32 decode(const char *page, struct decoded *events)
{
	u64 ns, commit, lost = 0;
	u32 used, nr = 0;

	memcpy(&ns, page, 8);
	memcpy(&commit, page + 8, 8);
	used = commit & 0xfffff;
	assert_in_range(used, 1, DATA_BYTES);
	if (commit >> 31 & 1) {
		lost = ~0ull; /* unknown */
		if (commit >> 30 & 1)
			memcpy(&lost, page + 16 + used, 8);
	}
	for (u32 at = 0; at < used;) {
		u32 head, word;

		memcpy(&head, page + 16 + at, 4);
		memcpy(&word, page + 16 + at + 4, 4);
		at += 4;
		ns += head >> 5;
		switch (head & 31) {
		case 30:
			ns += (u64)word << 27;
			at += 4;
			continue;
		case 0:
			events[nr] = (struct decoded){ ns, lost, word - 4, page + 16 + at + 4 };
			at += word;
			break;
		default:
			assert_in_range(head & 31, 1, 28);
			events[nr] = (struct decoded){ ns, lost, 4 * (head & 31), page + 16 + at };
			at += 4 * (head & 31);
			break;
		}
		lost = 0;
		nr++;
		assert_in_range(at, 1, used);
	}
	return nr;
}

static struct decoded events_read[PAGE_BYTES / 4];

/* Returns the number of events in the next page; 0: there is none now. */
static u32 next_page_of(bool waits)
{
	static char page[PAGE_BYTES];
	const os_trace_file_t *file = host_trace_file("per_cpu/cpu0/trace_pipe_raw");
	static os_text_t text;

	text.len = 0;
	file->next(&text, file->arg, waits);
	if (!text.len)
		return 0;
	assert_int_equal(text.len, PAGE_BYTES);
	memcpy(page, text.buf, PAGE_BYTES);
	return decode(page, events_read);
}

static u32 next_page(void)
{
	return next_page_of(true);
}

static s64 ret_of(const struct decoded *event)
{
	s64 ret;

	/* See events/raw_syscalls/sys_exit/format. */
	memcpy(&ret, event->content + 16, sizeof(ret));
	return ret;
}

static void expect_event(const struct decoded *event, s64 ret, u64 ns)
{
	assert_int_equal(event->bytes, 24);
	assert_int_equal(ret_of(event), ret);
	assert_int_equal(event->ns, ns);
}

static int set_up_raw(void **state)
{
	set_up(state);
	assert_int_equal(write_file("tracing_on", "1"), 0);
	assert_int_equal(write_file("options/overwrite", "1"), 0);
	return write_file("set_event", "sys_exit");
}

#define TEST(name) HOST_TEST_WITH(name, set_up_raw, NULL)

/* Deltas of all lengths: none, the longest of 27 bits, one that needs an extension, and hours. */
TEST(times)
{
	static const u64 deltas[] = { 0, 1, (1 << 27) - 1, 1 << 27, (1 << 27) + 5, 7200000000000 };
	u64 ns[ARRAY_SIZE(deltas)];

	for (u32 i = 0; i < ARRAY_SIZE(deltas); i++) {
		ns[i] = host_now += deltas[i];
		profile_trace(sys_exit, 1, i);
	}
	assert_int_equal(write_file("tracing_on", "0"), 0);
	assert_int_equal(next_page(), ARRAY_SIZE(deltas));
	for (u32 i = 0; i < ARRAY_SIZE(deltas); i++)
		expect_event(&events_read[i], i, ns[i]);
	assert_int_equal(events_read[0].lost, 0);
	assert_int_equal(next_page(), 0);
	assert_string_equal(events(), "");
}

/* A page waits until it is full, or 100 ms old, or the last one, if its reader waits. */
TEST(waits_for_a_full_page)
{
	u32 nr = 0;

	profile_trace(sys_exit, 1, 1);
	assert_int_equal(next_page(), 0);
	host_now += 99999999;
	assert_int_equal(next_page(), 0);
	host_now += 1;
	assert_int_equal(next_page(), 1);
	profile_trace(sys_exit, 1, 2);
	assert_int_equal(next_page(), 0);
	assert_int_equal(next_page_of(false), 1); /* with O_NONBLOCK */
	profile_trace(sys_exit, 1, 2);
	assert_int_equal(write_file("tracing_on", "0"), 0);
	assert_int_equal(next_page(), 1);
	assert_int_equal(write_file("tracing_on", "1"), 0);
	/* 28 bytes each: 145 are a page, and the 146th shows that it is full. */
	while (!next_page())
		profile_trace(sys_exit, 1, nr++);
	assert_int_equal(nr, 146);
	for (u32 i = 0; i < 145; i++)
		expect_event(&events_read[i], i, host_now);
}

/* Each event is read once, whichever file shows it. */
TEST(shares_with_trace_pipe)
{
	profile_trace(sys_exit, 1, 1);
	assert_non_null(strstr(read_file("per_cpu/cpu0/trace"), "NR 1 = 1"));
	assert_null(strstr(read_file("per_cpu/cpu1/trace"), "NR 1 = 1"));
	assert_string_equal(read_file("per_cpu/cpu1/trace_pipe"), "");
	assert_non_null(strstr(read_file("per_cpu/cpu0/trace_pipe"), "NR 1 = 1"));
	assert_int_equal(write_file("tracing_on", "0"), 0);
	assert_int_equal(next_page(), 0);
	assert_int_equal(write_file("tracing_on", "1"), 0);
	profile_trace(sys_exit, 1, 2);
	assert_int_equal(write_file("tracing_on", "0"), 0);
	assert_int_equal(next_page(), 1);
	assert_string_equal(read_file("trace_pipe"), "");
}

/* A gap begins a page, which has the number of lost events. All events and losses add up. */
TEST(losses)
{
	u64 nr = 100000, nr_read = 0, nr_lost = 0;

	for (u64 i = 0; i < nr; i++)
		profile_trace(sys_exit, 1, i);
	assert_int_equal(write_file("tracing_on", "0"), 0);
	for (u32 in_page; (in_page = next_page()); nr_read += in_page) {
		nr_lost += events_read[0].lost;
		assert_int_equal(ret_of(&events_read[0]), nr_read + nr_lost);
	}
	assert_true(nr_lost > 0);
	assert_int_equal(nr_read + nr_lost, nr);
}

/* Events of many lengths, the longest one included. 112 bytes is the longest short event. */
TEST(lengths)
{
	static const u64 lengths[] = { 8,
				       16,
				       104,
				       112,
				       120,
				       2000,
				       2048,
				       TRACE_MAX_BYTES - 8,
				       8,
				       TRACE_MAX_BYTES - 16,
				       TRACE_MAX_BYTES - 8 };
	u32 nr = 0;

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct trace_slot slot = trace_reserve(lengths[i]);

		assert_non_null(slot.content);
		memset(slot.content, i + 1, lengths[i]);
		trace_commit(slot);
	}
	assert_int_equal(write_file("tracing_on", "0"), 0);
	for (u32 in_page; (in_page = next_page());) {
		for (u32 i = 0; i < in_page; i++, nr++) {
			assert_int_equal(events_read[i].bytes, lengths[nr]);
			for (u64 j = 0; j < lengths[nr]; j++)
				assert_int_equal(events_read[i].content[j], nr + 1);
		}
	}
	assert_int_equal(nr, ARRAY_SIZE(lengths));
}
