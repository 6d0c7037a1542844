/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_TRACE_H
#define PROFILE_TRACE_H

/*
 * Declares what the files of this folder share: events and their filters, tracers, the switches of
 * control.c, and the files of /sys/kernel/tracing. Events are written to the rings of ring.h, from
 * where show.c prints them and export.c exports them.
 */

#include "../report.h"
#include "os.h"
#include "ring.h"

/* A field of an event, as in the format text of the event. */
struct trace_field {
	const char *type; /* "pid_t", "char" */
	const char *name;
	u16 offset, bytes; /* offset: from the start of the common fields */
	u16 nr;		   /* elements of an array; 0: not an array */
	bool is_signed;
	bool is_text;  /* characters, up to a NUL if there is one */
	bool is_moved; /* __data_loc: the text's offset and, in the upper half, its length */
	bool is_comm;  /* not in the record: the name of the running thread */
};

enum trace_compare {
	TRACE_EQUAL,
	TRACE_NOT_EQUAL,
	TRACE_LESS,
	TRACE_GREATER,
	TRACE_LESS_OR_EQUAL,
	TRACE_GREATER_OR_EQUAL,
	TRACE_AND,  /* at least one of these bits is set */
	TRACE_GLOB, /* a text matches a shell pattern */
};

/* A comparison of a filter. */
struct trace_term {
	/*
	 * A comparison of a number is one range check. The 8 bytes at offset end with the field.
	 * Shifted left by shift and masked, they must satisfy value - first <= last_less_first.
	 */
	u32 offset, shift;
	u64 mask, first, last_less_first;
	/* Where to go on in terms, in bytes, if this one is false, and if it is true; or an end. */
	u16 next[2];
	/* The rest is for a field that is a text. */
	bool is_text;
	u8 compare; /* enum trace_compare */
	u16 text;   /* the value: where it begins in values */
	const struct trace_field *field;
};

#define TRACE_FILTER_TERMS 16
#define TRACE_FILTER_BYTES 256
/* The ends of a filter. They differ in one bit. */
#define TRACE_REFUSE 0xfffe
#define TRACE_ACCEPT 0xffff

/*
 * A filter: terms, of which each leads to a later one or to an end. A writer may use it while
 * another one replaces it (trace_put_filter()).
 */
struct trace_filter {
	struct trace_term terms[TRACE_FILTER_TERMS];
	bool wants_common; /* compares one of the common fields */
	char values[TRACE_FILTER_BYTES];
	char text[TRACE_FILTER_BYTES]; /* as it was written to the file, without blanks around it */
} pf_aligned(8);

/* Why a filter cannot be parsed. */
struct trace_filter_error {
	const char *what; /* NULL: no error */
	u32 at;		  /* the character of the text, from 0 */
};

/*
 * An event: a variable in section trace_events. Its writer runs while `key` is on, and writes a
 * record that begins with struct profile_trace_event.
 */
struct trace_event {
	const char *system, *name;
	u32 id;
	u32 bytes;
	os_key_t *key; /* NULL: a tracer or stack.c writes it; users cannot switch it */
	const struct trace_field *fields;
	u32 nr_fields;
	const char *print_format; /* the text after `print fmt: ` in the format file */
	/* Prints the part of a line after the event's name. content has at least `bytes` bytes. */
	void (*print)(os_text_t *text, const void *content);
	bool is_on;	    /* recorded in the rings */
	bool was_on;	    /* ever */
	bool is_of_session; /* was off when the session began */
	u8 slow;	    /* TRACE_SLOW_*: if any is set, its writer calls trace_write_slow() */
	u8 wanted_slow;	    /* the same, but for TRACE_SLOW_NO_RING, while control.c switches */
	os_key_t *slow_key; /* on if any is set; NULL if key is NULL */
	u16 other_tid;	    /* see trace_select_pids() */
	u64 count_begin, count_end; /* sums of counts.c when counting began, and when it ended */
	struct trace_hist *hists;   /* see hist.h */
	/* Of events of system calls, which calls.c makes: */
	const char *call; /* "sys_read"; NULL: not one of them */
	bool is_exit;
	bool has_files;
	struct trace_filter *filter;	   /* NULL: there has been none */
	struct trace_filter *other_filter; /* what it was before, in memory to be used again */
};

