/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FUNCTIONS_TRACERS_H
#define PROFILE_FUNCTIONS_TRACERS_H

/*
 * The tracers `function` and `function_graph`: records of calls, in the rings of trace/. The hooks
 * of count.c write them, so what is here for any context must not call a function that has a hook.
 */

#include "../util.h"

#include <lego/function_profile.h>

#ifdef CONFIG_PROFILE_TRACE

#include "../trace/trace.h"

/* What is recorded of a function. */
#define FUNCTION_CALLS	 0x01 /* its calls: the tracer `function` */
#define FUNCTION_GRAPH	 0x02 /* its calls and their ends: the tracer `function_graph` */
#define FUNCTION_ROOT	 0x04 /* of the graph: it and what it calls are in it */
#define FUNCTION_SKIPPED 0x08 /* neither it nor what it calls is in the graph */

/* By os_function_index(); 0: nothing is. Changed with the turn, read by the hooks. */
extern u8 function_flags[OS_NR_FUNCTION_INDICES];

/* The tracer that is on. Guarded by the turn. */
enum function_tracer {
	FUNCTION_TRACER_NONE,
	FUNCTION_TRACER_CALLS,
	FUNCTION_TRACER_GRAPH,
};

extern enum function_tracer function_tracer;

/* Returns what the tracer wants of function i: its flags, and a hook that is enough for it. */
u8 function_flags_wanted(u32 i);
os_function_hook_t *function_tracer_hook(u32 i);
/* Sets the flags to what is wanted, or takes away what is wanted no more. With the turn. */
void function_trace_begin(void);
void function_trace_end(void);

/* lists.c: files of functions' names, which select what is traced. */
void function_lists_init(void);

/* Lists that a function is in. */
#define FUNCTION_IN_FILTER	  0x01
#define FUNCTION_IN_NOTRACE	  0x02
#define FUNCTION_IN_GRAPH	  0x04
#define FUNCTION_IN_GRAPH_NOTRACE 0x08

/* Returns the lists of function i, where an empty list that selects has all. With the turn. */
u8 function_lists_of(u32 i);

/* Linux's numbers of these records, which its tools know (enum trace_type of 6.1). */
#define FUNCTION_RECORD_CALL  1
#define FUNCTION_RECORD_EXIT  10
#define FUNCTION_RECORD_ENTRY 11

/* The records, as Linux 6.1 has them (kernel/trace/trace_entries.h). */
struct function_record_call {
	struct profile_trace_event common;
	u64 ip, parent_ip;
} __attribute__((__may_alias__));

struct function_record_entry {
	struct profile_trace_event common;
	u64 func;
	s32 depth;
} pf_aligned(8) __attribute__((__may_alias__));

struct function_record_exit {
	struct profile_trace_event common;
	u64 func;
	s32 depth;
	u32 overrun;
	u64 calltime, rettime; /* ns */
} __attribute__((__may_alias__));

/* Returns what is recorded of a function. Any context. */
static pf_always_inline u8 function_flags_of(u64 function)
{
	return function_flags[os_function_index(function)];
}

/*
 * record.c: what the general hook does for the tracers. Any context but NMI. function_trace_enter()
 * returns whether the end is to be told.
 */
bool function_trace_enter(u64 function, u64 return_address, struct profile_function_call *call,
			  struct profile_function_thread *thread);
void function_graph_exit(const struct profile_function_call *call,
			 struct profile_function_thread *thread);

/*
 * The tracers' own hooks, which functions call directly while calls are not counted. What they
 * cannot do at once they leave to the general hook.
 */
os_function_hook void profile_function_record(void);
os_function_hook void profile_function_graph(void);

/* A new graph begins, or, not on, the present one ends. With the turn. */
void function_graph_switch(bool on);
/* The graph has at most so many calls around each other; 0: as many as there are. */
extern u32 function_graph_depth;

/* graph_text.c: the file `trace`, of the tracer function_graph. */
void function_graph_print_head(os_text_t *text);
bool function_graph_print_line(os_text_t *text, struct tracer_line *line);

#else
#define function_tracer_hook(i)		  NULL
#define function_trace_begin()		  ((void)0)
#define function_trace_end()		  ((void)0)
#define function_lists_init		  NULL
#define function_flags_of(function)	  0
#define function_trace_enter(f, r, c, t)  ((void)(f), (void)(r), (void)(c), (void)(t), false)
#define function_graph_exit(call, thread) ((void)0)
#endif

#endif
