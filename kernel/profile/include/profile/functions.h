/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_FUNCTIONS_H
#define PROFILE_INCLUDE_FUNCTIONS_H

/*
 * The hooks of the profiler of functions (functions/count.c). The kernel calls them at the start
 * and at the return of functions, but not for the hooks themselves. In an NMI, it calls only
 * profile_function_in_nmi().
 */

#include "../../os_hooks.h"

struct function_row;

/* The state of a call until it returns. */
struct profile_function_call {
	struct function_row *row; /* the row that counts it; NULL: not counted */
	u64 start;		  /* the thread's CPU time at the call, in cycles */
	u64 callees;		  /* the part of it in called functions, in cycles */
	u64 entered;		  /* os_cycles() at the call, if it is in the graph */
	u64 function;		  /* its address */
	u32 around;		  /* the thread's `graph` before the call; 0: not in the graph */
};

/* The state of a thread, initially all zero. */
struct profile_function_thread {
	u64 off_cycles; /* time off its CPU, since any fixed moment; the kernel sets it */
	u32 graph;	/* its position in the graph of calls: see functions/record.c */
	u32 nr_overrun; /* calls that had no room in the graph */
};

/*
 * Counts and records a call of a function. Returns true if the kernel must call
 * profile_function_exit() when it returns. call is NULL if the kernel cannot do that; thread is
 * NULL if there was no memory for it.
 */
bool profile_function_enter(u64 function, u64 return_address, struct profile_function_call *call,
			    struct profile_function_thread *thread);

/* Counts a call in an NMI as missing, if calls are counted. */
void profile_function_in_nmi(void);

/* Ends a call that returns. parent is the innermost enclosing call, or a dummy. */
void profile_function_exit(struct profile_function_call *call, struct profile_function_call *parent,
			   struct profile_function_thread *thread);

/*
 * The end of a call whose start only a tracer's own hook has seen (os_function_hook in os.h). slot:
 * where on the stack its return address is. With CONFIG_PROFILE_TRACE.
 */
void profile_function_graph_exit(u64 *slot);

#endif
