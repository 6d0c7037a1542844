/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_EVENT_KEYS_H
#define PROFILE_EVENT_KEYS_H

/*
 * profile_event_write(name, arguments) writes an event of the system `profile`, which must be on.
 * Any context, NMI included.
 */

#include "util.h"

#ifdef CONFIG_PROFILE_TRACE
/* Set by the trace before any of these events can be on. */
struct profile_event_writers {
	void (*point_begin)(const char *name);
	void (*point_end)(const char *name);
	void (*sample)(u64 ip, bool user, u32 code_map);
};
extern struct profile_event_writers profile_event_writers;

#define profile_event_write(name, ...) profile_event_writers.name(__VA_ARGS__)
#else
#define profile_event_write(name, ...) ((void)0)
#endif

#endif