#define TRACE_SLOW_FILTER  1
#define TRACE_SLOW_STACK   2
#define TRACE_SLOW_PIDS	   4
#define TRACE_SLOW_COUNT   8   /* counts.c counts it */
#define TRACE_SLOW_HIST	   16  /* it has histograms */
#define TRACE_SLOW_NO_RING 32  /* it is not is_on: its key is on for another reason */
#define TRACE_SLOW_CALLS   64  /* a raw event of system calls, which calls.c needs */
#define TRACE_SLOW_CALL	   128 /* an event of calls.c */
/* These need the event, whether it is recorded or not. */
#define TRACE_SLOW_USES (TRACE_SLOW_COUNT | TRACE_SLOW_HIST | TRACE_SLOW_CALLS)

#define TRACE_EVENTS_SECTION pf_used pf_section("trace_events") pf_aligned(8)

extern struct trace_event __start_trace_events[] __attribute__((weak));
extern struct trace_event __stop_trace_events[] __attribute__((weak));

/* calls.c: the events of system calls, which follow those of the section; NULL: none. */
extern struct trace_event *trace_calls, *trace_calls_end;

static inline struct trace_event *trace_next_event(const struct trace_event *event)
{
	struct trace_event *next = (struct trace_event *)event + 1;

	if (next == __stop_trace_events)
		return trace_calls;
	return next == trace_calls_end ? NULL : next;
}

#define trace_for_each_event(event) \
	for ((event) = __start_trace_events; (event); (event) = trace_next_event(event))

/* The events of a system (NULL: of all) that users can switch. */
#define trace_for_each_event_of(event, system_) \
	trace_for_each_event(event)             \
		if ((event)->key && (!(system_) || !strcmp(system_, (event)->system)))

/* A line for a tracer to print. */
#define TRACER_STATE_WORDS 80
struct tracer_line {
	u32 cpu;
	const struct ring_event *event;
	const struct ring_event *next; /* on this CPU; NULL: none yet, or event has over 64 bytes */
	bool takes_next;	       /* set by the tracer if it has printed next, too */
	u64 *state; /* the tracer's memory of this CPU's earlier lines, initially all zero */
};

/*
 * A tracer, which the file current_tracer selects. It writes records from start() to stop(). It
 * registers itself by TRACER() at file scope. All functions but print_line run in process context.
 */
struct tracer {
	const char *name;
	int (*start)(void); /* returns 0 or a negative errno; the rings have memory then */
	void (*stop)(void);
	/* Prints the heading after the line `# tracer: <name>`; NULL: trace_print_head() does. */
	void (*print_head)(os_text_t *text);
	/* Prints the whole line of any event. Returns false to have the usual line printed. */
	bool (*print_line)(os_text_t *text, struct tracer_line *line);
};

#define TRACER(ident) \
	static const struct tracer tracer_##ident pf_used pf_section("tracers") pf_aligned(8)

extern const struct tracer __start_tracers[] __attribute__((weak));
extern const struct tracer __stop_tracers[] __attribute__((weak));

/*
 * control.c: holds the rings for a reader, so that their memory stays. trace_resize_rings() fails
 * until the reader calls trace_unpin_rings(). Any context but NMI. Returns false if the rings are
 * being resized now, which cannot be while the caller has trace_lock.
 */
bool trace_pin_rings(void);
void trace_unpin_rings(void);

/*
 * control.c: a lock. Its holder may change the switches, or read the rings briefly. The functions
 * below take it themselves. Process context.
 */
extern struct poll_lock trace_lock;

/* control.c: the switches. Process context. Those of type int return 0 or a negative errno. */
int trace_resize_rings(u64 bytes); /* bytes of each CPU; 0 frees them, if nothing is on */
u64 trace_ring_bytes(void);
int trace_need_rings(void); /* allocates them if there are none */
int trace_set_recording(bool on);
bool trace_is_recording(void);
/* Switches call chains: each event is followed by one. Needs CONFIG_PROFILE_CALLCHAIN. */
void trace_set_stacks(bool on);
extern bool trace_has_stacks;
/*
 * Records only events of threads in set_event_pid, and those that switch to such a thread or wake
 * it: their field at the offset other_tid has its number.
 */
