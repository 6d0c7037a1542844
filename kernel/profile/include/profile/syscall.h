/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_SYSCALL_H
#define PROFILE_INCLUDE_SYSCALL_H

/*
 * The hooks around a system call, inlined in the entry code. Switched off, each is a NOP.
 * Switched on, neither takes a lock, calls a function or touches a shared cache line. Rare cases
 * take the slow paths in strace/strace.c, which describes the whole design. Include this file where
 * the task structure is complete: see os_hooks.h.
 */

#include <profile/profile.h>

#ifdef CONFIG_PROFILE_STRACE

#define PROFILE_LAST_LOG2     (PROFILE_BUCKET_BASE_LOG2 + PROFILE_SYSCALL_BUCKETS - 1)
#define PROFILE_IS_ERROR(ret) ((unsigned long)(ret) >= (unsigned long)-4095)

/* On while calls are counted or printed. */
extern os_key_t profile_strace_key;

/* strace.c: the slow paths, in the same context as the hooks. */
void profile_strace_enter_slow(void) os_saves_registers; /* ->argument: the number of the call */
void profile_strace_exit_slow(void) os_saves_registers;	 /* ->argument: its return value */

/*
 * Subtracts the start from the row's sums; profile_strace_end_time() adds the end. In between the
 * sums are negative, because the calls in a thread's table took less than the time since boot. So
 * one word has both the sum and whether a call is in flight, and a reader never sees one without
 * the other.
 */
static pf_always_inline void profile_strace_begin_time(struct profile_task *pt,
						       struct profile_syscall_row *row,
						       struct profile_moment start)
{
	pt->strace.row = row;
	pt->strace.start.cycles = start.cycles;
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	/* Keeps GCC from computing its negative, too. */
	asm("" : "+r"(start.off_cycles));
	pt->strace.start.off_cycles = start.off_cycles;
	row->off_cycles -= start.off_cycles;
#endif
	/* Pairs with pf_rmb() in copy_row(): the start is known before the time is negative. */
	pf_wmb();
	row->cycles -= start.cycles;
}

/* Starts timing. A restarted call has been counted already. */
static pf_always_inline void profile_strace_begin(struct profile_task *pt,
						  struct profile_syscall_row *row, u64 now_cycles)
{
	profile_strace_begin_time(pt, row,
				  (struct profile_moment){ now_cycles, os_off_cycles(pt) });
	/* Both pair with read_row(), which looks at seq before and after it copies the row. */
	pf_wmb();
	pt->strace.seq |= 1;
	pf_wmb();
}

/*
 * Returns the base-2 logarithm of a time, at least PROFILE_BUCKET_BASE_LOG2. It is above
 * PROFILE_LAST_LOG2 if the time is too long for the histogram.
 */
static pf_always_inline u64 profile_strace_log2(u64 cycles)
{
	return pf_log2(cycles, PROFILE_BUCKET_BASE_LOG2);
}

/* Returns true if the clock went backwards, or the time is too long for the histogram. */
static pf_always_inline bool profile_strace_is_odd_time(u64 cycles, u64 log2)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	return log2 > PROFILE_LAST_LOG2; /* true in both cases */
#else
	return (s64)cycles < 0;
#endif
}

/* Counts the end of a call in the histogram. */
static pf_always_inline void profile_strace_end_row(struct profile_syscall_row *row, u64 cycles,
						    u64 log2)
{
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	row->nr_log2[log2 - PROFILE_BUCKET_BASE_LOG2]++;
	if (pf_unlikely(cycles > row->max_cycles))
		row->max_cycles = cycles;
#endif
}

/* Adds the time of a call that ends at end_cycles. */
static pf_always_inline void profile_strace_end_time(struct profile_task *pt,
						     struct profile_syscall_row *row,
						     u64 end_cycles, u64 cycles, u64 log2)
{
	/* One instruction, before all other stores: see profile_strace_begin_time(). */
	row->cycles += end_cycles;
	pf_wmb();
#ifdef CONFIG_PROFILE_STRACE_DETAIL
	row->off_cycles += os_off_cycles(pt);
#endif
	profile_strace_end_row(row, cycles, log2);
}

static pf_always_inline void profile_strace_enter(u64 nr)
{
	struct profile_task *pt = os_current_profile();
	struct profile_syscall_row *row;
	u32 at;

	if (pf_unlikely(nr >= PROFILE_NR_INDEXED || !(at = pt->strace.index[nr]))) {
		pt->strace.argument = nr;
		os_call(profile_strace_enter_slow);
		return;
	}
	row = (struct profile_syscall_row *)((char *)pt->strace.index +
					     at * (u64)PROFILE_INDEX_UNIT);
	row->nr_calls++;
	profile_strace_begin(pt, row, os_entry_cycles());
}

/* Counts an error if it is the same as the last one. Returns false if not. */
static pf_always_inline bool profile_strace_same_error(struct profile_task *pt,
						       struct profile_syscall_row *row, long ret)
{
	if (row != pt->strace.error_row || (u16)ret != pt->strace.error_ret || os_current_dying())
		return false;
	row->nr_errors++;
	os_add(*pt->strace.error_counter, 1);
	return true;
}

