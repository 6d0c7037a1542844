/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed to count and trace functions, besides chains.h and trace.h. */
typedef void os_function_hook_t(void);
int hook_functions(os_function_hook_t *(*hook_of)(u32 function));
void general_hook(void);
u64 function_at(u32 number);
struct hooked {
	u64 function, caller;
	struct profile_function_thread thread;
	struct profile_function_call *calls;
};
struct hooked *hooked(void);
#define os_function_hook
#define os_function_general_hook       general_hook
#define os_function_calls_set(hook_of) hook_functions(hook_of)
#define os_nr_functions()	       100u
#define os_function(i)		       function_at(i)
#define OS_NR_FUNCTION_INDICES	       128
#define os_function_index(addr)	       ((u32)(addr) % OS_NR_FUNCTION_INDICES)
#define os_function_hooked()	       (hooked()->function)
#define os_function_hooked_index()     os_function_index(hooked()->function)
#define os_function_caller()	       (hooked()->caller)
#define os_function_in_nmi()	       false
#define os_function_enter()	       general_hook()
#define os_function_thread()	       (&hooked()->thread)
#define os_function_current()	       (&hooked()->thread)
#define os_function_self()	       (&hooked()->thread)
#define os_function_push(thread)       (++hooked()->calls)
#define os_function_pop(thread)	       ((void)hooked()->calls--)
#define os_function_tell_end(call)     ((void)(call))
#define os_function_end(thread, slot)  ((void)(slot), hooked()->calls)
#define os_function_parent(call)       ((void)(call), hooked()->calls - 1)
