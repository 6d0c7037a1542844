// SPDX-License-Identifier: BSD-2-Clause
/*
 * Robust mutexes. A thread has a list of the robust mutexes that it holds, in its own memory. When
 * it ends, each mutex is marked OWNER_DIED, and one waiter is woken. The list is in user memory: it
 * may be wrong, cyclic or unmapped. So the walk is bounded, and ends at the first address that
 * cannot be read.
 */

#include <lego/futex.h>

#include "futex.h"
#include <lego/assert.h>
#include <lego/kernel.h>
#include <lego/sched.h>
#include <lego/uaccess.h>

#define ROBUST_LIST_LIMIT 2048 /* Linux's */

/* Bit 0 of a list pointer marks a priority-inheriting mutex. */
#define POINTER_PI 1ULL

struct robust_list_head {
	u64 first;
	s64 futex_offset;
	u64 pending; /* the mutex that the thread was locking or unlocking; 0: none */
};

static void mark_dead(u64 entry, s64 offset, u32 tid, bool pending)
{
	u32 __user *addr = (u32 __user *)((entry & ~POINTER_PI) + (u64)offset);
	bool pi = entry & POINTER_PI;
	u32 word, old;

	if (!IS_ALIGNED((u64)addr, sizeof(*addr)) || get_user(word, addr))
		return;
	/* It was unlocked, but the waiter has not been woken yet. */
	if (pending && !pi && !word) {
		futex_wake(addr, 1);
		return;
	}
	for (;;) {
		u32 dead = (word & FUTEX_WAITERS) | FUTEX_OWNER_DIED;

		if ((word & FUTEX_TID_MASK) != tid || user_cmpxchg_u32(addr, word, dead, &old))
			return;
		if (old == word)
			break;
		word = old;
	}
	if (!pi && (word & FUTEX_WAITERS))
		futex_wake(addr, 1);
}

static void exit_robust(struct task *task)
{
	struct robust_list_head __user *list = task->robust_list;
	struct robust_list_head head;
	u32 tid = (u32)task->pid;
	u64 entry, next;

	DEBUG_ASSERT(task == current);
	might_sleep();
	task->robust_list = NULL;
	if (!list || copy_from_user(&head, list, sizeof(head)))
		return;
	entry = head.first;
	for (int i = 0; (entry & ~POINTER_PI) != (u64)list && i < ROBUST_LIST_LIMIT; i++) {
		/*
		 * Read the next entry first: the mutex's memory may be reused as soon as it is
		 * unlocked.
		 */
		bool last = get_user(next, (u64 __user *)(entry & ~POINTER_PI));

		if (entry != head.pending)
			mark_dead(entry, head.futex_offset, tid, false);
		if (last)
			break;
		entry = next;
		cond_resched();
	}
	if (head.pending)
		mark_dead(head.pending, head.futex_offset, tid, true);
}

void futex_exit(struct task *task)
{
	exit_robust(task);
	futex_exit_pi(task);
}
