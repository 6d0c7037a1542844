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
	struct function_row *row; /* where it counts */
	u64 start;		  /* CPU time of the thread, in cycles */
	u64 callees;		  /* of them, in functions that it has called */
};

/*
 * Counts a call of a function. Returns true if the end is to be told, by profile_function_exit();
 * call is NULL if that is not possible. *off_cycles is for how long the thread was off its CPU.
 */
bool profile_function_enter(u64 function, u64 return_address, struct profile_function_call *call,
			    const u64 *off_cycles);

/* Returns the lower half of the address of the function that was called. */
u64 profile_function_of(const struct profile_function_call *call);

/* The call returns; parent is the innermost one that goes on, or NULL. */
void profile_function_exit(struct profile_function_call *call, struct profile_function_call *parent,
			   const u64 *off_cycles);

#endif
