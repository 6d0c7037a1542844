/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_WAIT_H
#define LEGO_WAIT_H

/* Sleeping until a condition holds. The waker changes the condition first, then wakes. */

#include <lego/list.h>
#include <lego/spinlock.h>

struct task;

struct wait_queue {
	spinlock_t lock; /* taken with interrupts off */
	struct list_head waiters;
};

struct waiter {
	struct list_head node;
	struct task *task;
};

#define WAIT_QUEUE_INIT(name)                                 \
	{                                                     \
		SPINLOCK_INIT, LIST_HEAD_INIT((name).waiters) \
	}

#define WAITER_INIT(name)                         \
	{                                         \
		LIST_HEAD_INIT((name).node), NULL \
	}

void wait_queue_init(struct wait_queue *wq);

/* Queue the current task and set its state; finish_wait undoes both. For the macros below. */
void prepare_wait(struct wait_queue *wq, struct waiter *waiter, int state);
void finish_wait(struct wait_queue *wq, struct waiter *waiter);

/* Any context but NMI. */
void wake_up_all(struct wait_queue *wq);
void wake_up_one(struct wait_queue *wq);

/* Sleep until condition; not ended by a fatal signal. Process context, no spinlock held. */
#define wait_event(wq, condition)                                         \
	do {                                                              \
		struct waiter _waiter = WAITER_INIT(_waiter);             \
		for (;;) {                                                \
			prepare_wait(wq, &_waiter, TASK_UNINTERRUPTIBLE); \
			if (condition)                                    \
				break;                                    \
			schedule();                                       \
		}                                                         \
		finish_wait(wq, &_waiter);                                \
	} while (0)

/* As wait_event, but -EINTR when a fatal signal arrives first; 0 otherwise. */
#define wait_event_interruptible(wq, condition)                         \
	({                                                              \
		struct waiter _waiter = WAITER_INIT(_waiter);           \
		int _ret = 0;                                           \
		for (;;) {                                              \
			prepare_wait(wq, &_waiter, TASK_INTERRUPTIBLE); \
			if (condition)                                  \
				break;                                  \
			if (task_interrupted(current)) {                \
				_ret = -EINTR;                          \
				break;                                  \
			}                                               \
			schedule();                                     \
		}                                                       \
		finish_wait(wq, &_waiter);                              \
		_ret;                                                   \
	})

#endif
