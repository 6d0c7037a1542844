/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROFILE_H
#define LEGO_PROFILE_H

/*
 * The hooks of the profilers. Calls of them, each a statement of its own, are the profilers' only
 * lines outside of kernel/profile/. If a profiler is compiled out, its hooks are empty and its
 * structs have no members, so the callers' machine code is the same as without the hooks.
 * kernel/profile/README.md says what each profiler shows and costs.
 */

#include "../../os_hooks.h"

/* At least one profiler is compiled in. */
#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_HEATMAP) || \
	defined(CONFIG_PROFILE_POINTS) || defined(CONFIG_PROFILE_TRACE)
#define PROFILE_ANY 1
#endif

#define PROFILE_NR_INDEXED	 512 /* index[] has the system calls below this number */
#define PROFILE_INDEX_UNIT	 8   /* bytes: the unit of the offsets in index[] */
#define PROFILE_SYSCALL_BUCKETS	 32
#define PROFILE_BUCKET_BASE_LOG2 7

/* The counters of one system call of a thread or process. Only their owner writes: see strace.c. */
struct profile_syscall_row {
	u64 nr;
	u64 nr_calls;
	u64 nr_errors;
	u64 cycles; /* wall time, minus the TSC at the call's entry while one is in flight */
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	u64 off_cycles; /* the part of `cycles` off a CPU */
	/* Of the calls that have ended: the longest one, and a histogram (histogram.h). */
	u64 max_cycles;
	u64 nr_log2[PROFILE_SYSCALL_BUCKETS];
#endif
};

/* Time off a CPU between the end of a call and user mode: see strace/returns.c. */
struct profile_return_time {
	u64 cycles; /* of a thread on that way, minus the number below */
	u64 max_cycles;
};

/*
 * The counters of a thread, or of threads or programs that have ended. strace_lock guards the
 * latter.
 */
struct profile_syscall_sum {
	struct profile_syscall_table *table; /* NULL until the first call */
	struct profile_syscall_row spare;    /* of calls for which there was no memory */
	struct profile_return_time returns;
	u64 nr_backwards;  /* calls whose end the clock puts before their start */
	u64 nr_unfollowed; /* interrupted calls that were given up: see strace/restart.c */
	u64 nr_forks;	   /* processes that were created with a copy of the memory */
	u64 forked_bytes;  /* the memory that they had in the beginning */
};

/* A call that a signal has interrupted, and that will be restarted. */
struct profile_restart {
	u64 nr;
	u64 ip, sp; /* of its SYSCALL instruction */
	u64 cycles; /* its time until the interruption */
	u32 row;    /* the offset of its row; 0: the spare row */
	u8 state;   /* enum restart_state */
};

#define PROFILE_MAX_RESTARTS 3

/* Remembers for how long something was switched off, and by which task: see off_time.c. */
struct profile_off_time {
	u64 total_ns; /* the sum of all times off that are over */
	u64 base_ns;  /* total time off at the last reset of the counters */
	u64 from_ns;  /* start of the latest time off */
	u64 to_ns;    /* its end, if it is over */
	u64 comm[2];  /* the name of the task that switched it off; empty: the boot parameter */
	u32 pid;      /* the process of that task */
	bool is_off;
};

/* Links of a process and a thread in the lists of a profiler: see walk.h. */
struct profile_process_link {
	struct profile_process *next, **pprev; /* all processes */
	struct profile_task *tasks;	       /* live threads */
	u64 serial;			       /* order of creation */
};

struct profile_task_link {
	struct profile_task *next, **pprev; /* in the tasks of its process */
};

/* The CPU time of threads by owner, in cycles. No cycle is in two of them. */
struct profile_cpu_times {
	u64 user;
	u64 calls; /* and all other time of kernel code */
	u64 faults;
	u64 exceptions; /* other ones */
	u64 irqs;	/* and NMIs */
	u64 kernel;	/* work that is not the threads' own, such as printing reports */
};

/* The owners of the time of all CPUs since boot, in cycles. */
struct profile_machine_times {
	u32 nr_cpus;
	struct profile_cpu_times threads; /* of all processes; irqs: of all CPUs, without NMIs */
	u64 nmis, kernel_threads, reports, ends_of_threads, idle;
};

