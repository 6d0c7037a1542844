/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STRACE_HOOKS_H
#define PROFILE_STRACE_HOOKS_H

/*
 * The hooks of strace, a part of <profile/profile.h>, and what it keeps of each thread and process.
 * The hooks around a system call are in <profile/syscall.h>.
 */

#define PROFILE_NR_INDEXED	 512 /* index[] has the system calls below this number */
#define PROFILE_INDEX_UNIT	 8   /* bytes: the unit of the offsets in index[] */
#define PROFILE_SYSCALL_BUCKETS	 32
#define PROFILE_BUCKET_BASE_LOG2 7

/* The counters of one system call of a thread or process. Only their owner writes: see strace.c. */
struct profile_syscall_row {
	u64 nr;
	u64 nr_calls;
	u64 nr_errors;
	/*
	 * Wall time, and the part of it off a CPU. While a call is in flight, minus its start: so
	 * both are negative then.
	 */
	u64 cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	u64 off_cycles;
	/* Of the calls that have ended: the longest one, and a histogram (histogram.h). */
	u64 max_cycles;
	u64 nr_log2[PROFILE_SYSCALL_BUCKETS];
#endif
};

/* A moment on the clocks of a thread, or the time between two moments. */
struct profile_moment {
	u64 cycles;	/* TSC */
	u64 off_cycles; /* time off a CPU: see os_off_cycles() */
};

/* Time off a CPU between the end of a call and user mode: see profile_return_begin(). */
struct profile_return_time {
	u64 cycles; /* negative while the thread is on that way, as in a row */
	u64 max_cycles;
};

/*
 * The counters of a thread, or of threads or programs that have ended. lists_lock guards the
 * latter.
 */
struct profile_syscall_sum {
	struct profile_syscall_table *table; /* NULL: none yet */
	struct profile_return_time returns;
	u64 nr_backwards;  /* calls whose end the clock puts before their start */
	u64 nr_unfollowed; /* interrupted calls that were given up: see strace/restart.c */
	u64 nr_forks;	   /* processes that were created with a copy of the memory */
	u64 forked_bytes;  /* the memory that they had in the beginning */
	struct profile_syscall_row *spare; /* of calls without memory: strace_sum_spare() */
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

/* What strace, strace/live/ and strace/files/ keep of a thread. */
struct profile_strace_task {
#ifdef CONFIG_PROFILE_STRACE
	/*
	 * Used by the hot path. `index` is the table's, or an empty one, which makes the next call
	 * take the slow path.
	 */
	const u16 *index;
	struct profile_syscall_row *row; /* of the call in flight */
	struct profile_moment start;	 /* of that call, or of the way back to user mode */
	u64 seq;			 /* odd while a call is in flight */
	/* Each of these makes the end of the call take the slow path. */
	union {
		struct {
			bool event;
			bool has_path; /* see profile_path() */
		};
		u16 is_slow;
	};
	bool live_active; /* the call in flight was captured at its entry, for strace/live/ */
	bool wants_room;  /* an error found no slot: enlarge the table */
	u8 nr_restarts;	  /* in profile_task.restarts */
	u16 error_ret;	  /* the error below, as the call returned it, its lower 16 bits */
	u64 argument;	  /* of the slow path: number of the call, or return value */
	/*
	 * The last error that was counted: the row of its call, NULL: none, and its counter. The
	 * same call fails with the same error again without a search for the counter.
	 */
	struct profile_syscall_row *error_row;
	u64 *error_counter;

	struct profile_syscall_sum calls;

	/* Notes to this thread, guarded by lists_lock: see strace/task.c. */
	bool is_old;		    /* there was a reset: its counters do not count */
	struct profile_moment from; /* what began at `start` counts from here on; 0: no note */
	struct profile_moment to;   /* it counts as ended here; 0: no note */
	u32 nr_resets;		    /* process->nr_resets at the thread's last reset */
	u32 reading;		    /* the number of the last report that has read it */

	struct live_task *live;		/* strace/live/live.c */
	struct profile_call_path *path; /* strace/files/: of the call in flight, if has_path */
#endif
	pf_may_be_empty;
};

struct profile_strace_process {
#ifdef CONFIG_PROFILE_STRACE
	struct profile_syscall_sum exited;   /* calls of threads that have exited */
	struct profile_syscall_sum before;   /* calls before the last execve */
	struct profile_syscall_sum children; /* calls of children waited for and their children */
	u32 nr_children;
	u32 reading;  /* the number of the last report that has read children */
	bool is_gone; /* it was waited for: its calls are in its parent's children */
	u32 nr_accumulated_threads;
	u64 off_base_ns;      /* for how long counting had been off when its table began */
	u32 nr_resets;	      /* the generation of its counters */
	u32 nr_system_resets; /* strace_nr_resets at its last reset */
#endif
	pf_may_be_empty;
};

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

/*
 * Frees the tables that are kept for new threads, so that all memory that is left is in use. Any
 * context but NMI.
 */
void profile_free_spare_tables(void);

/* strace/strace.c: see profile_return_begin(). */
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
static inline void profile_free_spare_tables(void)
{
}
static inline void profile_return_began(struct profile_task *pt)
{
}
static inline void profile_return_ended(struct profile_task *pt)
{
}
#endif

#ifdef CONFIG_PROFILE_FILES
extern os_key_t profile_files_key;
void profile_note_path(const char *path, size_t bytes);

/*
 * Notes a path that the current thread has passed to its system call. It is in kernel memory that
 * can be read in whole words up to its end. The call is counted for the first one. Process context.
 */
static inline void profile_path(const char *path, size_t bytes)
{
	if (os_key_on(&profile_files_key))
		profile_note_path(path, bytes);
}
#else
#define profile_path(path, bytes) ((void)0)
#endif

#endif
