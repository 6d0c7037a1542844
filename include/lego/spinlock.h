/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SPINLOCK_H
#define LEGO_SPINLOCK_H

/*
 * Ticket spinlocks: first come, first served. Holding one, a CPU must not sleep. A lock that any
 * interrupt handler takes is taken with the _irqsave forms everywhere. Not for NMI context, where
 * only spin_trylock() is allowed.
 */

#include <asm/irqflags.h>
#include <asm/processor.h>
#include <lego/kernel.h>

typedef struct {
	u32 next;
	u32 owner;
} spinlock_t;

#define SPINLOCK_INIT \
	{             \
		0, 0  \
	}
#define DEFINE_SPINLOCK(name) spinlock_t name = SPINLOCK_INIT

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->next = 0;
	lock->owner = 0;
}

static inline void spin_lock(spinlock_t *lock)
{
	u32 ticket = __atomic_fetch_add(&lock->next, 1, __ATOMIC_RELAXED);

	/* Pairs with the release in spin_unlock(). */
	while (smp_load_acquire(&lock->owner) != ticket)
		cpu_relax();
}

static inline bool spin_trylock(spinlock_t *lock)
{
	u32 owner = READ_ONCE(lock->owner);

	return __atomic_compare_exchange_n(&lock->next, &owner, owner + 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline void spin_unlock(spinlock_t *lock)
{
	/* Pairs with the acquire in spin_lock(). */
	smp_store_release(&lock->owner, lock->owner + 1);
}

static inline bool spin_is_locked(const spinlock_t *lock)
{
	return READ_ONCE(lock->owner) != READ_ONCE(lock->next);
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
