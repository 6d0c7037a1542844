// SPDX-License-Identifier: BSD-2-Clause
/* The tracers of functions: what their records are, and how they are switched. */

#include "functions.h"

#include "../trace/text.h"
#include "tracers.h"

u8 function_flags[OS_NR_FUNCTION_SLOTS];
enum function_tracer function_tracer;

/* A field, which is signed if it is an int. */
#define FIELD(record, type_, member, signed_)                                                 \
	{                                                                                     \
		.type = type_, .name = #member, .offset = __builtin_offsetof(record, member), \
		.bytes = sizeof(((record *)0)->member), .is_signed = signed_,                 \
	}

/* An event that only tracers write, with Linux's number. */
#define RECORD(name_, id_, record, text_, ...)                              \
	static const struct trace_field name_##_fields[] = { __VA_ARGS__ }; \
	static struct trace_event name_##_event TRACE_EVENTS_SECTION = {    \
		.system = "ftrace",                                         \
		.name = #name_,                                             \
		.id = id_,                                                  \
		.bytes = sizeof(record),                                    \
		.fields = name_##_fields,                                   \
		.nr_fields = PF_ARRAY_SIZE(name_##_fields),                 \
		.print_format = text_,                                      \
		.print = print_##name_,                                     \
	}

static void print_function(os_text_t *text, const void *content)
{
	const struct function_record_call *record = content;

	trace_printf(text, "%ps <-%ps", record->ip, record->parent_ip);
}

RECORD(function, FUNCTION_RECORD_CALL, struct function_record_call,
       "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip",
       FIELD(struct function_record_call, "unsigned long", ip, false),
       FIELD(struct function_record_call, "unsigned long", parent_ip, false));

u8 function_flags_wanted(u32 i)
{
	u8 lists = function_lists_of(i);

	if (!(lists & FUNCTION_IN_FILTER) || (lists & FUNCTION_IN_NOTRACE))
		return 0;
	return function_tracer == FUNCTION_TRACER_CALLS ? FUNCTION_CALLS : 0;
}

static u8 *flags_of(u32 i)
{
	return &function_flags[os_function_slot(os_function(i))];
}

pf_noinline void function_trace_begin(void)
{
	for (u32 i = 0; i < os_nr_functions(); i++)
		pf_write_once(*flags_of(i), function_flags_wanted(i));
}

pf_noinline void function_trace_end(void)
{
	for (u32 i = 0; i < os_nr_functions(); i++)
		pf_write_once(*flags_of(i), *flags_of(i) & function_flags_wanted(i));
}

static int switch_tracer(enum function_tracer tracer)
{
	int error;

	functions_take_turn();
	function_tracer = tracer;
	error = functions_apply();
	if (error)
		function_tracer = FUNCTION_TRACER_NONE;
	functions_end_turn();
	return error;
}

static int start_function(void)
{
	return switch_tracer(FUNCTION_TRACER_CALLS);
}

static void stop(void)
{
	switch_tracer(FUNCTION_TRACER_NONE);
}

TRACER(function) = { .name = "function", .start = start_function, .stop = stop };
