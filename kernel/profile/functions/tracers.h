/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FUNCTIONS_TRACERS_H
#define PROFILE_FUNCTIONS_TRACERS_H

/*
 * The tracers `function` and `function_graph`, which write records of calls into the rings of
 * trace/. Hooks call the functions here that are for any context, so these must not call a function
 * that has a hook itself.
 */

#include "../util.h"
#include "os.h"

#include <profile/functions.h>

#ifdef CONFIG_PROFILE_TRACE

#include "../trace/pids.h"
#include "../trace/trace.h"

/* Flags: what is recorded of a function. */
#define FUNCTION_CALLS	 0x01 /* its calls, for the tracer `function` */
#define FUNCTION_GRAPH	 0x02 /* its calls and returns, for the tracer `function_graph` */
#define FUNCTION_ROOT	 0x04 /* it and its callees are in the graph */
#define FUNCTION_SKIPPED 0x08 /* neither it nor its callees are in the graph */

/* The flags of each function, by os_function_index(). Written with functions_lock held. */
extern u8 function_flags[OS_NR_FUNCTION_INDICES];

/* The current tracer. Guarded by functions_lock. */
enum function_tracer {
	FUNCTION_TRACER_NONE,
	FUNCTION_TRACER_CALLS,
	FUNCTION_TRACER_GRAPH,
};

extern enum function_tracer function_tracer;

/* set_ftrace_pid: only calls of these threads are recorded. Guarded by functions_lock. */
extern struct trace_pids function_pids;
extern bool function_selects_pids;

/* Return what the current tracer wants of function i: its flags, and which hook it is to call. */
u8 function_flags_wanted(u32 i);
os_function_hook_t *function_tracer_hook(u32 i);
/*
 * Set the flags of all functions to what the tracer wants, or clear those that it does not want any
 * more. The caller holds functions_lock.
 */
void function_trace_begin(void);
void function_trace_end(void);

/* lists.c: adds the files that select the functions to be traced. */
void function_lists_init(void);

/* The lists of functions, as bits. */
#define FUNCTION_IN_FILTER	  0x01
#define FUNCTION_IN_NOTRACE	  0x02
#define FUNCTION_IN_GRAPH	  0x04
#define FUNCTION_IN_GRAPH_NOTRACE 0x08

/* Returns the lists that function i is in. The caller holds functions_lock. */
u8 function_lists_of(u32 i);

/* The types of these records in Linux 6.1 (enum trace_type), which its tools know. */
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

/* Returns the flags of a function. Any context. */
static pf_always_inline u8 function_flags_of(u64 function)
{
	return function_flags[os_function_index(function)];
}

/*
 * record.c: called by the general hook at the start and at the end of a call. Returns true if the
 * end has to be reported, by function_graph_exit(). Any context but NMI.
 */
bool function_trace_enter(u64 function, u64 return_address, struct profile_function_call *call,
			  struct profile_function_thread *thread);
void function_graph_exit(const struct profile_function_call *call,
			 struct profile_function_thread *thread);

/*
 * The tracers' own hooks, which functions call directly while calls are not counted. Slow cases
 * are left to the general hook.
 */
os_function_hook void profile_function_record(void);
os_function_hook void profile_function_graph(void);

/* Begins a new graph, or ends the current one. The caller holds functions_lock. */
void function_graph_switch(bool on);
/* The maximum depth of the graph, in nested calls; 0: no limit. */
extern u32 function_graph_depth;
/* Calls that take less are not recorded; 0: all are. */
extern u64 function_graph_threshold_cycles;

/* graph_text.c: print the file `trace` for the tracer function_graph. */
void function_graph_print_head(os_text_t *text);
bool function_graph_print_line(os_text_t *text, struct tracer_line *line);
/* Writes microseconds with seven digits, at most three of them after the point. */
#define FUNCTION_US_BYTES 32
void function_us(char digits[FUNCTION_US_BYTES], u64 ns);

/* trace_stat.c: adds function_profile_enabled and trace_stat/. */
void function_stat_init(void);

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