/* Sums of threads. */
struct profile_lives {
	u64 nr_threads;
	u64 cycles;	/* from their creation to their end */
	u64 off_cycles; /* the part of it off a CPU */
	u64 nr_waits;
	u64 nr_preempted;
	u64 ready_cycles;
	u64 nr_migrations;
	struct profile_cpu_times cpu; /* zeros if the kernel does not know */
};

/* The things that a thread has slept for longest: waits/findings.c reads them. */
struct profile_thread_waits {
	u64 generation; /* of the waits */
	u64 cycles;	/* of all its waits: asleep, and then ready without a CPU */
	struct profile_top_wait {
		const char *name; /* NULL: free */
		u64 addr;
		u64 nr;
		u64 cycles;	  /* as above */
		u64 ready_cycles; /* without a CPU */
	} top[4];
};

/* The thread that lived longest. */
struct profile_longest {
	u64 life_cycles; /* 0: none */
	u64 comm[2];
	u32 tid;
	bool waits_for_ends; /* of others, most of its life */
	bool is_whole;	     /* its waits were recorded all its life */
	u64 off_cycles;	     /* the part of its life off a CPU */
	struct profile_thread_waits waits;
};

/* Whether a thread's waits belong to the system call with which it entered the kernel. */
enum profile_call_phase {
	PROFILE_IN_CALL,
	PROFILE_RETURNS, /* the call has ended; the thread is on the way back to user mode */
	PROFILE_EXITED,	 /* the thread has ended */
};

#define PROFILE_PHASE_SHIFT 24

/* Embedded in struct task as `profile`. */
struct profile_task {
#ifdef CONFIG_PROFILE_HEATMAP
	u64 task_key; /* see profile_task_changed(); the low byte follows the number of execs */
#endif
#ifdef CONFIG_PROFILE_WAITS
	u64 created_cycles; /* TSC */
	u64 out_cycles;	    /* TSC when it left its CPU, or was created */
	u64 woken_cycles;   /* TSC when it was woken since; 0: it was not */
	/* See report_delay.c. */
	u64 delay_cycles, first_delay_cycles; /* now, and at its creation */
	u64 sleep_delay_cycles; /* of the wait that is about to end, until the wake-up */
	u64 printed_cycles;	/* time of reports when it left its CPU, or was woken since */
	const void *waker;	/* the record of its waker; NULL: unknown */
	u64 waker_generation;	/* of the store that has that record */
	u64 nr_waits;
	u64 nr_preempted;   /* waits in which it did not sleep */
	u32 call_phase;	    /* enum profile_call_phase, at its place in a record's context */
	u64 ready_cycles;   /* time ready without a CPU, in waits that have ended */
	u64 nr_migrations;  /* waits that ended on another CPU */
	const void *ran_on; /* the store of the CPU on which it ran last; NULL: on none */
	struct profile_thread_waits waits;
	struct profile_process *waits_process; /* NULL: a kernel thread */
	struct profile_task_link waits_walk;
#endif
#ifdef CONFIG_PROFILE_POINTS
	u64 points_offset; /* from section profile_points to its sums; 0: it has none */
	struct profile_process *points_process;
	struct profile_task_link points_walk;
	u32 points_nr_resets; /* of all points at its last reset */
	u32 points_reading;   /* number of the report that read it last */
#endif
#ifdef CONFIG_PROFILE_STRACE
	/*
	 * Used by the hot path. `index` is the table's, or an empty one, which makes the next call
	 * take the slow path.
	 */
	const u16 *index;
	struct profile_syscall_row *row; /* of the call in flight */
	u64 start_cycles;
	u64 base_off_cycles; /* row->off_cycles minus os_off_cycles(), both at entry */
	u64 seq;	     /* odd while a call is in flight */
	bool event;	     /* makes the end of the call take the slow path */
	u64 argument;	     /* of the slow path: number of the call, or return value */