int trace_select_pids(bool on);
/*
 * Sets the filter of an event to a copy of this one; NULL removes it. A writer sees the old filter
 * or the new one, unless it is interrupted for so long that the filter is replaced twice: then it
 * may see a mixture, and record or drop an event by that. Returns 0 or -OS_ENOMEM.
 */
int trace_put_filter(struct trace_event *event, const struct trace_filter *filter);
int trace_switch_event(const struct trace_event *event, bool on);
/* Sets bits of wanted_slow of an event. Of TRACE_SLOW_USES, each one lets its writer run. */
void trace_set_slow(struct trace_event *event, u8 bits, bool on);
/*
 * Switches all events whose system and name match these shell patterns; NULL matches all. Returns
 * -OS_EINVAL if there is no such event.
 */
int trace_switch_events(const char *system, const char *name, bool on);
/* Switches events by words `system:name`, `system` or `name`, with shell patterns; `!`: off. */
int trace_switch_words(const char *words);
int trace_select_tracer(const char *name);
/*
 * A session of another profiler: switches these events on, with rings of so many bytes unless there
 * are rings already. trace_end_session() switches them off again and clears the rings; files.c
 * calls it when a user writes or consumes anything. Returns 0 or a negative errno.
 */
int trace_begin_session(const char *words, u64 bytes);
void trace_end_session(void);
bool trace_session_is_on(void);
const struct tracer *trace_current_tracer(void);

/* What a file of one CPU gets as its argument. That of a file of all CPUs is NULL. */
#define TRACE_CPU(cpu)	       ((void *)((u64)(cpu) + 1))
#define TRACE_CPU_OF(argument) ((u32)(u64)(argument)-1)

/* show.c: the files trace, trace_pipe, and per_cpu/cpu<n>/stats. */
int trace_show(os_text_t *text, const void *cpu);
int trace_show_stats(os_text_t *text, const void *cpu);
bool trace_show_next(os_text_t *text, const void *cpu, bool waits);
bool trace_has_next(const void *cpu); /* whether there are events for these streams */
void trace_show_restart(void);	      /* another tracer prints from now on; with trace_lock held */

/* marker.c: the file trace_marker. Returns 0, also if recording is off, or -OS_ENOMEM. */
int trace_write_marker(const char *text, const void *unused);

/*
 * options.c: a switch in options/ and trace_options. set() changes the flag; NULL: nothing else is
 * to be done then. Its memory stays.
 */
struct trace_option {
	const char *name;
	bool *flag;
	void (*set)(bool on);
	char path[32];
	struct trace_option *next;
};

void trace_options_init(void);
void trace_add_option(struct trace_option *option); /* at start */
int trace_show_options(os_text_t *text, const void *unused);
int trace_write_options(const char *text, const void *unused);

/* raw.c: the files per_cpu/cpu<n>/trace_pipe_raw and events/header_*. */
#define TRACE_RAW_PAGE_BYTES 4096
bool trace_show_next_raw(os_text_t *text, const void *cpu, bool waits);
int trace_show_header_page(os_text_t *text, const void *unused);
int trace_show_header_event(os_text_t *text, const void *unused);

/* files.c: create the files of /sys/kernel/tracing, or another one. Process context. */
void trace_add_files(void);
void trace_add_file(os_trace_file_t file);

/* export.c: the files of an export. */
void trace_print_events_json(const void *unused);
void trace_print_tasks_json(const void *unused);
void trace_print_calls_json(const void *unused);
void trace_print_cpus_json(const void *unused);
void trace_print_pages_json(const void *unused);

/*
 * filter.c: applies the event's filter to content, whose fields the writer has filled in. Records
 * it if it matches, with its call chain if these are on. Fills in the common fields. Any context.
 */
