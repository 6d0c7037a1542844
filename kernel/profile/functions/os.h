/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FUNCTIONS_OS_H
#define PROFILE_FUNCTIONS_OS_H

/*
 * The kernel's contract for counting functions, besides ../os.h. os_function(i) is the
 * address of one of os_nr_functions() functions. No two have the same os_function_index(), which is
 * less than OS_NR_FUNCTION_INDICES. os_function_calls_set() makes each function i call hook_of(i)
 * at its start, or no hook if that is NULL. It returns 0 or -OS_ENOMEM; process context.
 * os_function_general_hook is the hook that calls profile_function_enter() and
 * profile_function_exit(), or profile_function_in_nmi() (<profile/functions.h>). All have the type
 * os_function_hook_t. os_function_self() is the current thread's struct profile_function_thread,
 * NULL without memory for it.
 *
 * For hooks that functions call directly, without the detour of the general one, os_function_hook
 * declares a hook: a function without arguments. In it
 *	os_function_hooked()		the start of the function that has called the hook
 *	os_function_hooked_index()	its index
 *	os_function_caller()		the address it will return to
 *	os_function_in_nmi()		whether this is in an NMI
 *	os_function_enter()		does what the general hook does
 *	os_function_thread()		the current thread; NULL if the end of the call cannot be
 *					told: in an NMI, or without memory for it
 *	os_function_push(), _pop()	puts a call on the thread's stack of calls, or takes it away
 *	os_function_tell_end()		lets profile_function_graph_exit() be called at the end
 * and at the end
 *	os_function_current()		the thread
 *	os_function_end()		puts the true return address back, and returns the call
 *	os_function_parent()		the call around it, or a dummy
 */

#include "../os_stacks.h"

#ifndef os_function_calls_set
#error "profile: define os_function_calls_set(hook_of): makes functions call hooks"
#endif

#endif
