// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profilers' side of the trace: the static keys of all events, and pointers to the writers of
 * the profilers' own events. The trace sets the pointers, so each links without the other.
 */

#include "event_keys.h"

#ifdef CONFIG_PROFILE_TRACE
#define PROFILE_FIELD(...)
#define PROFILE_FIELD_ARRAY(...)
#define PROFILE_FIELD_TEXT(...)
#define PROFILE_FIELD_STRING(...)
#define PROFILE_EVENT(system, name, ...) os_key_t profile_trace_key_##name;
#include <profile/events.h>

struct profile_event_writers profile_event_writers;
#endif