void trace_write_slow(const struct trace_event *event, struct profile_trace_event *content);
/*
 * Sets the filter of all events of a system with this name; NULL: of any. `0` removes it. Returns 0
 * if there is an event that can have this filter, -OS_ENOMEM, or -OS_EINVAL and logs why.
 */
int trace_set_filters(const char *system, const char *name, const char *text);

/* filter.c: returns whether content, with its common fields, matches. Any context. */
bool trace_filter_matches(const struct trace_filter *filter, const void *content);
/* filter.c: copies a field that is a text, up to size - 1 bytes, and a NUL. Any context. */
void trace_text_of(const struct trace_field *field, const char *content, char *text, size_t size);
/* filter.c: copies text without blanks at its ends. Returns false if it does not fit. */
bool trace_copy_trimmed(const char *text, char line[TRACE_FILTER_BYTES]);

/* filter_parse.c: parses filter->text. All other members are 0. Process context. */
struct trace_filter_error trace_parse_filter(const struct trace_event *event,
					     struct trace_filter *filter);

/*
 * counts.c: counts an event on this CPU. Any context. The rest are the files events/.../count: of
 * an event, or of all events of a system (NULL: of any).
 */
void trace_count(const struct trace_event *event);
bool trace_counts_init(void); /* returns false without memory */
/* Any context. While counting is off, the count is what it was at the end. */
u64 trace_count_of(const struct trace_event *event);
bool trace_is_counted(const struct trace_event *event); /* or was, and had a count */
int trace_show_count(os_text_t *text, const void *event);
int trace_write_count(const char *text, const void *event);
int trace_show_counts(os_text_t *text, const void *system);
int trace_write_counts(const char *text, const void *system);

/*
 * hist.c: adds an event to its histograms. Any context. The rest are the files trigger and hist of
 * an event.
 */
void trace_hist_add(const struct trace_event *event, struct profile_trace_event *content);
int trace_show_triggers(os_text_t *text, const void *event);
int trace_write_trigger(const char *text, const void *event);
int trace_truncate_triggers(const void *event);
int trace_show_hists(os_text_t *text, const void *event);

/*
 * calls.c: makes the events of system calls, at start. Returns false without memory. Passes the
 * record of a raw event on to the event of its call, any context. Returns whether any of them needs
 * the raw event, sys_enter or sys_exit.
 */
bool trace_calls_init(void);
void trace_write_call(const struct trace_event *raw, struct profile_trace_event *content);
bool trace_calls_are_needed(bool is_exit);
extern struct trace_event *trace_raw_calls[2]; /* sys_enter, sys_exit */

/*
 * error_log.c: the file error_log. `where`: the kind of command, `command`: what was written.
 * Process context.
 */
void trace_log_error(const char *where, const char *command,
		     const struct trace_filter_error *error);
int trace_show_errors(os_text_t *text, const void *unused);
int trace_clear_errors(const void *unused);

/* Copies an event's record to the ring. Any context. Returns false if the event is lost. */
bool trace_record_copy(const struct trace_event *event, const void *content);
#ifdef CONFIG_PROFILE_CALLCHAIN
/* stack.c: does the same, then records the call chain, innermost the event's writer. */
void trace_record_with_stack(const struct trace_event *event, const void *content);
#else
#define trace_record_with_stack(event, content) ((void)0)
#endif

/* fields.c: writes the content of an event's `format` file to text. */
#define TRACE_FORMAT_BYTES 2048
void trace_format_text(const struct trace_event *event, char text[TRACE_FORMAT_BYTES]);
/* fields.c: returns the field with this name, or NULL. */
const struct trace_field *trace_find_field(const struct trace_event *event, const char *name);

/* Returns the event with this ID, or NULL. Any context. */
const struct trace_event *trace_find_event(u32 id);

typedef u32 __attribute__((__may_alias__)) trace_u32_alias;

/* Fills in the common fields of an event on this CPU. Any context. */
static pf_always_inline void trace_fill_common(struct profile_trace_event *common, u32 id)
{
	/* One store for type, flags and preempt_count, because the last two are 0 or set below. */
	*(trace_u32_alias *)common = id;
	common->flags = os_trace_flags();
	common->pid = os_current_tid();
}

#endif