	bool wants_room; /* an error found no slot: enlarge the table */
	u8 nr_restarts;
	struct profile_syscall_sum calls;
	u64 carry_cycles; /* the time of the call in flight before it was interrupted */
	struct profile_restart restarts[PROFILE_MAX_RESTARTS];
	u64 return_start; /* returns_now() when the way back to user mode began; 0: elsewhere */

	/* Requests to this thread, guarded by strace_lock; 0: none. */
	u64 reset_cycles, reset_off_cycles; /* counters start again at this time */
	u64 cut_cycles, cut_off_cycles;	    /* the call in flight counts as ended at this time */
	u64 reset_return, cut_return;	    /* the same, for returns: as return_start */
	u64 shorten_cycles, shorten_seq;    /* the call with this seq counts as that much shorter */
	u32 nr_resets;			    /* process->nr_resets at the thread's last reset */
	u32 reading;			    /* the number of the last report that has read it */

	struct live_task *live;		 /* strace/live/live.c */
	bool live_active;		 /* the call in flight was captured at its entry */
	struct profile_process *process; /* NULL: a kernel thread, which is not counted */
	struct profile_task_link walk;
#endif
};

/* Embedded in struct process as `profile`. */
struct profile_process {
#ifdef PROFILE_ANY
	bool has_ended;
	u64 first_delay_cycles; /* report_delay() when it was created */
#endif
#ifdef CONFIG_PROFILE_HEATMAP
	u64 key_floor; /* less than task_key of all its tasks, not less than that of older tasks */
	u64 samples_dropped; /* that had no room since the last reset: see samples/store.c */
#endif
#ifdef CONFIG_PROFILE_WAITS
	struct profile_lives lives;	/* of the threads that have ended */
	struct profile_longest longest; /* of these */
	struct profile_process_link waits_walk;
#endif
#ifdef CONFIG_PROFILE_POINTS
	void *points;		 /* sums of threads that have exited; NULL: none */
	u64 points_since_cycles; /* TSC when the sums began */
	u64 points_off_base_ns;	 /* total time off of points then */
	u8 points_since;	 /* enum point_since: the event at which they began */
	u32 points_nr_lost;	 /* threads that had no memory for sums */
	u32 points_nr_resets;	 /* of all points at its last reset */
	struct profile_process_link points_walk;
#endif
#ifdef CONFIG_PROFILE_STRACE
	struct profile_syscall_sum own;	     /* calls of threads that have exited */
	struct profile_syscall_sum before;   /* calls before the last execve */
	struct profile_syscall_sum children; /* calls of children waited for and their children */
	u32 nr_children;
	u32 nr_accumulated_threads;
	u64 off_base_ns;      /* for how long counting had been off when its table began */
	u32 nr_resets;	      /* the generation of its counters */
	u32 nr_system_resets; /* strace_nr_resets at its last reset */
	struct profile_process_link walk;
#endif
};

/* Embedded in struct mm as `profile`. */
struct profile_mm {
#ifdef CONFIG_PROFILE_IMAGES
	u32 code_map; /* number of its code map: see images/images.h; 0: no code yet */
#endif
};

#ifdef CONFIG_PROFILE_IMAGES
/*
 * Adds an area that is new, larger, or has other rights to the code map of its address space, if it
 * is executable. The caller keeps others from changing the areas. Process context; sleeps.
 */
void profile_area_changed(struct profile_mm *pm, const os_area_t *area);

/* Copies the number of the code map when an address space is copied. */
static inline void profile_mm_copy(struct profile_mm *to, const struct profile_mm *from)
{
	to->code_map = from->code_map;
}
#else
#define profile_area_changed(pm, area) ((void)0)
#define profile_mm_copy(to, from)      ((void)0)
#endif

/* Returns the number of the code map of an address space; 0: none. Any context. */
static inline u32 profile_code_map(const struct profile_mm *pm)
{
#ifdef CONFIG_PROFILE_IMAGES
	return pf_read_once(pm->code_map);
#else
	return 0;
#endif
}

#ifdef PROFILE_ANY
/*
 * Sets up the profiler's part of a new process. Process context, before its first
 * profile_task_init(). Allocates nothing, cannot fail. Undone by profile_process_release().
 */
void profile_process_init(os_process_t *proc);

