/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FUNCTIONS_TRACERS_H
#define PROFILE_FUNCTIONS_TRACERS_H

/*
 * The tracers `function` and `function_graph`: records of calls, in the rings of trace/. The hooks
 * of count.c write them, so what is here for any context must not call a function that has a hook.
 */

#include "../util.h"

#ifdef CONFIG_PROFILE_TRACE

#include "../trace/trace.h"

/* What is recorded of a function. */
#define FUNCTION_CALLS 0x01 /* its calls: the tracer `function` */

/* By os_function_slot(); 0: nothing is. Changed with the turn, read by the hooks. */
extern u8 function_flags[OS_NR_FUNCTION_SLOTS];

/* The tracer that is on. Guarded by the turn. */
enum function_tracer {
	FUNCTION_TRACER_NONE,
	FUNCTION_TRACER_CALLS,
};

extern enum function_tracer function_tracer;

/* Returns what the tracer wants of function i: its flags. */
u8 function_flags_wanted(u32 i);
/* Sets the flags to what is wanted, or takes away what is wanted no more. With the turn. */
void function_trace_begin(void);
void function_trace_end(void);

/* lists.c: files of functions' names, which select what is traced. */
void function_lists_init(void);

/* Lists that a function is in. */
#define FUNCTION_IN_FILTER  0x01
#define FUNCTION_IN_NOTRACE 0x02

/* Returns the lists of function i, where an empty list that selects has all. With the turn. */
u8 function_lists_of(u32 i);

/* Linux's numbers of these records, which its tools know (enum trace_type of 6.1). */
#define FUNCTION_RECORD_CALL 1

/* The records, as Linux 6.1 has them (kernel/trace/trace_entries.h). */
struct function_record_call {
	struct profile_trace_event common;
	u64 ip, parent_ip;
} __attribute__((__may_alias__));

/* Returns what is recorded of a function. Any context. */
static pf_always_inline u8 function_flags_of(u64 function)
{
	return function_flags[os_function_slot(function)];
}

static pf_always_inline void function_trace_call(u64 function, u64 return_address)
{
	struct trace_slot slot = trace_reserve(sizeof(struct function_record_call));
	struct function_record_call *record = slot.content;

	if (pf_unlikely(!record))
		return;
	trace_fill_common(&record->common, FUNCTION_RECORD_CALL);
	record->ip = function;
	record->parent_ip = return_address;
	trace_commit(slot.start);
}

#else
#define function_flags_wanted(i)	   0
#define function_trace_begin()		   ((void)0)
#define function_trace_end()		   ((void)0)
#define function_lists_init		   NULL
#define function_flags_of(function)	   0
#define function_trace_call(function, ret) ((void)0)
#endif

#endif
