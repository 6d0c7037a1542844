// SPDX-License-Identifier: BSD-2-Clause
/*
 * FUTEX_LOCK_PI, TRYLOCK_PI and UNLOCK_PI: mutexes whose word has the number of the thread that
 * owns them. The kernel passes a mutex on: to its first waiter when the owner unlocks it, or ends.
 * No priority is inherited, because the scheduler has none.
 *
 * The waiters of a futex are in its bucket in the order of their arrival. The first one of each
 * futex has the owner in ->owner; if it leaves, the next one gets that. The word changes only with
 * the bucket's lock held, except that user code takes a free mutex and releases one without waiters
 * (FUTEX_WAITERS is set before anyone waits).
 *
 * A thread that ends finds the futexes that it owns by a walk of all buckets, but only if another
 * thread has waited for one of them. It cannot change their words, which may be in memory that it
 * does not have. So it makes the first waiter the owner, which stays in the queue until it has
 * changed the word itself.
 */

#include "futex.h"

#include "process.h"
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/uaccess.h>

struct pi_waiter {
	struct futex_waiter waiter; /* in pi_waiters */
	struct task *owner;	    /* only in the first waiter of a futex */
};

/* Returns the first waiter of the futex after this place in the bucket, or NULL. */
static struct pi_waiter *next_waiter(struct futex_bucket *bucket, const struct list_head *at,
				     const struct mm_key *key)
{
	ASSERT_HELD(&bucket->lock);
	while ((at = at->next) != &bucket->pi_waiters) {
		struct futex_waiter *waiter = list_entry(at, struct futex_waiter, node);

		if (futex_same_key(&waiter->key, key))
			return container_of(waiter, struct pi_waiter, waiter);
	}
	return NULL;
}

static struct pi_waiter *first_waiter(const struct futex *futex)
{
	return next_waiter(futex->bucket, &futex->bucket->pi_waiters, &futex->key);
}

/* Takes the futex's first waiter out of the queue. The next one waits for owner. */
static void remove_first(struct pi_waiter *first, struct task *owner)
{
	struct futex_waiter *waiter = &first->waiter;
	struct pi_waiter *next = next_waiter(waiter->bucket, &waiter->node, &waiter->key);

	list_del(&waiter->node);
	if (!next)
		return;
	next->owner = owner;
	/* It has not looked at this yet: it must take the bucket's lock before it can end. */
	WRITE_ONCE(owner->has_pi_waiters, true);
}

static void wake(struct futex_waiter *waiter)
{
	ASSERT_HELD(&waiter->bucket->lock);
	waiter->woken = true;
	task_wake(waiter->task);
}

/* Reads the word, and makes its page present and writable. Returns 0 or -EFAULT. */
static int touch_word(u32 __user *addr, u32 *word)
{
	u32 old;

	if (get_user(*word, addr) || user_cmpxchg_u32(addr, *word, *word, &old))
		return -EFAULT;
	return 0;
}

/* Returns whether the futex's word has this value. The bucket's lock is held. */
static bool word_is(const struct futex *futex, u32 word)
{
	u32 seen;

	ASSERT_HELD(&futex->bucket->lock);
	return !get_user_nofault(seen, futex->addr) && seen == word;
}

/* Changes the word from one value to another; false: it has changed, or its page is gone. */
static bool change_word(const struct futex *futex, u32 word, u32 new)
{
	u32 old;

	ASSERT_HELD(&futex->bucket->lock);
	return !user_cmpxchg_u32(futex->addr, word, new, &old) && old == word;
}

/*
 * Marks the owner of a futex that has no waiters yet. Returns false if it has ended, or is ending
 * and looks at its waiters no more.
 */
static bool mark_owner(struct task *owner)
{
	if (!owner)
		return false;
	WRITE_ONCE(owner->has_pi_waiters, true);
	smp_mb(); /* pairs with futex_exit_pi(): at least one sees what the other has set */
	return !READ_ONCE(owner->pi_exited);
}

#define TAKEN  0
#define QUEUED 1
#define AGAIN  2 /* the word has changed, or its page is gone */

/*
 * Takes a mutex that is free, or else queues the waiter, if there is one. owner is the thread with
 * the number in word; NULL: there is none. Returns one of these, or the call's error.
 */
static int lock_or_queue(const struct futex *futex, u32 word, struct task *owner,
			 struct pi_waiter *waiter)
{
	struct pi_waiter *first = first_waiter(futex);
	u32 waited = word | FUTEX_WAITERS;

	if (!word_is(futex, word))
		return AGAIN;
	if ((word & FUTEX_TID_MASK) == (u32)current->pid)
		return -EDEADLK;
	if (!first && !(word & FUTEX_TID_MASK))
		return change_word(futex, word, (word & FUTEX_OWNER_DIED) | (u32)current->pid) ?
			       TAKEN :
			       AGAIN;
	if (!first && owner && !owner->proc)
		return -EPERM; /* a thread of the kernel */
	if (!waiter)
		return first || owner ? -EAGAIN : -ESRCH;
	if (word != waited && !change_word(futex, word, waited))
		return AGAIN;
	if (!first &&
	    !mark_owner(owner)) /* its robust list may have released the mutex meanwhile */
		return word_is(futex, waited) ? -ESRCH : AGAIN;
	waiter->owner = first ? NULL : owner;
	list_add_tail(&waiter->waiter.node, &futex->bucket->pi_waiters);
	return QUEUED;
}

