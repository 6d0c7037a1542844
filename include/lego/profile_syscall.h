/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROFILE_SYSCALL_H
#define LEGO_PROFILE_SYSCALL_H

/*
 * The two hooks around a system call, inlined where calls are made: switched off, a NOP each;
 * switched on, no call, lock or shared cache line. What is out of the ordinary goes to strace.c,
 * which describes all of it.
 */

#include <lego/profile.h>

/* The part of the profiler's seam (kernel/profile/os.h) that is needed here. */
#ifndef PROFILE_OS_HEADER
#include <lego/sched.h>
#include <lego/time.h>

#define os_current_profile() (&current->profile)

/*
 * For the call of a function from a hook. The function saves all registers, and the compiler, which
 * would not make use of that, does not know of the call: or the code around the hook had to keep
 * registers free for it, whether it is on or off.
 */
#define os_saves_registers __saves_registers
#define os_call(fn)                                                                    \
	do {                                                                           \
		register u64 _sp asm("rsp");                                           \
		asm volatile("call %P[f]" : "+r"(_sp) : [f] "i"(fn) : "memory", "cc"); \
	} while (0)

/* Raw cycles, not ordered against other instructions. */
#define os_cycles() rdtsc()

/* How long the running thread has been off a CPU, from any start. Changes in schedule() only. */
static __always_inline u64 os_off_cycles(const struct profile_task *pt)
{
	const struct task *task = container_of(pt, struct task, profile);

	return task->exec_start_cycles - task->sum_exec_cycles;
}
#endif

#ifdef CONFIG_PROFILE_STRACE

#define PROFILE_LAST_LOG2     (PROFILE_BUCKET_BASE_LOG2 + PROFILE_SYSCALL_BUCKETS - 1)
#define PROFILE_IS_ERROR(ret) ((unsigned long)(ret) >= (unsigned long)-4095)

/* On while calls are counted or shown. */
extern struct static_key strace_key;

/* strace.c; the same contexts. */
void strace_enter_slowly(void) os_saves_registers; /* ->argument: the number */
void strace_exit_slowly(void) os_saves_registers;  /* ->argument: what the call returns */

/* A call that is not counted again has been interrupted and goes on. */
static __always_inline void strace_begin(struct profile_task *pt, struct profile_syscall_row *row)
{
	pt->row = row;
	pt->base_cycles = row->cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	pt->base_off_cycles = row->off_cycles - os_off_cycles(pt);
#endif
	pt->start_cycles = os_cycles();
	/* x86 keeps the order of stores: what is above is seen first. Pairs with read_row(). */
	barrier();
	pt->seq |= 1;
	barrier();
}

/* A call has ended that took so long. No error: those go the slow way. */
static __always_inline void strace_end_row(struct profile_syscall_row *row, u64 cycles)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	u64 log2 = 63u - __builtin_clzll(cycles | 1ull << PROFILE_BUCKET_BASE_LOG2);

	if (unlikely(log2 > PROFILE_LAST_LOG2))
		log2 = PROFILE_LAST_LOG2;
	row->nr_log2[log2 - PROFILE_BUCKET_BASE_LOG2]++;
	if (unlikely(cycles > row->max_cycles))
		row->max_cycles = cycles;
#endif
}

static __always_inline void strace_enter(u64 nr)
{
	struct profile_task *pt = os_current_profile();
	struct profile_syscall_row *row;
	u32 at;

	/* Or the compiler makes a copy of it, even while the hook is off. */
	asm("" : "+r"(nr));
	if (unlikely(nr >= PROFILE_NR_INDEXED || !(at = pt->index[nr]))) {
		pt->argument = nr;
		os_call(strace_enter_slowly);
		return;
	}
	row = (struct profile_syscall_row *)((char *)pt->index + at * (u64)PROFILE_INDEX_UNIT);
	row->nr_calls++;
	strace_begin(pt, row);
}

static __always_inline void strace_exit(long ret)
{
	struct profile_task *pt = os_current_profile();
	struct profile_syscall_row *row = pt->row;
	u64 cycles;

	if (unlikely(!(pt->seq & 1) || pt->event || PROFILE_IS_ERROR(ret))) {
		pt->argument = ret;
		os_call(strace_exit_slowly);
		return;
	}
	cycles = os_cycles() - pt->start_cycles;
	if (unlikely((s64)cycles < 0)) {
		/* No error, which is all that matters; ret need not live as long as this. */
		pt->argument = 0;
		os_call(strace_exit_slowly);
		return;
	}
	/* First of all: until it is stored, a report takes the call for running still. */
	WRITE_ONCE(row->cycles, pt->base_cycles + cycles);
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	row->off_cycles = pt->base_off_cycles + os_off_cycles(pt);
#endif
	strace_end_row(row, cycles);
	/* As in strace_begin(). */
	barrier();
	pt->seq++;
}

#ifdef CONFIG_PROFILE_STRACE_LIVE
/* On while there are live lines; asked only then: of which calls, and if they are counted, too. */
extern struct static_key live_key;
extern u64 live_chosen[PROFILE_NR_INDEXED / 64];
extern bool strace_counts;

/* To live.c, with ->argument. */
void strace_enter_live(void) os_saves_registers;
void strace_exit_live(void) os_saves_registers;
#endif

/*
 * Around every system call of a user thread: process context, interrupts on. nr as the user
 * gave it.
 */
static __always_inline void profile_syscall_enter(unsigned long nr)
{
	if (likely(!static_key_on(&strace_key)))
		return;
#ifdef CONFIG_PROFILE_STRACE_LIVE
	if (unlikely(static_key_on(&live_key))) {
		if (nr >= PROFILE_NR_INDEXED || live_chosen[nr / 64] >> nr % 64 & 1) {
			os_current_profile()->argument = nr;
			os_call(strace_enter_live);
		}
		if (!READ_ONCE(strace_counts))
			return;
	}
#endif
	strace_enter(nr);
}

/* A call that was not counted at its entry is none here. */
static __always_inline void profile_syscall_exit(long ret)
{
	if (likely(!static_key_on(&strace_key)))
		return;
	strace_exit(ret);
#ifdef CONFIG_PROFILE_STRACE_LIVE
	if (unlikely(static_key_on(&live_key)) && os_current_profile()->live_active) {
		os_current_profile()->argument = ret;
		os_call(strace_exit_live);
	}
#endif
}

#else

static inline void profile_syscall_enter(unsigned long nr)
{
}
static inline void profile_syscall_exit(long ret)
{
}

#endif

#endif