/*
 * Sets up the profiler's part of a new task. Its ->proc is set (NULL for a kernel thread). Cannot
 * fail. Undone by profile_task_exit().
 */
void profile_task_init(os_task_t *task);

/*
 * Restarts the tables of a process, with the execve as the first call. Called by the thread that
 * called execve, when it has succeeded and the other threads are gone.
 */
void profile_process_exec(os_process_t *proc);

/* Frees the counters of an ended process that no code can find any more. Process context. */
void profile_process_release(os_process_t *proc);

/* Ends the profiling of a task. Called by the task itself, or by its creator if it never ran. */
void profile_task_exit(os_task_t *task);
#else
static inline void profile_process_init(os_process_t *proc)
{
}
static inline void profile_task_init(os_task_t *task)
{
}
static inline void profile_process_exec(os_process_t *proc)
{
}
static inline void profile_process_release(os_process_t *proc)
{
}
static inline void profile_task_exit(os_task_t *task)
{
}
#endif

#ifdef CONFIG_PROFILE_STRACE
/*
 * Adds the calls of a child, for which the current process has waited, to the calls of its
 * children. No other thread can find the child, and it has not been released yet. Process context.
 */
void profile_process_waited(os_process_t *child);

/*
 * Say how the current thread goes on after a system call that returned an -ERESTART* code. Process
 * context.
 */
void profile_syscall_interrupted(void);		/* the call fails with EINTR */
void profile_syscall_again(u64 ip, u64 sp);	/* it restarts at ip, with stack pointer sp */
void profile_syscall_handler(void);		/* a signal handler runs first */
void profile_syscall_sigreturn(u64 ip, u64 sp); /* a handler has returned to ip and sp */

/* strace/returns.c: see profile_return_begin(). */
void profile_return_began(struct profile_task *pt);
void profile_return_ended(struct profile_task *pt);
#else
static inline void profile_process_waited(os_process_t *child)
{
}
static inline void profile_syscall_interrupted(void)
{
}
static inline void profile_syscall_again(u64 ip, u64 sp)
{
}
static inline void profile_syscall_handler(void)
{
}
static inline void profile_syscall_sigreturn(u64 ip, u64 sp)
{
}
static inline void profile_return_began(struct profile_task *pt)
{
}
static inline void profile_return_ended(struct profile_task *pt)
{
}
#endif

/*
 * Enclose what a thread does between the end of a system call and user mode: it may be preempted or
 * stopped there, and that is no part of the call. Interrupts may be on or off. pt is the current
 * thread's.
 */
static inline void profile_return_begin(struct profile_task *pt)
{
#ifdef CONFIG_PROFILE_WAITS
	pt->call_phase = PROFILE_RETURNS << PROFILE_PHASE_SHIFT;
#endif
	profile_return_began(pt);
}

static inline void profile_return_end(struct profile_task *pt)
{
	profile_return_ended(pt);
#ifdef CONFIG_PROFILE_WAITS
	pt->call_phase = PROFILE_IN_CALL;
#endif
}

#ifdef CONFIG_PROFILE_HEATMAP
/* Which source of samples is on, and when the next sample of this CPU is due. */
extern os_key_t profile_timer_key, profile_nmi_key;
OS_DECLARE_PER_CPU(u64, profile_deadline); /* TSC; ~0: never */
void profile_timer_came(const os_regs_t *regs);
void profile_nmi_came(const os_regs_t *regs);

/*
 * Gives the current task a new task_key, so that its samples are not added to earlier records.
 * Called when it gets another name or program, or leaves its process. Process context.
 */
void profile_task_changed(os_task_t *task);

/* Takes a sample if one is due. Called first in each CPU's timer interrupt, interrupts off. */
static inline void profile_tick(const os_regs_t *regs)
{
	if (os_key_on(&profile_timer_key))
		profile_timer_came(regs);
}

/* Lowers the deadline for which this CPU's timer is about to be set, if a sample is due earlier. */
static inline void profile_next_deadline(u64 *deadline)
{
	if (os_key_on(&profile_timer_key) &&
	    os_this_cpu_read(os_local(profile_deadline)) < *deadline)
		*deadline = os_this_cpu_read(os_local(profile_deadline));
}

