// SPDX-License-Identifier: BSD-2-Clause
/*
 * The events syscalls:sys_enter_<name> and sys_exit_<name>, with a field for each argument. They
 * are made of raw_syscalls:sys_enter and sys_exit, whose writers pass their records on while any of
 * these events is needed. A record differs only in its type, and has no arguments that the call
 * does not have. So system calls have no further hooks.
 *
 * Each event has a key, as others have. No code depends on it: trace_write_call() reads it.
 */

#include "text.h"
#include "trace.h"

#define NAME_BYTES  64
#define MAX_ARGS    6
#define FIRST_FIELD 16 /* offset of the first argument, or of the result */

/* What an event needs besides its struct trace_event, with its name and params behind it. */
struct call {
	os_key_t key, slow_key;
	struct trace_field fields[1 + MAX_ARGS];
	char name[NAME_BYTES]; /* sys_enter_<name> */
	char text[NAME_BYTES]; /* sys_<name> */
	char params[];	       /* types and names, each with a NUL */
};

struct trace_event *trace_calls, *trace_calls_end;
struct trace_event *trace_raw_calls[2];

static struct trace_event *by_number[OS_MAX_SYSCALLS][2]; /* enter, exit; NULL: none */

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/*
 * Splits a list of parameters as C has it, `(int fd, char *buf)`, in place, into types and names.
 * Returns their number.
 */
static u32 split(char *params, const char *types[MAX_ARGS], const char *names[MAX_ARGS])
{
	u32 nr = 0;

	for (char *at = params + 1, *end; *params && *at && *at != ')' && nr < MAX_ARGS; nr++) {
		while (*at == ' ')
			at++;
		types[nr] = at;
		for (end = at; *end && *end != ',' && *end != ')'; end++)
			;
		at = end + (*end != '\0');
		*end = '\0';
		names[nr] = end;
		while (names[nr] > types[nr] && is_name_character(names[nr][-1]))
			names[nr]--;
	}
	return nr;
}

/* Ends a type before its name, at the blank that is there, or moves the name behind a NUL. */
static void end_type(const char *type, const char **name)
{
	char *end = (char *)*name;

	while (end > type && end[-1] == ' ')
		end--;
	if (end == *name) {
		for (size_t i = strlen(end) + 1; i--;)
			end[i + 1] = end[i];
		*name = end + 1;
	}
	*end = '\0';
}

static void add_field(struct trace_event *event, struct call *call, struct trace_field field)
{
	call->fields[event->nr_fields++] = field;
}

static void add_arguments(struct trace_event *event, struct call *call)
{
	const char *types[MAX_ARGS], *names[MAX_ARGS];
	u32 nr = split(call->params, types, names);

	/* From the last one on, because end_type() may move a name. */
	for (u32 i = nr; i--;)
		end_type(types[i], &names[i]);
	for (u32 i = 0; i < nr; i++)
		add_field(event, call,
			  (struct trace_field){ .type = types[i],
						.name = names[i],
						.offset = FIRST_FIELD + i * sizeof(u64),
						.bytes = sizeof(u64) });
}

static void print(os_text_t *text, const void *content)
{
	const struct profile_trace_event *common = content;
	const struct trace_event *event = trace_find_event(common->type);
	u64 value;

	os_text_printf(text, event->is_exit ? "%s ->" : "%s(", event->call);
	for (u32 i = 1; i < event->nr_fields; i++) {
		memcpy(&value, (const char *)content + event->fields[i].offset, sizeof(value));
		if (event->is_exit)
			os_text_printf(text, " 0x%lx", value);
		else
			os_text_printf(text, "%s%s: %lx", i > 1 ? ", " : "", event->fields[i].name,
				       value);
	}
	os_text_printf(text, event->is_exit ? "" : ")");
}

/* Returns the length of the name before the parameters. */
static int name_length(const char *params)
{
	int len = 0;

	while (is_name_character(params[len]))
		len++;
	return len;
}

/* Returns whether there was memory. */
static bool make_event(struct trace_event *event, u32 id, u32 nr, bool is_exit)
{
	const char *name = os_syscall_name(nr), *params = os_syscall_params(nr);
	int len = name_length(params);
	size_t params_bytes = is_exit ? 0 : strlen(params + len);
	size_t room = params_bytes + MAX_ARGS + 1; /* end_type() adds bytes */
	struct call *call = os_zalloc(sizeof(*call) + room);

	if (!call)
		return false;
	name += strncmp(name, "sys_", 4) ? 0 : 4;
	os_snprintf(call->text, sizeof(call->text), "sys_%.*s", len ?: (int)strlen(name),
		    len ? params : name);
	os_snprintf(call->name, sizeof(call->name), "sys_%s_%s", is_exit ? "exit" : "enter",
		    call->text + 4);
	memcpy(call->params, params + len, params_bytes);
	*event = (struct trace_event){
		.system = "syscalls",
		.name = call->name,
		.id = id,
		.key = &call->key,
		.slow_key = &call->slow_key,
		.fields = call->fields,
		.print = print,
		.slow = TRACE_SLOW_CALL,
		.wanted_slow = TRACE_SLOW_CALL,
		.call = call->text,
		.is_exit = is_exit,
	};
	add_field(event, call,
		  (struct trace_field){ .type = "int",
					.name = "__syscall_nr",
					.offset = sizeof(struct profile_trace_event),
					.bytes = sizeof(s32),
					.is_signed = true });
	if (is_exit)
		add_field(event, call,
			  (struct trace_field){ .type = "long",
						.name = "ret",
						.offset = FIRST_FIELD,
						.bytes = sizeof(u64),
						.is_signed = true });
	else
		add_arguments(event, call);
	event->bytes = FIRST_FIELD + (event->nr_fields - 1) * sizeof(u64);
	by_number[nr][is_exit] = event;
	return true;
}

static bool has_events(u32 nr)
{
	return os_syscall_params(nr) && os_syscall_name(nr);
}

bool trace_calls_init(void)
{
	struct trace_event *event, *next;
	u32 nr_events = 0, id = 0;

	trace_for_each_event(event) {
		id = pf_max(id, event->id);
		if (event->key == &profile_trace_key_sys_enter)
			trace_raw_calls[0] = event;
		if (event->key == &profile_trace_key_sys_exit)
			trace_raw_calls[1] = event;
	}
	for (u32 nr = 0; nr < OS_MAX_SYSCALLS; nr++)
		nr_events += has_events(nr) ? 2 : 0;
	event = next = nr_events ? os_zalloc(nr_events * sizeof(*event)) : NULL;
	if (!event)
		return !nr_events;
	for (u32 i = 0; i < 2 * OS_MAX_SYSCALLS; i++) {
		if (has_events(i / 2) && !make_event(next++, ++id, i / 2, i % 2))
			return false;
	}
	trace_calls = event;
	trace_calls_end = next;
	return true;
}

void trace_write_call(const struct trace_event *raw, struct profile_trace_event *content)
{
	const struct trace_event *event;
	u64 nr;

	memcpy(&nr, content + 1, sizeof(nr));
	event = nr < OS_MAX_SYSCALLS ? by_number[nr][raw == trace_raw_calls[1]] : NULL;
	if (event && os_key_is_set(event->key))
		trace_write_slow(event, content);
}

bool trace_calls_are_needed(bool is_exit)
{
	for (struct trace_event *event = trace_calls; event < trace_calls_end; event++) {
		if (event->is_exit == is_exit && os_key_is_set(event->key))
			return true;
	}
	return false;
}
