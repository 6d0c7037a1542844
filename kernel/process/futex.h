/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_FUTEX_H
#define PROCESS_FUTEX_H

/* Declarations that futex.c, futex_pi.c and robust.c share. */

#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/futex.h>
#include <lego/list.h>
#include <lego/mm.h>
#include <lego/sched.h>
#include <lego/time.h>

/* Bits in the word of a robust or priority-inheriting mutex (uapi/linux/futex.h). */
#define FUTEX_WAITERS	 0x80000000U
#define FUTEX_OWNER_DIED 0x40000000U
#define FUTEX_TID_MASK	 0x3fffffffU

#define NR_FUTEX_BUCKETS 256

struct futex_bucket {
	spinlock_t lock;
	struct list_head waiters;
	struct list_head pi_waiters; /* see futex_pi.c */
} __aligned(64);

/*
 * A waiter, on its task's stack. Guarded by the lock of ->bucket. To change ->bucket, both locks
 * are held.
 */
struct futex_waiter {
	struct list_head node;
	struct task *task;
	struct mm_key key;
	u32 bitset;
	struct futex_bucket *bucket;
	bool woken;
};

/* The futex of a system call's argument. */
struct futex {
	u32 __user *addr;
	struct mm_key key;
	struct futex_bucket *bucket;
	int error; /* -EINVAL, -EFAULT: there can be no futex */
};

extern struct futex_bucket futex_buckets[NR_FUTEX_BUCKETS];

/* Returns the futex of this word of the current address space. May sleep. */
struct futex futex_find(u32 __user *addr, bool private);

static inline bool futex_same_key(const struct mm_key *a, const struct mm_key *b)
{
	return a->object == b->object && a->offset == b->offset;
}

/*
 * Sleeps until waiter->woken. The name and the address are for task_waits_for(). Returns 0,
 * -ETIMEDOUT, or -ERESTARTSYS if a signal came first. Leaves the waiter in its queue. Inline, so
 * that the caller's name shows up in profiles.
 */
static __always_inline int futex_sleep(struct futex_waiter *waiter, const char *name, u64 addr,
				       u64 deadline_ns)
{
	int error = 0;

	DEBUG_ASSERT(waiter->task == current);
	for (;;) {
		u64 now = deadline_ns == TIME_NEVER_NS ? 0 : clock_monotonic_ns();

		/* Full barrier: pairs with the queue's lock in task_wake() and task_kick(). */
		(void)xchg(&waiter->task->state, TASK_INTERRUPTIBLE);
		task_waits_for(name, addr);
		error = 0;
		if (READ_ONCE(waiter->woken))
			break;
		error = task_interrupted(waiter->task) ? -ERESTARTSYS : -ETIMEDOUT;
		if (error == -ERESTARTSYS || now >= deadline_ns)
			break;
		schedule_timeout_ns(deadline_ns - now);
	}
	WRITE_ONCE(waiter->task->state, TASK_RUNNING);
	return error;
}

/* FUTEX_LOCK_PI, TRYLOCK_PI and UNLOCK_PI. */
long futex_lock_pi(u32 __user *addr, bool private, u64 deadline_ns, bool try);
long futex_unlock_pi(u32 __user *addr, bool private);

/* Passes on what an exiting thread has locked by FUTEX_LOCK_PI and others wait for. */
void futex_exit_pi(struct task *task);

#endif
