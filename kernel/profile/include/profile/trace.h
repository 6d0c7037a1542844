/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_TRACE_H
#define PROFILE_INCLUDE_TRACE_H

/*
 * The hooks of trace events, a part of <profile/profile.h>: profile_trace(name, arguments) records
 * the event of that name in <profile/events.h>. Any context, NMI included. While the event is off,
 * the hook is a NOP. If it is compiled out, there is no code, and the arguments are not evaluated.
 */

#ifdef CONFIG_PROFILE_TRACE

#define PROFILE_FIELD(...)
#define PROFILE_FIELD_ARRAY(...)
#define PROFILE_FIELD_TEXT(...)
#define PROFILE_FIELD_STRING(...)
#define PROFILE_EVENT(system, name, parameters, arguments, fields, assignments, print) \
	extern os_key_t profile_trace_key_##name;                                      \
	void profile_trace_##name parameters;
#include <profile/events.h>
#undef PROFILE_EVENT
#undef PROFILE_FIELD
#undef PROFILE_FIELD_ARRAY
#undef PROFILE_FIELD_TEXT
#undef PROFILE_FIELD_STRING

#define profile_trace(name, ...)                           \
	do {                                               \
		if (os_key_on(&profile_trace_key_##name))  \
			profile_trace_##name(__VA_ARGS__); \
	} while (0)

/* The same, if a condition is true. The condition is evaluated only while the event is on. */
#define profile_trace_if(name, condition, ...)                           \
	do {                                                             \
		if (os_key_on(&profile_trace_key_##name) && (condition)) \
			profile_trace_##name(__VA_ARGS__);               \
	} while (0)

/*
 * The same, for what a CPU's timer does all the time. While a session of another profiler owns the
 * rings, they have none of an idle CPU or of a thread that makes a report: nobody asks for these,
 * and they would soon fill the rings.
 */
#define profile_trace_tick(name, ...) \
	profile_trace_if(name, profile_trace_wants_tick(), __VA_ARGS__)
bool profile_trace_wants_tick(void);

/*
 * For hot paths: calls fn(a), which records the event, in a way that costs the caller no registers
 * (os_call_1).
 */
#define profile_trace_call(name, fn, a)                   \
	do {                                              \
		if (os_key_on(&profile_trace_key_##name)) \
			os_call_1(fn, a);                 \
	} while (0)

/* Stores the new name of a task for the trace. Any context but NMI. */
void profile_trace_task(os_task_t *task);

#else

#define profile_trace(name, ...)	       ((void)0)
#define profile_trace_if(name, condition, ...) ((void)0)
#define profile_trace_tick(name, ...)	       ((void)0)
#define profile_trace_call(name, fn, a)	       ((void)0)
#define profile_trace_task(task)	       ((void)0)

#endif

#endif
