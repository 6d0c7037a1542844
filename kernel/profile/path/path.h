/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_PATH_H
#define PROFILE_PATH_H

/*
 * The critical path: load.c reads the rings of events, records.c makes a record of each event that
 * changes what a CPU does, walk.c walks backwards along wake-ups and makes segments. report.c adds
 * them up in rows, callers.c finds the program's functions that those come from, names.c has their
 * words, line.c prints the longest in one line, and results.c what calls returned. All of it is
 * done for one reader at a time, in process context.
 */

#include "../report.h"

enum path_kind {
	PATH_SWITCH,
	PATH_WAKE,
	PATH_FORK,
	PATH_EXEC,
	PATH_EXIT, /* of a thread */
	PATH_ENTER,
	PATH_LEAVE, /* a system call */
	PATH_FAULT,
	PATH_FAULT_END,
	PATH_TIMER,
	PATH_DEVICE,
	PATH_IRQ_END, /* of both */
	PATH_SAMPLE,
};

/* An event, as path_add() takes it. */
struct path_event {
	u64 cycles;
	u32 cpu, tid; /* the CPU, and its current thread */
	enum path_kind kind;
	bool in_irq;
	/*
	 * PATH_SWITCH: the next thread; PATH_WAKE, PATH_FORK: the other; PATH_SAMPLE: user mode;
	 * PATH_LEAVE: the report is of this thread
	 */
	u32 other;
	/*
	 * PATH_SWITCH: not 0 if tid sleeps; PATH_ENTER: the call; PATH_LEAVE: what it returns;
	 * PATH_FAULT, PATH_SAMPLE: pc
	 */
	u64 value;
	u32 map; /* PATH_SAMPLE, PATH_FAULT_END: the code map */
};

#define PATH_NO_CALL 0xffff

/*
 * An event, and what its CPU does from then on: the thread, and the context that it is in. Numbers
 * of other records are plus 1, so that 0 stands for none. Those are always of earlier records.
 */
struct path_record {
	u64 cycles;
	u64 pc;	    /* PATH_FAULT, PATH_SAMPLE; 0: a fault of the kernel */
	u32 tid;    /* 0: idle */
	u32 before; /* the record before of this CPU */
	u32 sample; /* the latest sample of the thread outside of calls and faults */
	u32 fault;  /* the page fault that the thread is in */
	u32 wake;   /* PATH_SWITCH: what has woken tid since it left its CPU */
	u32 out;    /* PATH_SWITCH: when tid left its CPU */
	u32 map;    /* PATH_FAULT, PATH_SAMPLE: the code map of pc */
	u16 call;   /* the system call that the thread is in, or PATH_NO_CALL */
	u16 cpu;
	u8 kind;
	u8 irq;	      /* PATH_TIMER or PATH_DEVICE; 0: none */
	bool in_irq;  /* PATH_WAKE: by an interrupt */
	bool asleep;  /* PATH_SWITCH: the thread before sleeps */
	bool starts;  /* the thread has not been in user mode */
	bool exits;   /* the thread ends */
	bool in_user; /* PATH_SAMPLE */
};

/*
 * records.c. path_begin() drops all records, path_free() their memory, too. path_add() adds the
 * next event, no earlier than the last one. Returns false if there is no memory. path_forget()
 * drops what is known, because events before these cycles are missing.
 */
void path_begin(void);
void path_free(void);
bool path_add(const struct path_event *event);
void path_forget(u64 cycles);
const struct path_record *path_record(u32 number); /* plus 1, as above */
u32 path_last_record(u32 cpu);			   /* the same; 0: none */
u64 path_known_cycles(void);			   /* 0: nothing is missing */

/*
 * load.c: reads the rings, for a report of one process; 0: all. Returns false without memory, or if
 * they are being resized.
 */
bool path_load(u32 pid);

/* What a part of the path is. formats.md has the words. */
enum path_cause {
	PATH_IN_USER,
	PATH_IN_CALL,
	PATH_IN_FAULT,
	PATH_IN_IRQ,
	PATH_IN_KERNEL, /* outside of calls and faults: on the way to user mode */
	PATH_IN_KERNEL_THREAD,
	PATH_IN_START,
	PATH_IN_EXIT,
	PATH_FOR_A_CPU,
	PATH_UNTIL_TIMER,
	PATH_UNTIL_DEVICE,
	PATH_UNKNOWN,
	PATH_NOT_RECORDED,
	NR_PATH_CAUSES,
};

#define PATH_NO_CPU ~0u

