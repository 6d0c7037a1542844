// SPDX-License-Identifier: BSD-2-Clause
/* The tracers of functions: what their records are, and how they are switched. */

#include "functions.h"

#include "../trace/text.h"
#include "tracers.h"

u8 function_flags[OS_NR_FUNCTION_INDICES];
enum function_tracer function_tracer;

/* A field, which is signed if it is an int. */
#define PROFILE_FIELD(record, type_, member, signed_)                                         \
	{                                                                                     \
		.type = type_, .name = #member, .offset = __builtin_offsetof(record, member), \
		.bytes = sizeof(((record *)0)->member), .is_signed = signed_,                 \
	}

/* An event that only tracers write, with Linux's number. */
#define RECORD(name_, id_, record, printer, text_, ...)                     \
	static const struct trace_field name_##_fields[] = { __VA_ARGS__ }; \
	static struct trace_event name_##_event TRACE_EVENTS_SECTION = {    \
		.system = "ftrace",                                         \
		.name = #name_,                                             \
		.id = id_,                                                  \
		.bytes = sizeof(record),                                    \
		.fields = name_##_fields,                                   \
		.nr_fields = PF_ARRAY_SIZE(name_##_fields),                 \
		.print_format = text_,                                      \
		.print = printer,                                           \
	}

static void print_function(os_text_t *text, const void *content)
{
	const struct function_record_call *record = content;

	trace_printf(text, "%ps <-%ps", record->ip, record->parent_ip);
}

RECORD(function, FUNCTION_RECORD_CALL, struct function_record_call, print_function,
       "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip",
       PROFILE_FIELD(struct function_record_call, "unsigned long", ip, false),
       PROFILE_FIELD(struct function_record_call, "unsigned long", parent_ip, false));

static void print_entry(os_text_t *text, const void *content)
{
	const struct function_record_entry *record = content;

	trace_printf(text, "--> %ps (%d)", record->func, record->depth);
}

static void print_exit(os_text_t *text, const void *content)
{
	const struct function_record_exit *record = content;

	trace_printf(text, "<-- %ps (%d) (start: %lx  end: %lx) over: %d", record->func,
		     record->depth, record->calltime, record->rettime, record->depth);
}

RECORD(funcgraph_entry, FUNCTION_RECORD_ENTRY, struct function_record_entry, print_entry,
       "\"--> %ps (%d)\", (void *)REC->func, REC->depth",
       PROFILE_FIELD(struct function_record_entry, "unsigned long", func, false),
       PROFILE_FIELD(struct function_record_entry, "int", depth, true));

RECORD(funcgraph_exit, FUNCTION_RECORD_EXIT, struct function_record_exit, print_exit,
       "\"<-- %ps (%d) (start: %llx  end: %llx) over: %d\", (void *)REC->func, REC->depth, "
       "REC->calltime, REC->rettime, REC->depth",
       PROFILE_FIELD(struct function_record_exit, "unsigned long", func, false),
       PROFILE_FIELD(struct function_record_exit, "int", depth, true),
       PROFILE_FIELD(struct function_record_exit, "unsigned int", overrun, false),
       PROFILE_FIELD(struct function_record_exit, "unsigned long long", calltime, false),
       PROFILE_FIELD(struct function_record_exit, "unsigned long long", rettime, false));

/* With set_ftrace_pid, functions call the general hook, which looks at the thread. */
static int select_pids(bool on)
{
	int error;

	poll_lock(&functions_lock);
	pf_write_once(function_selects_pids, on);
	error = functions_apply();
	if (error)
		pf_write_once(function_selects_pids, !on);
	poll_unlock(&functions_lock);
	return error;
}

bool function_selects_pids;

struct trace_pids function_pids = {
	.path = "set_ftrace_pid",
	.fork_option = { .name = "function-fork" },
	.when_empty = "no pid\n",
	.select = select_pids,
};

os_function_hook_t *function_tracer_hook(u32 i)
{
	u8 flags = function_flags_wanted(i);

	if (!flags)
		return NULL;
	if (function_selects_pids || function_graph_threshold_cycles)
		return os_function_general_hook;
	return flags & FUNCTION_CALLS ? profile_function_record : profile_function_graph;
}

u8 function_flags_wanted(u32 i)
{
	u8 lists = function_lists_of(i);

	if (!(lists & FUNCTION_IN_FILTER) || (lists & FUNCTION_IN_NOTRACE))
		return 0;
	switch (function_tracer) {
	case FUNCTION_TRACER_CALLS:
		return FUNCTION_CALLS;
	case FUNCTION_TRACER_GRAPH:
		return FUNCTION_GRAPH | (lists & FUNCTION_IN_GRAPH ? FUNCTION_ROOT : 0) |
		       (lists & FUNCTION_IN_GRAPH_NOTRACE ? FUNCTION_SKIPPED : 0);
	default:
		return 0;
	}
}

static u8 *flags_of(u32 i)
{
	return &function_flags[os_function_index(os_function(i))];
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

	poll_lock(&functions_lock);
	function_tracer = tracer;
	function_graph_switch(tracer == FUNCTION_TRACER_GRAPH);
	error = functions_apply();
	if (error)
		function_tracer = FUNCTION_TRACER_NONE;
	poll_unlock(&functions_lock);
	return error;
}

static int start_function(void)
{
	return switch_tracer(FUNCTION_TRACER_CALLS);
}

static int start_graph(void)
{
	return switch_tracer(FUNCTION_TRACER_GRAPH);
}

static void stop(void)
{
	switch_tracer(FUNCTION_TRACER_NONE);
}

TRACER(function) = { .name = "function", .start = start_function, .stop = stop };

TRACER(function_graph) = {
	.name = "function_graph",
	.start = start_graph,
	.stop = stop,
	.print_head = function_graph_print_head,
	.print_line = function_graph_print_line,
};
