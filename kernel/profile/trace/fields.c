// SPDX-License-Identifier: BSD-2-Clause
/* Finds the fields of events, and makes the format texts that name them. */

#include "trace.h"

/* The common fields, which all events have. */
#define COMMON(text, member, signed_)                                                             \
	{                                                                                         \
		.type = text, .name = "common_" #member,                                          \
		.offset = __builtin_offsetof(struct profile_trace_event, member),                 \
		.bytes = sizeof(((struct profile_trace_event *)0)->member), .is_signed = signed_, \
	}
static const struct trace_field common_fields[] = {
	COMMON("unsigned short", type, false),
	COMMON("unsigned char", flags, false),
	COMMON("unsigned char", preempt_count, false),
	COMMON("int", pid, true),
};

/* The name of the running thread, which filters of all events may use, as on Linux. */
static const struct trace_field comm_field = {
	.type = "char",
	.name = "comm",
	.bytes = 2 * sizeof(u64),
	.is_text = true,
	.is_comm = true,
};

/* A text of limited size. Characters that do not fit are left out. */
struct buffer {
	char *text;
	size_t size, len;
};

static void put_text(struct buffer *buffer, const char *fmt, ...) pf_printf(2, 3);
static void put_text(struct buffer *buffer, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buffer->len +=
		os_vsnprintf(buffer->text + buffer->len, buffer->size - buffer->len, fmt, args);
	va_end(args);
	buffer->len = pf_min(buffer->len, buffer->size - 1);
}

static void put_field(struct buffer *buffer, const struct trace_field *field)
{
	char array[16] = "";

	if (field->nr)
		os_snprintf(array, sizeof(array), "[%u]", field->nr);
	put_text(buffer, "\tfield:%s %s%s;\toffset:%u;\tsize:%u;\tsigned:%u;\n", field->type,
		 field->name, array, field->offset, field->bytes, field->is_signed);
}

/* Puts the format of a system call's event, as Linux has it. */
static void put_call_format(struct buffer *buffer, const struct trace_event *event)
{
	put_text(buffer, "\nprint fmt: \"");
	for (u32 i = 1; i < event->nr_fields; i++) {
		if (event->is_exit)
			put_text(buffer, "0x%%lx");
		else
			put_text(buffer, "%s%s: 0x%%08lx", i > 1 ? ", " : "",
				 event->fields[i].name);
	}
	put_text(buffer, "\"");
	for (u32 i = 1; i < event->nr_fields; i++) {
		const char *name = event->fields[i].name;

		if (event->is_exit)
			put_text(buffer, ", REC->%s", name);
		else
			put_text(buffer, ", ((unsigned long)(REC->%s))", name);
	}
	put_text(buffer, "\n");
}

void trace_format_text(const struct trace_event *event, char text[TRACE_FORMAT_BYTES])
{
	struct buffer buffer = { text, TRACE_FORMAT_BYTES, 0 };

	put_text(&buffer, "name: %s\nID: %u\nformat:\n", event->name, event->id);
	for (u32 i = 0; i < PF_ARRAY_SIZE(common_fields); i++)
		put_field(&buffer, &common_fields[i]);
	put_text(&buffer, "\n");
	for (u32 i = 0; i < event->nr_fields; i++)
		put_field(&buffer, &event->fields[i]);
	if (event->call)
		put_call_format(&buffer, event);
	else
		put_text(&buffer, "\nprint fmt: %s\n", event->print_format);
}

const struct trace_field *trace_find_field(const struct trace_event *event, const char *name)
{
	for (u32 i = 0; i < event->nr_fields; i++) {
		if (!strcmp(event->fields[i].name, name))
			return &event->fields[i];
	}
	for (u32 i = 0; i < PF_ARRAY_SIZE(common_fields); i++) {
		if (!strcmp(common_fields[i].name, name))
			return &common_fields[i];
	}
	if (!strcmp(name, "comm") || !strcmp(name, "COMM"))
		return &comm_field;
	return NULL;
}
