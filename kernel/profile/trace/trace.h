/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_H
#define PROFILE_TRACE_H

/* Shared by the files of this folder: events, tracers, and the text of /sys/kernel/tracing. */

#include "../report.h"
#include "ring.h"

/* A field of an event, as its format text has it. */
struct trace_field {
	const char *type; /* "pid_t", "char" */
	const char *name;
	u16 offset, bytes; /* from the common fields on */
	u16 nr;		   /* of an array; 0: it is none */
	bool is_signed;
	bool is_text;  /* characters, up to a NUL if there is one */
	bool is_moved; /* __data_loc: its offset and, in the upper half, its length */
};

enum trace_compare {
	TRACE_EQUAL,
	TRACE_NOT_EQUAL,
	TRACE_LESS,
	TRACE_GREATER,
	TRACE_LESS_OR_EQUAL,
	TRACE_GREATER_OR_EQUAL,
	TRACE_AND,  /* any of these bits */
	TRACE_GLOB, /* of texts */
};

#define TRACE_FILTER_BYTES 128

/*
 * A comparison with a field. It is part of its event, so a writer may look at it at any time; while
 * it is being changed, an event may be judged by parts of both.
 */
struct trace_filter {
	const struct trace_field *field;
	enum trace_compare compare;
	u64 value;
	/*
	 * The same of a number, as one comparison: of the 8 bytes at offset, which end with the
	 * field, those that mask leaves must be in a range: value - first <= last_less_first.
	 */
	u32 offset, shift;
	u64 mask, first, last_less_first;
	bool wants_common;		     /* the field is a common one */
	char value_text[TRACE_FILTER_BYTES]; /* of a field that is a text */
	char text[TRACE_FILTER_BYTES];	     /* as it was written */
};

/*
 * An event. It is a variable of its own in section trace_events. Its writer runs while `key` is on,
 * and writes a record that begins with struct profile_trace_event.
 */
struct trace_event {
	const char *system, *name;
	u32 id;
	u32 bytes;
	os_key_t *key; /* NULL: only a tracer writes it; it cannot be switched */
	const struct trace_field *fields;
	u32 nr_fields;
	const char *print_format; /* what follows `print fmt: ` */
	/* Prints what follows the event's name in a line. content: of at least `bytes` bytes. */
	void (*print)(os_text_t *text, const void *content);
	bool is_on;
	u8 slow;	    /* TRACE_SLOW_*: its writer calls trace_write_slowly() if any is set */
	os_key_t *slow_key; /* on if any is; NULL as key is */
	struct trace_filter filter;
};

#define TRACE_SLOW_FILTER 1
#define TRACE_SLOW_STACK  2

#define TRACE_EVENTS_SECTION pf_used pf_section("trace_events") pf_aligned(8)

extern struct trace_event __start_trace_events[] __attribute__((weak));
extern struct trace_event __stop_trace_events[] __attribute__((weak));

#define trace_for_each_event(event) \
	for ((event) = __start_trace_events; (event) < __stop_trace_events; (event)++)

/* What a tracer prints. */
#define TRACER_STATE_WORDS 80
struct tracer_line {
	u32 cpu;
	const struct ring_event *event;
	const struct ring_event *next; /* of this CPU; NULL: none yet, or the event is a long one */
	bool takes_next;	       /* set by the tracer: it has printed that, too */
	u64 *state; /* what the tracer knows of the lines before, of this CPU; zeros at first */
};

/*
 * A tracer is what current_tracer selects: it writes records from start() to stop(). It registers
 * itself by TRACER() at file scope. All but print_line in process context.
 */
struct tracer {
	const char *name;
	int (*start)(void); /* 0 or a negative errno; the rings have memory */
	void (*stop)(void);
	/* Prints the lines above the first event, behind `# tracer: `; NULL: the usual ones. */
	void (*print_head)(os_text_t *text);
	/* Prints the whole line of an event of any kind. false: as without a tracer. */
	bool (*print_line)(os_text_t *text, struct tracer_line *line);
};

#define TRACER(ident) \
	static const struct tracer tracer_##ident pf_used pf_section("tracers") pf_aligned(8)

extern const struct tracer __start_tracers[] __attribute__((weak));
extern const struct tracer __stop_tracers[] __attribute__((weak));

/*
 * control.c: readers of the rings hold them, so that nobody changes their size meanwhile. false:
 * somebody does so now. Any context but NMI.
 */
bool trace_hold_rings(void);
void trace_release_rings(void);

/* The switches. Process context; all return 0 or a negative errno. */
int trace_need_rings(void);	   /* gives them memory, unless they have some, and records */
int trace_resize_rings(u64 bytes); /* 0 frees them, if nothing is on */
u64 trace_ring_bytes(void);
int trace_set_recording(bool on);
bool trace_is_recording(void);
/* Whether each event has its call chain behind it. Nothing without CONFIG_PROFILE_CALLCHAIN. */
void trace_set_stacks(bool on);
/* Gives an event a filter; NULL takes it away. */
void trace_put_filter(struct trace_event *event, const struct trace_filter *filter);
bool trace_has_stacks(void);
int trace_switch_event(struct trace_event *event, bool on);
/* Which events are meant: those of a system, of a name, or all; NULL stands for any. */
int trace_switch_events(const char *system, const char *name, bool on);
/* Words `system:name`, `system` or `name`, with shell patterns; `!` before one switches off. */
int trace_switch_words(const char *words);
int trace_select_tracer(const char *name);
const struct tracer *trace_current_tracer(void);

/* show.c: the files trace, trace_pipe, and per_cpu/cpu<n>/stats. */
int trace_show(os_text_t *text, const void *unused);
int trace_show_stats(os_text_t *text, const void *cpu);
bool trace_show_next(os_text_t *text, const void *unused);
void trace_show_restart(void); /* another tracer prints what comes */

/* files.c */
void trace_add_files(void);

/* export.c: the files of an export. */
void trace_print_events_json(const void *unused);
void trace_print_tasks_json(const void *unused);
void trace_print_cpus_json(const void *unused);
void trace_print_pages_json(const void *unused);

/*
 * filter.c: records an event whose fields the writer has filled in, if its filter wants it, and its
 * call chain, if that is on. The common fields are filled in here. Any context.
 */
void trace_write_slowly(const struct trace_event *event, struct profile_trace_event *content);
/* Sets the filter: `<field> <operator> <value>`, or `0` for none. Returns 0 or -OS_EINVAL. */
int trace_set_filter(struct trace_event *event, const char *text);

/* Copies an event's record to the ring. false: it is lost. Any context. */
bool trace_record_copy(const struct trace_event *event, const void *content);
#ifdef CONFIG_PROFILE_CALLCHAIN
/* stack.c: the same, and behind it the call chain, from the event's writer on. Any context. */
void trace_record_with_stack(const struct trace_event *event, const void *content);
#else
#define trace_record_with_stack(event, content) ((void)0)
#endif

/* Makes the text of an event's `format` file. */
#define TRACE_FORMAT_BYTES 2048
void trace_format_text(const struct trace_event *event, char text[TRACE_FORMAT_BYTES]);

/* Returns the event with this ID, or NULL. Any context. */
const struct trace_event *trace_find_event(u32 id);

typedef u32 __attribute__((__may_alias__)) trace_u32_alias;

/* Fills in the common fields of an event that the running CPU records. Any context. */
static pf_always_inline void trace_fill_common(struct profile_trace_event *common, u32 id)
{
	/* Four bytes at once, as preempt_count is 0. */
	*(trace_u32_alias *)common = id;
	common->flags = os_trace_flags();
	common->pid = os_current_tid();
}

#endif
