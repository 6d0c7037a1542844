/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SPINLOCK_H
#define LEGO_SPINLOCK_H

/*
 * Spinlocks: whoever sees the lock free first takes it. Not first come first served: on a host with
 * fewer CPUs than the machine has, a queue would wait for CPUs that do not run. Holding one, a CPU
 * must not sleep. A lock that any interrupt handler takes is taken with the _irqsave forms
 * everywhere. Not for NMI context, where only spin_trylock() is allowed.
 */

#include <asm/irqflags.h>
#include <asm/processor.h>
#include <lego/kernel.h>

typedef struct {
	bool locked;
} spinlock_t;

#define SPINLOCK_INIT \
	{             \
		false \
	}
#define DEFINE_SPINLOCK(name) spinlock_t name = SPINLOCK_INIT

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->locked = false;
}

static inline bool spin_is_locked(const spinlock_t *lock)
{
	return READ_ONCE(lock->locked);
}

static inline bool spin_trylock(spinlock_t *lock)
{
	/* Pairs with the release in spin_unlock(). */
	return !spin_is_locked(lock) && !__atomic_exchange_n(&lock->locked, true, __ATOMIC_ACQUIRE);
}

static inline void spin_lock(spinlock_t *lock)
{
	while (!spin_trylock(lock))
		cpu_relax();
}

static inline void spin_unlock(spinlock_t *lock)
{
	/* Pairs with the acquire in spin_trylock(). */
	smp_store_release(&lock->locked, false);
}

static inline unsigned long spin_lock_irqsave(spinlock_t *lock)
{
	unsigned long flags = local_irq_save();

	spin_lock(lock);
	return flags;
}

static inline void spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	spin_unlock(lock);
	local_irq_restore(flags);
}

#endif