/* A part of the path. */
struct path_segment {
	u64 from_ns, to_ns;
	enum path_cause cause;
	u32 cpu;    /* PATH_NO_CPU: the thread sleeps */
	u32 tid;    /* the thread that runs or sleeps */
	u32 waiter; /* the thread that is ready meanwhile, and that the path goes on with; or 0 */
	u32 call;   /* or PATH_NO_CALL; also that of a page fault with pc of 0 */
	u32 irq;    /* PATH_IN_IRQ: PATH_TIMER or PATH_DEVICE */
	u64 irq_ns; /* timer interrupts in this time, which are PATH_IN_IRQ */
	u64 pc;	    /* in user code or PATH_IN_KERNEL, or 0: unknown */
	u32 map;    /* the code map of pc */
	u64 function[2]; /* the same in all segments of one function: see set_function() */
	u32 holder;	 /* PATH_FOR_A_CPU: the thread that has the CPU; 0: idle */
};

/* The part of the time that the path covers, and where it ends. */
struct path_scope {
	u64 begin_ns, end_ns;
	u32 cpu, tid;	  /* the CPU and the thread at the end */
	u32 pid;	  /* the process of the report; 0: all */
	bool joins_ticks; /* timer interrupts are of what they interrupt */
};

/* What the walk asks others for. */
struct path_names {
	/* Returns the process of a thread; 0: it is a kernel thread; PATH_NO_PID: unknown. */
	u32 (*pid_of)(u32 tid);
	/* Sets segment->function by segment->pc and map. */
	void (*set_function)(struct path_segment *segment);
};
#define PATH_NO_PID ~0u

/*
 * walk.c: calls visit() for each segment, the latest first. They cover the scope without a gap. Two
 * of them in a row differ in more than their times and the place in a function.
 */
void path_visit(const struct path_scope *scope, const struct path_names *names,
		void (*visit)(const struct path_segment *segment));

/* A row of the table: segments that differ only in their times. */
struct path_row_key {
	u64 cause;
	u64 what[2]; /* the function, call or thread */
	u64 task[2];
};

struct path_row {
	struct path_row_key key;
	u64 ns, times;
	struct path_segment example;
	/* The program's function that most of the chains in the row's place come from. */
	u64 caller_pc; /* 0: unknown, or the row itself is of such a function */
	u32 caller_map;
	u32 caller_share; /* of the chains' weight, in hundredths of a percent */
};

/* names.c: copy the words of a segment or row. */
#define PATH_NAME_BYTES OS_SYMBOL_BYTES
extern const char *const path_cause_names[NR_PATH_CAUSES];
void path_task_name(u32 tid, char *name); /* TRACE_COMM_BYTES */
/*
 * Copies the name of user code: file+0x1234 if it is only known where the function begins, [file]
 * if that is not known either.
 */
void path_user_name(u32 map, u64 pc, char name[PATH_NAME_BYTES]);
/* Copies what a segment has in the column `function`. */
void path_function_name(const struct path_segment *segment, char name[PATH_NAME_BYTES]);

/*
 * callers.c: finds the callers of the rows of calls, sleeps and library functions. pid: the process
 * of the report; 0: all.
 */
void path_find_callers(u32 pid, struct path_row *rows, u32 nr);
/* Copies `send`, `send (83 %)` if it is not the only caller, or `-`. */
#define PATH_CALLER_BYTES (PATH_NAME_BYTES + 16)
void path_caller_name(const struct path_row *row, char name[PATH_CALLER_BYTES]);

/*
 * results.c: counts what calls return, and prints a line of it for those with most of the path.
 * records.c adds each call that ends. A call may be PATH_NO_CALL.
 */
void path_begin_results(void);
void path_add_result(u32 call, long value);
void path_print_results(const struct path_row *rows, u32 nr, u64 whole_ns);

/*
 * line.c: path_make_parts() adds up the rows, longest first, by what the line calls them.
 * path_part_name() copies what a row is called, which is the same for all rows of a part.
 */
#define PATH_PART_BYTES (2 * PATH_NAME_BYTES + 48)
void path_make_parts(const struct path_row *rows, u32 nr);
void path_part_name(const struct path_row *row, char name[PATH_PART_BYTES]);

/*
 * report.c: path_prepare() reads the rings, walks, and makes the rows of the table. Returns false
 * without memory. The functions below it print the same scope; path_release() frees the memory.
 */
bool path_prepare(const struct path_scope *scope);
void path_print_line(const struct path_scope *scope);
void path_print_calls(const struct path_scope *scope);
void path_print_table(const struct path_scope *scope, u32 top);
void path_print_segments(const struct path_scope *scope); /* NULL: an empty table */
void path_release(void);

#endif
