/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_UTIL_H
#define PROFILE_UTIL_H

/* Small helpers of all profilers. */

#include "os.h"

#include <profile/profile.h>

#define NS_PER_SEC  1000000000ul
#define NS_PER_MSEC 1000000ul

/*
 * Takes a lock to make a snapshot. In a panic the holder is stopped and never releases the lock, so
 * the snapshot is made without it.
 */
static inline unsigned long snapshot_lock(os_lock_t *lock, bool *locked)
{
	*locked = !os_panicking();
	return *locked ? os_lock(lock) : 0;
}

static inline void snapshot_unlock(os_lock_t *lock, bool locked, unsigned long flags)
{
	if (locked)
		os_unlock(lock, flags);
}

/*
 * A lock whose holder may sleep. Waiting threads let others run. It is for rare changes: it is not
 * fair, and allocates nothing. Process context.
 */
struct poll_lock {
	pf_flag_t is_held;
};

/* Takes the lock if it is free. Any context. */
static inline bool poll_trylock(struct poll_lock *lock)
{
	return !pf_xchg(&lock->is_held, true);
}

static inline void poll_lock(struct poll_lock *lock)
{
	os_assert_process_context();
	while (!poll_trylock(lock))
		os_relax_and_yield();
}

/* Pairs with the pf_xchg() of the next holder, which sees all that this one has done. */
static inline void poll_unlock(struct poll_lock *lock)
{
	os_assert(lock->is_held);
	pf_store_release(&lock->is_held, false);
}

/* Returns the sum, or the largest number if the sum overflows. */
static inline u64 add_saturating(u64 a, u64 b)
{
	return a + b < a ? ~0ull : a + b;
}

/* Compares for os_sort(). */
static inline int compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

#endif
