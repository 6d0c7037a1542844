// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profilers' part of the trace: the keys of all events, and the writers of the events that
 * are the profilers' own. The trace sets the writers, so neither needs the other to be linked.
 */

#include "event_keys.h"

#ifdef CONFIG_PROFILE_TRACE
#define FIELD(...)
#define FIELD_ARRAY(...)
#define FIELD_TEXT(...)
#define FIELD_STRING(...)
#define PROFILE_EVENT(system, name, ...) os_key_t trace_key_##name;
#include <lego/profile_events.h>

struct profile_event_writers profile_event_writers;
#endif
