/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SPINLOCK_H
#define LEGO_SPINLOCK_H

/*
 * Spinlocks. The CPU that first sees the lock free takes it. There is no queue: on a host with
 * fewer CPUs than the machine has, a queue would wait for CPUs that do not run. A CPU that holds a
 * spinlock must not sleep. A lock that any interrupt handler takes must be taken with the _irqsave
 * forms everywhere. In NMIs, only spin_trylock() is allowed.
 *
 * CONFIG_DEBUG_LOCKS checks all this, and the order in which locks are taken (lego/lock_check.h).
 */

#include <asm/irqflags.h>
#include <asm/processor.h>
#include <asm/saving_call.h>
#include <lego/kernel.h>
#include <lego/lock_check.h>

typedef struct {
	bool locked;
	struct lock_map map;
} spinlock_t;

#define SPINLOCK_INIT_AT(place)             \
	{                                   \
		false, LOCK_MAP_INIT(place) \
	}
#define SPINLOCK_INIT SPINLOCK_INIT_AT(LOCK_PLACE("spinlock"))
#define DEFINE_SPINLOCK(name) \
	spinlock_t name __cacheline_aligned = SPINLOCK_INIT_AT(LOCK_PLACE(#name))

static inline void spin_lock_init_at(spinlock_t *lock, const char *place)
{
	lock->locked = false;
	lock_map_init(&lock->map, place);
}

#define spin_lock_init(lock) spin_lock_init_at(lock, LOCK_PLACE(#lock))

static inline bool spin_is_locked(const spinlock_t *lock)
{
	return READ_ONCE(lock->locked);
}

/* Takes a lock that is probably free, without the checks. For the functions below. */
static inline bool spin_exchange(spinlock_t *lock)
{
	/* Pairs with the release in spin_unlock(). */
	return !__atomic_exchange_n(&lock->locked, true, __ATOMIC_ACQUIRE);
}

/* The same for a lock that others may hold: leaves them its cache line until it is free. */
static inline bool spin_take(spinlock_t *lock)
{
	return !spin_is_locked(lock) && spin_exchange(lock);
}

static inline bool spin_trylock(spinlock_t *lock)
{
	bool taken = spin_take(lock);

	if (taken)
		lock_check_acquire(&lock->map, LOCK_SPIN | LOCK_TRY, 0);
	return taken;
}

/* Spins until it has the lock. The profiler of waits records the time under this name. */
void spin_lock_contended(spinlock_t *lock, const char *name) __saves_registers;

#define SPIN_NAME(text) (IS_ENABLED(CONFIG_PROFILE_WAITS) ? (text) : NULL)

static inline void spin_lock_at(spinlock_t *lock, const char *name, unsigned int flags)
{
	lock_check_acquire(&lock->map, LOCK_SPIN | flags, 0);
	if (unlikely(!spin_exchange(lock)))
		saving_call(spin_lock_contended, "D"(lock), "S"(name));
}

#define spin_lock(lock) spin_lock_at(lock, SPIN_NAME(#lock), 0)
/* Takes a lock while others of the same class, all with lower addresses, are held. */
#define spin_lock_nested(lock) spin_lock_at(lock, SPIN_NAME(#lock), LOCK_NESTED)
/* Takes a lock while others of the same class are held, in an order that cannot form a cycle. */
#define spin_lock_ordered(lock) spin_lock_at(lock, SPIN_NAME(#lock), LOCK_ORDERED)

static inline void spin_unlock(spinlock_t *lock)
{
	lock_check_release(&lock->map, LOCK_SPIN);
	/* Pairs with the acquire in spin_exchange(). */
	smp_store_release(&lock->locked, false);
}

static inline unsigned long spin_lock_irqsave_at(spinlock_t *lock, const char *name)
{
	unsigned long flags = local_irq_save();

	spin_lock_at(lock, name, 0);
	return flags;
}

#define spin_lock_irqsave(lock) spin_lock_irqsave_at(lock, SPIN_NAME(#lock))

static inline void spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	spin_unlock(lock);
	local_irq_restore(flags);
}

#endif
