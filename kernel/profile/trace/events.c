// SPDX-License-Identifier: BSD-2-Clause
/*
 * Defines the events of <profile/events.h>. The list is expanded four times: into the IDs; the
 * structs of the records; the printers; and the writers, with their fields and format texts.
 *
 * A writer reserves its record in the ring and fills it in there: 40 instructions for two
 * arguments. It takes the slow path if the event has a filter, if call chains are on, or if the
 * fast path of the ring fails. Then it fills in a copy, and trace_write_slow() filters and
 * records it.
 */

#include "trace.h"

#include "text.h"

#undef errno /* a field has this name */

enum {
	LAST_ID_OF_LINUX = 99, /* IDs up to here have a fixed meaning for Linux's tools */
#define PROFILE_EVENT(system, name, ...) ID_##name,
#include <profile/events.h>
#undef PROFILE_EVENT
};

/* The struct of each record. */
#define PROFILE_FIELD(text, type, name)		  type name;
#define PROFILE_FIELD_ARRAY(text, type, name, nr) type name[nr];
#define PROFILE_FIELD_TEXT(name, bytes)		  char name[bytes];
#define PROFILE_FIELD_STRING(name, bytes) \
	u32 data_loc_##name;              \
	char data_##name[bytes];
#define PROFILE_EVENT(system, name, parameters, arguments, fields, assignments, print) \
	struct record_##name {                                                         \
		struct profile_trace_event common;                                     \
		fields                                                                 \
	} pf_aligned(8) __attribute__((__may_alias__));
#include <profile/events.h>
#undef PROFILE_EVENT
#undef PROFILE_FIELD
#undef PROFILE_FIELD_ARRAY
#undef PROFILE_FIELD_TEXT
#undef PROFILE_FIELD_STRING

/* The printer of each record: its format and arguments, compiled into a call of trace_printf(). */
#define __print_flags(value, separator, ...)         \
	trace_flag_names((char[64]){ 0 }, 64, value, \
			 (const struct trace_flag_name[]){ __VA_ARGS__, { 0, NULL } })
#define __get_str(name) ((const char *)REC + (u16)REC->data_loc_##name)
#define PRINT(fmt, ...) trace_printf(text, fmt, __VA_ARGS__)
#define PROFILE_EVENT(system, name, parameters, arguments, fields, assignments, print) \
	static void print_##name(os_text_t *text, const void *content)                 \
	{                                                                              \
		const struct record_##name *REC = content;                             \
                                                                                       \
		PRINT print;                                                           \
		pf_no_tail_call();                                                     \
	}
#include <profile/events.h>
#undef PROFILE_EVENT
#undef __print_flags
#undef __get_str

/* The writer of each record, with its fields and its format text. */
#define ENTRY(text, name_, member, ...)                           \
	{ .type = text,                                           \
	  .name = #name_,                                         \
	  .offset = __builtin_offsetof(__typeof__(*REC), member), \
	  .bytes = sizeof(REC->member),                           \
	  __VA_ARGS__ },
#define IS_SIGNED(type) ((type)-1 < (type)1)

#define PROFILE_FIELD(text, type, name) ENTRY(text, name, name, .is_signed = IS_SIGNED(type))
#define PROFILE_FIELD_TEXT(name, size)	ENTRY("char", name, name, .nr = size, .is_text = true)

#define PROFILE_FIELD_ARRAY(text, type, name, count) ENTRY(text, name, name, .nr = count)
#define PROFILE_FIELD_STRING(name, size) \
	ENTRY("__data_loc char[]", name, data_loc_##name, .is_text = true, .is_moved = true)
#define PRINT_FORMAT(fmt, ...) "\"" fmt "\", " #__VA_ARGS__

#define SET_COMM(field, task)                                       \
	do {                                                        \
		u64 _comm[2];                                       \
                                                                    \
		os_task_comm(task, _comm);                          \
		__builtin_memcpy(REC->field, _comm, sizeof(_comm)); \
	} while (0)
#define SET_STRING(name, string)                                     \
	(REC->data_loc_##name =                                      \
		 __builtin_offsetof(__typeof__(*REC), data_##name) | \
		 trace_copy_string(REC->data_##name, sizeof(REC->data_##name), string) << 16)

#define PROFILE_EVENT(system_, name_, parameters, arguments, fields_, assignments, fmt_) \
	static os_key_t slow_key_##name_;                                                \
                                                                                         \
	static pf_noinline void profile_trace_##name_##_slow parameters                  \
	{                                                                                \
		struct record_##name_ copy, *REC = &copy;                                \
		static const struct trace_field own_fields[] = { fields_ };              \
		static struct trace_event event TRACE_EVENTS_SECTION = {                 \
			.system = #system_,                                              \
			.name = #name_,                                                  \
			.id = ID_##name_,                                                \
			.bytes = sizeof(*REC),                                           \
			.key = &profile_trace_key_##name_,                               \
			.slow_key = &slow_key_##name_,                                   \
			.fields = own_fields,                                            \
			.nr_fields = PF_ARRAY_SIZE(own_fields),                          \
			.print_format = PRINT_FORMAT fmt_,                               \
			.print = print_##name_,                                          \
		};                                                                       \
                                                                                         \
		assignments;                                                             \
		trace_write_slow(&event, &REC->common);                                  \
	}                                                                                \
                                                                                         \
	void profile_trace_##name_ parameters                                            \
	{                                                                                \
		struct trace_slot slot = { 0 };                                          \
		struct record_##name_ *REC;                                              \
                                                                                         \
		if (!os_key_on(&slow_key_##name_))                                       \
			slot = trace_reserve_quickly(sizeof(*REC));                      \
		REC = slot.content;                                                      \
		if (pf_unlikely(!REC)) {                                                 \
			profile_trace_##name_##_slow arguments;                          \
			return;                                                          \
		}                                                                        \
		trace_fill_common(&REC->common, ID_##name_);                             \
		assignments;                                                             \
		trace_commit(slot);                                                      \
	}
#include <profile/events.h>