/* Takes a sample. Called by the NMI handler. Sets *handled if the NMI may be the profiler's. */
static inline void profile_nmi(const os_regs_t *regs, bool *handled)
{
	if (os_key_on(&profile_nmi_key)) {
		*handled = true;
		profile_nmi_came(regs);
	}
}
#else
static inline void profile_task_changed(os_task_t *task)
{
}
static inline void profile_tick(const os_regs_t *regs)
{
}
static inline void profile_next_deadline(u64 *deadline)
{
}
static inline void profile_nmi(const os_regs_t *regs, bool *handled)
{
}
#endif

#ifdef CONFIG_PROFILE_WAITS
/* Waits are recorded, or reports delay threads. The second is on in the latter case. */
extern os_key_t profile_waits_key, profile_delays_key;
void profile_wait_ended(u64 cycles);
void profile_thread_woken(os_task_t *task);
void profile_spun_for_lock(const char *name, u64 start);
void profile_report_delay_switch_out(struct profile_task *pt);

/*
 * Record that a thread leaves its CPU, and that the current thread is back on a CPU. Called in
 * schedule(), interrupts off, with the TSC that schedule() uses for CPU time.
 */
#define profile_switch_out(pt, cycles)                       \
	do {                                                 \
		if (!os_key_on(&profile_waits_key))          \
			break;                               \
		(pt)->out_cycles = (cycles);                 \
		if (os_key_on(&profile_delays_key))          \
			profile_report_delay_switch_out(pt); \
	} while (0) /* evaluates `cycles` only if it is on */

static inline void profile_switch_in(u64 cycles)
{
	if (os_key_on(&profile_waits_key))
		profile_wait_ended(cycles);
}

/*
 * Records the current task, or the interrupt, as the waker of a thread that sleeps and has left its
 * CPU. Interrupts off; the caller keeps others from waking the thread.
 */
static inline void profile_wake(os_task_t *task)
{
	if (os_key_on(&profile_waits_key))
		profile_thread_woken(task);
}

/*
 * Records that this CPU has spun since `start` (TSC) for a lock that it now holds. Any context but
 * NMI.
 */
static inline void profile_spun(const char *name, u64 start)
{
	if (os_key_on(&profile_waits_key))
		profile_spun_for_lock(name, start);
}
#else
static inline void profile_spun(const char *name, u64 start)
{
}
/* Macros, because evaluating `current` for an argument would leave an instruction. */
#define profile_switch_out(pt, cycles) ((void)0)
#define profile_switch_in(cycles)      ((void)0)
#define profile_wake(task)	       ((void)0)
#endif

#ifdef PROFILE_ANY
/* Starts counting. Called once, when memory, clocks and all CPUs are up. Process context. */
void profile_init(void);

/*
 * Prints the report of a process whose last thread has ended, if profile.on_exit selects it.
 * Process context; may sleep.
 */
void profile_process_exit(os_process_t *proc);

/*
 * Prints a report of the machine: all profilers, with all live processes. Any context. If another
 * report is being printed, the thread that prints it prints this one afterwards. In a panic it is
 * printed at once, without locks.
 */
void profile_report(const char *why);

/*
 * Waits until all reports that have begun or wait for their turn are printed, and lets no new one
 * begin. Logs each glob of profile.on_exit that no process matched. Called before power off.
 * Process context.
 */
void profile_end_reports(void);

/* Adds the number of reports on the console that have begun but not ended. Any context. */
void profile_count_cut_reports(unsigned int *nr);

/*
 * Restarts all counters at zero. A call in flight counts as one call that begins now. Any context
 * but NMI.
 */
void profile_reset(void);
#else
static inline void profile_init(void)
{
}
static inline void profile_process_exit(os_process_t *proc)
{
}
static inline void profile_report(const char *why)
{
}
static inline void profile_end_reports(void)
{
}
static inline void profile_count_cut_reports(unsigned int *nr)
{
}
static inline void profile_reset(void)
{
}
#endif

#include <lego/profile_trace.h>
#include <lego/profile_point.h>

#endif
