// SPDX-License-Identifier: BSD-2-Clause
/*
 * trace_marker: what a program writes there becomes an event `print` of its thread, so that a trace
 * says what the program was doing.
 */

#include "trace.h"

#include "text.h"

#define MARKER_ID 5 /* TRACE_PRINT of Linux 6.1 (enum trace_type) */

struct record_marker {
	struct profile_trace_event common;
	u64 ip; /* in Linux the address of its writer, which tools print by name */
	char buf[];
} __attribute__((__may_alias__));

#define MAX_TEXT_BYTES (TRACE_MAX_BYTES - sizeof(u64) - sizeof(struct record_marker))

static void print(os_text_t *text, const void *content)
{
	const struct record_marker *record = content;

	trace_printf(text, "%ps: %s", record->ip, record->buf);
}

#define FIELD_AT(member) .offset = __builtin_offsetof(struct record_marker, member)

static const struct trace_field fields[] = {
	{ .type = "unsigned long", .name = "ip", FIELD_AT(ip), .bytes = sizeof(u64) },
	{ .type = "char", .name = "buf[]", FIELD_AT(buf) },
};

static struct trace_event marker_event TRACE_EVENTS_SECTION = {
	.system = "ftrace",
	.name = "print",
	.id = MARKER_ID,
	.bytes = sizeof(struct record_marker) + sizeof(u64),
	.fields = fields,
	.nr_fields = PF_ARRAY_SIZE(fields),
	.print_format = "\"%ps: %s\", (void *)REC->ip, REC->buf",
	.print = print,
};

pf_noinline int trace_write_marker(const char *text, const void *unused)
{
	size_t len = strlen(text), room;
	struct record_marker *record;
	struct trace_slot slot;
	unsigned long flags;
	int error = trace_need_rings();

	if (error)
		return error;
	len -= len && text[len - 1] == '\n';
	len = pf_min(len, MAX_TEXT_BYTES - 1);
	room = (len / sizeof(u64) + 1) * sizeof(u64);
	flags = os_irq_save(); /* the writer stays on its CPU */
	slot = trace_reserve(sizeof(*record) + room);
	record = slot.content;
	if (record) {
		trace_fill_common(&record->common, MARKER_ID);
		record->common.flags = 0;
		record->ip = (u64)trace_write_marker;
		memset(record->buf + room - sizeof(u64), 0, sizeof(u64));
		memcpy(record->buf, text, len);
		trace_commit(slot);
	}
	os_irq_restore(flags);
	return 0;
}
