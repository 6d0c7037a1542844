/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_TEXT_H
#define PROFILE_TRACE_TEXT_H

/* The text of events, as ftrace prints it. */

#include "tasks.h"
#include "trace.h"

/*
 * printf() for the formats of events: conversions %d %u %x %lx %zu %s %c %p, widths and flags, and
 * Linux's %ps (the function at an address, or the address) and %pS (with the offset in it). A `?`
 * stands for each byte of a string that is not printable.
 */
void trace_printf(os_text_t *text, const char *fmt, ...);

struct trace_flag_name {
	u64 bit;
	const char *name; /* NULL: the end */
};

/* Names the bits of value, separated by `|`; what has no name is a number. Returns buffer. */
const char *trace_flag_names(char *buffer, size_t size, u64 value,
			     const struct trace_flag_name *names);

/* Copies at most size - 1 characters and a NUL. Returns how many bytes these are. */
u32 trace_copy_string(char *dst, size_t size, const char *text);

/* The heading of the file `trace`. */
void trace_print_head(os_text_t *text, const char *tracer, u64 nr_kept, u64 nr_written);
/* The name of a thread, as trace_task_name() has it, without what is not printable. */
void trace_printable_task_name(u32 tid, char name[TRACE_COMM_BYTES]);
/* What an event says: its name, unless it is a tracer's, and its fields. */
void trace_print_content(os_text_t *text, const struct ring_event *event);
/* A line of it. */
void trace_print_event(os_text_t *text, u32 cpu, const struct ring_event *event);

#endif
