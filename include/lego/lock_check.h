/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_LOCK_CHECK_H
#define LEGO_LOCK_CHECK_H

/*
 * Checks the use of locks (CONFIG_DEBUG_LOCKS). If the option is off, there is no code.
 *
 * Locks initialized at the same place of the source form a class. Taking B with A held records that
 * code may wait for B's class with A's held. If such pairs form a cycle, a deadlock is possible; a
 * warning shows both orders, once for each pair. Interrupts take part: a spinlock held with
 * interrupts on may wait for any handler, and a handler waits for the locks that it takes. Trylock
 * does not wait, so it adds no pair. Also checked: unlocking a lock that is not held, taking a lock
 * twice, sleeping, returning to user mode or exiting with a spinlock held, sleeping in an interrupt
 * or with interrupts off, and locks that were not initialized.
 */

#include <lego/types.h>

enum lock_how {
	LOCK_SPIN = 0,	  /* held by a CPU */
	LOCK_SLEEP = 1,	  /* held by a task */
	LOCK_TRY = 2,	  /* has been taken without waiting */
	LOCK_NESTED = 4,  /* others of its class may be held, all with lower addresses */
	LOCK_ORDERED = 8, /* others of its class may be held, in an order that the caller keeps */
};

#ifdef CONFIG_DEBUG_LOCKS

/* A part of every lock. Zeroed memory is a lock that was never initialized. */
struct lock_map {
	const char *place; /* where it was initialized: its class */
	u16 class;	   /* number of the class; 0: not looked up yet */
	bool forgotten;	   /* held in a way that was reported already, so no longer tracked */
};

#define MAX_HELD_SPINLOCKS 16
#define MAX_HELD_MUTEXES   12

struct held_lock {
	struct lock_map *map;
	unsigned long ip; /* where it was taken */
};

/* In each task: the sleeping locks it holds. */
struct lock_stack {
	unsigned int nr;
	unsigned int nr_untracked; /* held beyond the array's end */
	struct held_lock held[MAX_HELD_MUTEXES];
};

#define LOCK_STRING2(x)	 #x
#define LOCK_STRING(x)	 LOCK_STRING2(x)
#define LOCK_PLACE(what) (__FILE__ ":" LOCK_STRING(__LINE__) " " what)
#define LOCK_MAP_INIT(place)      \
	{                         \
		(place), 0, false \
	}

static inline void lock_map_init(struct lock_map *map, const char *place)
{
	*map = (struct lock_map){ place, 0, false };
}

/*
 * Called before waiting for a lock (with LOCK_TRY: after taking it), and before releasing it. ip is
 * the code to name; 0: the caller.
 */
void lock_check_acquire(struct lock_map *map, unsigned int how, unsigned long ip);
void lock_check_release(struct lock_map *map, unsigned int how);

/* Called by schedule(), with the flags at its entry. */
void lock_check_schedule(unsigned long flags);

/* Called before user mode, and at the end of a task: no lock may be held. */
void lock_check_leave(const char *whence);

/* See might_sleep(). */
void lock_check_sleep(const char *file, int line);

/*
 * Return whether this CPU or the current task holds the lock. Where locks are not tracked (in an
 * NMI, a panic, a report, or with too many locks held), held() returns true and owned() false, so
 * that assertions of both pass.
 */
bool lock_check_held(const struct lock_map *map);
bool lock_check_owned(const struct lock_map *map);

/* Returns true on a CPU that prints a report. Any context, interrupts off. */
bool lock_check_reporting(void);

/*
 * Tests only: while a trap is set, reports are counted and not printed. lock_check_trapped() says
 * what the first one since the last call was about, NULL: there was none.
 */
void lock_check_set_trap(bool on);
const char *lock_check_trapped(void);

/* For functions that may sleep. Checks process context, interrupts on, and no spinlock held. */
#define might_sleep() lock_check_sleep(__FILE__, __LINE__)

#else

struct lock_map {
};
struct lock_stack {
};

#define LOCK_PLACE(what) NULL
#define LOCK_MAP_INIT(place) \
	{                    \
	}

static inline void lock_map_init(struct lock_map *map, const char *place)
{
}

static inline void lock_check_acquire(struct lock_map *map, unsigned int how, unsigned long ip)
{
}

static inline void lock_check_release(struct lock_map *map, unsigned int how)
{
}

static inline bool lock_check_held(const struct lock_map *map)
{
	return true;
}

static inline bool lock_check_owned(const struct lock_map *map)
{
	return false;
}

static inline void lock_check_schedule(unsigned long flags)
{
}

static inline void lock_check_leave(const char *whence)
{
}

static inline bool lock_check_reporting(void)
{
	return false;
}

static inline void might_sleep(void)
{
}

#endif

/* The return address of the calling function. */
#ifdef CONFIG_PROFILE_FUNCTIONS
unsigned long current_return_address(const void *frame) __attribute__((pure));
#define RETURN_ADDRESS() current_return_address(__builtin_frame_address(0))
#else
#define RETURN_ADDRESS() ((unsigned long)__builtin_return_address(0))
#endif

#endif