static pf_always_inline void profile_strace_exit(long ret)
{
	struct profile_task *pt = os_current_profile();
	struct profile_syscall_row *row = pt->strace.row;
	u64 end_cycles, cycles, log2;

	if (pf_unlikely(!(pt->strace.seq & 1) || pt->strace.is_slow ||
			(PROFILE_IS_ERROR(ret) && !profile_strace_same_error(pt, row, ret)))) {
		pt->strace.argument = ret;
		os_call(profile_strace_exit_slow);
		return;
	}
	end_cycles = os_cycles();
	cycles = end_cycles - pt->strace.start.cycles;
	log2 = profile_strace_log2(cycles);
	if (pf_unlikely(profile_strace_is_odd_time(cycles, log2))) {
		/*
		 * An error has been counted, so any value that is none: keeping ret until here
		 * would cost a register.
		 */
		pt->strace.argument = 0;
		os_call(profile_strace_exit_slow);
		return;
	}
	profile_strace_end_time(pt, row, end_cycles, cycles, log2);
	/* As in profile_strace_begin(); the second is for the stores of the next call. */
	pf_wmb();
	pt->strace.seq++;
	pf_wmb();
}

#ifdef CONFIG_PROFILE_STRACE_LIVE
/*
 * profile_live_key is on while calls are printed. Only then do the hooks read the other two
 * variables.
 */
extern os_key_t profile_live_key;
extern u64 profile_live_chosen[PROFILE_NR_INDEXED / 64];
extern bool profile_strace_counts;

/* strace/live/live.c: called with ->argument as above. */
void profile_strace_enter_live(void) os_saves_registers;
void profile_strace_exit_live(void) os_saves_registers;
#endif

/*
 * Called before every system call of a user thread, with the number that the thread passed. Process
 * context, interrupts on.
 */
static pf_always_inline void profile_syscall_enter(unsigned long nr)
{
	if (pf_likely(!os_key_on(&profile_strace_key)))
		return;
#ifdef CONFIG_PROFILE_STRACE_LIVE
	if (pf_unlikely(os_key_on(&profile_live_key))) {
		if (nr >= PROFILE_NR_INDEXED || profile_live_chosen[nr / 64] >> nr % 64 & 1) {
			os_current_profile()->strace.argument = nr;
			os_call(profile_strace_enter_live);
		}
		if (!pf_read_once(profile_strace_counts))
			return;
	}
#endif
	profile_strace_enter(nr);
}

/* Called after it. Ignores a call that was not counted at its entry. Same context. */
static pf_always_inline void profile_syscall_exit(long ret)
{
	if (pf_likely(!os_key_on(&profile_strace_key)))
		return;
	profile_strace_exit(ret);
#ifdef CONFIG_PROFILE_STRACE_LIVE
	if (pf_unlikely(os_key_on(&profile_live_key)) && os_current_profile()->strace.live_active) {
		os_current_profile()->strace.argument = ret;
		os_call(profile_strace_exit_live);
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

/*
 * The same hooks, and the events sys_enter and sys_exit. While all of them are off, each of the two
 * is one NOP. The arguments are evaluated if a hook is on. The first one is where its function uses
 * nothing but its first argument (os_call_at_entry()). Same context.
 *
 * If the call changes the registers, nr may be another one at the exit: ~0 after rt_sigreturn(2)
 * and execve(2), that of the call that goes on after restart_syscall(2). The event sys_exit has the
 * number of the entry, if that has taken the slow path, too. Otherwise events were switched on
 * meanwhile: then it has nr, and is left out if that is ~0.
 */
#if defined(CONFIG_PROFILE_STRACE) || (defined(CONFIG_PROFILE_TRACE) && defined(os_current_profile))
extern os_key_t profile_syscall_key, profile_syscall_slow_key;
extern u32 profile_syscall_generation; /* rises when the slow paths are taken on all CPUs */

#ifndef CONFIG_PROFILE_STRACE
#define profile_strace_enter(nr) ((void)(nr))
#define profile_strace_exit(ret) ((void)(ret))
#endif

/* ->sys.nr is the number. */
static pf_noinline pf_unused void profile_sys_enter_slow(void)
{
	struct profile_sys *sys = &os_current_profile()->sys;

	sys->generation = pf_read_once(profile_syscall_generation);
	profile_trace(sys_enter, sys->nr);
	profile_syscall_enter(sys->nr);
}

static pf_noinline pf_unused void profile_sys_exit_slow(u32 nr, long ret)
{
	struct profile_sys *sys = &os_current_profile()->sys;

	profile_syscall_exit(ret);
#ifdef CONFIG_PROFILE_TRACE
	if (os_key_on(&profile_trace_key_sys_exit)) {
		bool entered = sys->generation == pf_read_once(profile_syscall_generation);

		if (entered || nr != ~0u)
			profile_trace_sys_exit(entered ? sys->nr : nr, ret);
	}
#endif
	sys->generation = 0;
}

#define profile_sys_enter(nr_)                               \
	do {                                                 \
		if (!os_key_on(&profile_syscall_key))        \
			break;                               \
		if (!os_key_on(&profile_syscall_slow_key)) { \
			profile_strace_enter(nr_);           \
			break;                               \
		}                                            \
		os_current_profile()->sys.nr = (nr_);        \
		os_call_at_entry(profile_sys_enter_slow);    \
	} while (0)
#define profile_sys_exit(nr, ret)                           \
	do {                                                \
		if (!os_key_on(&profile_syscall_key))       \
			break;                              \
		if (os_key_on(&profile_syscall_slow_key))   \
			profile_sys_exit_slow((nr), (ret)); \
		else                                        \
			profile_strace_exit(ret);           \
	} while (0)
#else
#define profile_sys_enter(nr)	  profile_trace(sys_enter, (nr))
#define profile_sys_exit(nr, ret) profile_trace(sys_exit, (nr), (ret))
#endif

#endif
