/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_TEXT_H
#define PROFILE_TRACE_TEXT_H

/* Prints events as text, in the columns of Linux's ftrace. show.c puts the lines in order. */

#include "tasks.h"
#include "trace.h"

/*
 * Prints by the format of an event: conversions %d %u %x %lx %zu %s %c %p with widths and flags,
 * and Linux's %ps (the function at an address, else the address) and %pS (the function with the
 * offset). Bytes of a string that are not printable become `?`.
 */
void trace_printf(os_text_t *text, const char *fmt, ...);

struct trace_flag_name {
	u64 bit;
	const char *name; /* NULL: the end of the list */
};

/*
 * Writes the names of the bits of value to buffer, separated by `|`, and the bits without a name as
 * one number. Returns buffer.
 */
const char *trace_flag_names(char *buffer, size_t size, u64 value,
			     const struct trace_flag_name *names);

/* Copies at most size - 1 characters and a NUL. Returns the number of bytes, the NUL included. */
u32 trace_copy_string(char *dst, size_t size, const char *text);

/* Prints the heading of the file `trace`. */
void trace_print_head(os_text_t *text, const char *tracer, u64 nr_kept, u64 nr_written);
/* Does the same as trace_task_name(), with `?` for bytes that are not printable. */
void trace_printable_task_name(u32 tid, char name[TRACE_COMM_BYTES]);
/* Prints the name of an event, unless it is a record of a tracer, and its fields. */
void trace_print_content(os_text_t *text, const struct ring_event *event);
/* Prints the line of an event: task, CPU, flags and time, then trace_print_content(). */
void trace_print_event(os_text_t *text, u32 cpu, const struct ring_event *event);

#endif
