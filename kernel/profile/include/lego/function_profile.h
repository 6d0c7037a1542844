/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FUNCTION_PROFILE_H
#define LEGO_FUNCTION_PROFILE_H

/*
 * The hooks of the profiler of functions (functions/count.c). The kernel calls them at the start
 * and at the end of functions, in any context but NMI. It must not do this for these hooks, too.
 */

#include "../../os_hooks.h"

struct function_row;

/* What is known of a call until it returns. */
struct profile_function_call {
	struct function_row *row; /* where it counts; NULL: it does not */
	u64 start;		  /* CPU time of the thread, in cycles */
	u64 callees;		  /* of them, in functions that it has called */
	u64 entered;		  /* os_cycles(), if it is in the graph */
	u64 function;		  /* where it begins */
	u32 around;		  /* the thread's `graph` before the call; 0: it is in none */
};

/* What is known of a thread. It begins as zeros. */
struct profile_function_thread {
	u64 off_cycles; /* for how long it was off its CPU, since any moment; the kernel's */
	u32 graph;	/* how far it is in the graph of calls: functions/record.c */
	u32 nr_overrun; /* calls that are not in the graph as there was no room for them */
};

/*
 * Counts and records a call of a function. Returns true if the end is to be told, by
 * profile_function_exit(); call is NULL if that is not possible, thread if it has no memory.
 */
bool profile_function_enter(u64 function, u64 return_address, struct profile_function_call *call,
			    struct profile_function_thread *thread);

/* The call returns; parent is the innermost one that goes on, or a dummy. */
void profile_function_exit(struct profile_function_call *call, struct profile_function_call *parent,
			   struct profile_function_thread *thread);

/*
 * The end of a call whose start only a tracer's own hook has seen (os_function_hook in os.h). slot:
 * where on the stack its return address is. With CONFIG_PROFILE_TRACE.
 */
void profile_function_graph_exit(u64 *slot);

#endif
