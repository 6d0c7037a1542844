/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WAITS_HOOKS_H
#define PROFILE_WAITS_HOOKS_H

/*
 * The hooks of waits, a part of <profile/profile.h>, and what they keep of threads and processes.
 */

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

/*
 * The records of a thread's last wait, and of its last wake-up of another thread. When the last
 * thread of a process ends, the second one is that of the one that ended so before: it is compared.
 */
enum {
	PROFILE_LAST_WAIT,
	PROFILE_LAST_WAKE
};

struct profile_last_waits {
	u64 id;	      /* of the store that has them; 0: none */
	u64 task_key; /* os_task_key() of the thread when they were found */
	struct wait_record *recs[2];
};

struct profile_waits_task {
#ifdef CONFIG_PROFILE_WAITS
	u64 created_cycles;   /* TSC */
	u64 out_cycles;	      /* TSC when it left its CPU, or was created */
	u64 woken_cycles;     /* TSC when it was woken since; 0: it was not */
	const void *waker;    /* the record of its waker; NULL: unknown */
	u64 waker_generation; /* of the store that has that record */
	u64 nr_waits;
	u64 nr_preempted;   /* waits in which it did not sleep */
	u32 call_phase;	    /* enum profile_call_phase, at its place in a record's context */
	u64 ready_cycles;   /* time ready without a CPU, in waits that have ended */
	u64 nr_migrations;  /* waits that ended on another CPU */
	const void *ran_on; /* the store of the CPU on which it ran last; NULL: on none */
	struct profile_last_waits last;
	struct profile_thread_waits longest;
#endif
	pf_may_be_empty;
};

struct profile_waits_process {
#ifdef CONFIG_PROFILE_WAITS
	struct profile_thread_sums ended_threads;
	struct profile_longest longest; /* of these */
#endif
	pf_may_be_empty;
};

#ifdef CONFIG_PROFILE_WAITS
/* Waits are recorded, or reports delay threads. The second is on in the latter case. */
extern os_key_t profile_waits_key, profile_delays_key;
void profile_wait_ended(u64 cycles);
void profile_thread_woken(os_task_t *task);
void profile_spun_for_lock(const char *name, u64 start);
void profile_note_timer(void);
void profile_report_delay_switch_out(struct profile_task *pt);

/*
 * Record that a thread leaves its CPU, and that the current thread is back on a CPU. Called in
 * schedule(), interrupts off, with the TSC that schedule() uses for CPU time.
 */
#define profile_switch_out_now(pt, cycles)                   \
	do {                                                 \
		(pt)->waits.out_cycles = (cycles);           \
		(pt)->waits.woken_cycles = 0;                \
		if (os_key_on(&profile_delays_key))          \
			profile_report_delay_switch_out(pt); \
	} while (0)
#define profile_switch_out(pt, cycles)                      \
	do {                                                \
		if (os_key_on(&profile_waits_key))          \
			profile_switch_out_now(pt, cycles); \
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

/* Records the call chain of the current thread, if it has set a timer. Process context. */
static inline void profile_timer_set(bool is_set)
{
	if (os_key_on(&profile_waits_key) && is_set)
		profile_note_timer();
}
#else
static inline void profile_timer_set(bool is_set)
{
}
static inline void profile_spun(const char *name, u64 start)
{
}
/* Macros, because evaluating `current` for an argument would leave an instruction. */
#define profile_switch_out_now(pt, cycles) ((void)0)
#define profile_switch_out(pt, cycles)	   ((void)0)
#define profile_switch_in(cycles)	   ((void)0)
#define profile_wake(task)		   ((void)0)
#endif

#endif