static int lock_pi(const struct futex *futex, struct pi_waiter *waiter)
{
	for (;;) {
		struct task *owner = NULL;
		unsigned long flags;
		u32 word;
		int ret;

		if (touch_word(futex->addr, &word))
			return -EFAULT;
		if (word & FUTEX_TID_MASK)
			owner = task_find((pid_t)(word & FUTEX_TID_MASK));
		flags = spin_lock_irqsave(&futex->bucket->lock);
		ret = lock_or_queue(futex, word, owner, waiter);
		spin_unlock_irqrestore(&futex->bucket->lock, flags);
		if (owner)
			task_put(owner);
		if (ret != AGAIN)
			return ret;
		if (task_interrupted(current))
			return -ERESTARTNOINTR;
		cond_resched();
	}
}

/*
 * Ends a wait, with the bucket's lock held. error is for a waiter that was not woken. fault: the
 * word has no memory any more, so that nobody can have this mutex. Returns the result of the call,
 * or AGAIN.
 */
static int end_wait(const struct futex *futex, struct pi_waiter *self, int error, bool fault)
{
	u32 word;

	if (self->waiter.woken && list_empty(&self->waiter.node))
		return 0; /* the owner has unlocked it, and changed the word */
	if (!self->waiter.woken) {
		if (self->owner)
			remove_first(self, self->owner);
		else
			list_del(&self->waiter.node);
		return error;
	}
	/* The owner has ended. */
	if (!fault &&
	    (get_user_nofault(word, futex->addr) ||
	     !change_word(futex, word, FUTEX_WAITERS | FUTEX_OWNER_DIED | (u32)current->pid)))
		return AGAIN;
	remove_first(self, current);
	return fault ? -EFAULT : 0;
}

/* Sleeps until the mutex is this thread's. */
static int wait_pi(const struct futex *futex, struct pi_waiter *self, u64 deadline_ns)
{
	int error = futex_sleep(&self->waiter, "futex", (u64)futex->addr, deadline_ns);
	bool fault = false;

	for (;;) {
		unsigned long flags = spin_lock_irqsave(&futex->bucket->lock);
		int ret = end_wait(futex, self, error, fault);
		u32 word;

		spin_unlock_irqrestore(&futex->bucket->lock, flags);
		if (ret != AGAIN)
			return ret == -ERESTARTSYS ? -ERESTARTNOINTR : ret;
		fault = touch_word(futex->addr, &word);
		cond_resched();
	}
}

long futex_lock_pi(u32 __user *addr, bool private, u64 deadline_ns, bool try)
{
	struct futex futex = futex_find(addr, private);
	struct pi_waiter self = {
		.waiter = {
			.node = LIST_HEAD_INIT(self.waiter.node),
			.task = current,
			.key = futex.key,
			.bucket = futex.bucket,
		},
	};
	int ret = futex.error ?: lock_pi(&futex, try ? NULL : &self);

	return ret == QUEUED ? wait_pi(&futex, &self, deadline_ns) : ret;
}

/* Passes the mutex to its first waiter, or frees it. Returns 0, AGAIN or the call's error. */
static int unlock_pi(const struct futex *futex, u32 word)
{
	struct pi_waiter *first = first_waiter(futex);
	u32 new = first ? FUTEX_WAITERS | (u32)first->waiter.task->pid : 0;

	if (first && first->owner != current)
		return -EINVAL;
	if (!change_word(futex, word, new))
		return AGAIN;
	if (first) {
		remove_first(first, first->waiter.task);
		wake(&first->waiter);
	}
	return 0;
}

long futex_unlock_pi(u32 __user *addr, bool private)
{
	struct futex futex = futex_find(addr, private);

	for (;;) {
		unsigned long flags;
		u32 word;
		int ret;

		if (futex.error || touch_word(addr, &word))
			return futex.error ?: -EFAULT;
		if ((word & FUTEX_TID_MASK) != (u32)current->pid)
			return -EPERM;
		flags = spin_lock_irqsave(&futex.bucket->lock);
		ret = unlock_pi(&futex, word);
		spin_unlock_irqrestore(&futex.bucket->lock, flags);
		if (ret != AGAIN)
			return ret;
		if (task_interrupted(current))
			return -ERESTARTNOINTR;
		cond_resched();
	}
}

/* Makes the first waiters of the task's futexes in this bucket the owners. */
static void pass_on(struct futex_bucket *bucket, const struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&bucket->lock);
	struct futex_waiter *waiter;

	list_for_each_entry(waiter, &bucket->pi_waiters, node) {
		struct pi_waiter *pi = container_of(waiter, struct pi_waiter, waiter);

		if (pi->owner == task) {
			pi->owner = waiter->task;
			wake(waiter);
		}
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

void futex_exit_pi(struct task *task)
{
	DEBUG_ASSERT(task == current);
	WRITE_ONCE(task->pi_exited, true);
	smp_mb(); /* pairs with mark_owner() */
	if (!READ_ONCE(task->has_pi_waiters))
		return;
	for (int i = 0; i < NR_FUTEX_BUCKETS; i++)
		pass_on(&futex_buckets[i], task);
}
