/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_WAIT_H
#define LEGO_WAIT_H

/*
 * Wait queues: tasks sleep until a condition is true. The waker changes the condition first, then
 * wakes.
 */

#include <lego/list.h>
#include <lego/spinlock.h>
#include <lego/timer.h>

struct task;

struct wait_queue {
	spinlock_t lock;	  /* taken with interrupts off */
	u32 nr_alls;		  /* calls of wake_up_all() */
	struct list_head waiters; /* the exclusive ones come last */
	const char *name;	  /* what its sleepers wait for */
};

struct waiter {
	struct list_head node;
	struct task *task; /* NULL: of a callback_waiter */
	bool exclusive;	   /* wake_up() wakes only one such waiter */
};

/* A waiter that has a callback instead of a task. */
struct callback_waiter {
	struct waiter waiter; /* if exclusive, wake_up() goes on until one returns true */
	/*
	 * Called once the waiter is off its queue, with the queue's lock held and interrupts off.
	 * May wake other queues, but none whose callbacks lead back to this one. Returns whether it
	 * woke a task.
	 */
	bool (*woken)(struct callback_waiter *waiter);
};

#define WAIT_QUEUE_INIT_AT(wq, name, place)                                    \
	{                                                                      \
		SPINLOCK_INIT_AT(place), 0, LIST_HEAD_INIT((wq).waiters), name \
	}
#define WAIT_QUEUE_INIT(name) WAIT_QUEUE_INIT_AT(name, #name, LOCK_PLACE(#name))

#define WAITER_INIT(name, exclusive)                         \
	{                                                    \
		LIST_HEAD_INIT((name).node), NULL, exclusive \
	}

/* The name is not copied. A leading & is left out: it may be an expression. */
void wait_queue_reset(struct wait_queue *wq, const char *name);

#define wait_queue_init(wq) wait_queue_init_at(wq, #wq, LOCK_PLACE(#wq))
static inline void wait_queue_init_at(struct wait_queue *wq, const char *name, const char *place)
{
	wait_queue_reset(wq, name);
	lock_map_init(&wq->lock.map, place);
}

/* Queues the current task and sets its state; finish_wait() undoes both. For the macros below. */
void prepare_wait(struct wait_queue *wq, struct waiter *waiter, int state);
void finish_wait(struct wait_queue *wq, struct waiter *waiter);

/*
 * Any context but NMI. wake_up() is for what one waiter can take, such as a byte in a pipe: it
 * leaves exclusive waiters queued once one of them woke a task. wake_up_all() is for what concerns
 * all, such as the end of a file. Both wake many waiters in steps, between which interrupts come in
 * if they were on: the queue must not go away although its last waiters do, after a signal.
 * wake_up_one() wakes the first waiter, and returns whether there was one.
 */
void wake_up(struct wait_queue *wq);
void wake_up_all(struct wait_queue *wq);
bool wake_up_one(struct wait_queue *wq);

/*
 * Called by an exclusive waiter when it leaves, with something or after a signal. What came while
 * it was already chosen may have woken nobody else. So if there is more, wakes another one.
 */
#define wake_up_next(wq, more)                                       \
	do {                                                         \
		if (unlikely(!list_empty(&(wq)->waiters)) && (more)) \
			wake_up_exclusive(wq);                       \
	} while (0)
void wake_up_exclusive(struct wait_queue *wq);

/* Wakes many waiters of a queue in steps although interrupts are off: in timer interrupts. */
struct wake_timer {
	struct wait_queue *wq;
	/* Guarded by the queue's lock. */
	struct list_head rest; /* the waiters still to wake; they leave it as they leave a queue */
	bool all, keeps;       /* wakes all; has woken an exclusive waiter, so keeps the others */
	bool runs;
	struct timer timer;
};

void wake_timer_expired(struct timer *timer);
#define WAKE_TIMER_INIT(name, queue)                                            \
	{                                                                       \
		.wq = &(queue), .rest = LIST_HEAD_INIT((name).rest), .timer = { \
			.fn = wake_timer_expired                                \
		}                                                               \
	}

void wake_timer_init(struct wake_timer *wake, struct wait_queue *wq);
/* Waits for the last step. Called before a queue goes away, which has no waiters any more. */
void wake_timer_end(struct wake_timer *wake);
/* Wakes the first waiter now and the others soon. all: like wake_up_all(), else like wake_up(). */
void wake_up_in_steps(struct wake_timer *wake, bool all);
/* The same for all; called by a callback_waiter of another queue of the same lock class. */
void wake_up_in_steps_nested(struct wake_timer *wake);

/*
 * Sleeps until the condition is true; no signal ends the sleep. Process context, no spinlock held.
 */
#define wait_event(wq, condition)                                         \
	do {                                                              \
		struct waiter _waiter = WAITER_INIT(_waiter, false);      \
		for (;;) {                                                \
			prepare_wait(wq, &_waiter, TASK_UNINTERRUPTIBLE); \
			if (condition)                                    \
				break;                                    \
			schedule();                                       \
		}                                                         \
		finish_wait(wq, &_waiter);                                \
	} while (0)

/*
 * Queue and dequeue without touching the task's state, for a task that waits on several queues
 * (poll). The caller sets the state first: see prepare_wait(). A waker takes the waiter off its
 * queue.
 */
void wait_queue_add(struct wait_queue *wq, struct waiter *waiter);
void wait_queue_remove(struct wait_queue *wq, struct waiter *waiter);

/*
 * Queues a callback, unless it is queued already. wait_queue_remove() undoes that; afterwards the
 * callback does not run any more.
 */
void wait_queue_add_callback(struct wait_queue *wq, struct callback_waiter *waiter);

#define WAIT_EVENT(wq, exclusive, condition, state, ended, error, sleep) \
	({                                                               \
		struct waiter _waiter = WAITER_INIT(_waiter, exclusive); \
		int _ret = 0;                                            \
		for (;;) {                                               \
			prepare_wait(wq, &_waiter, state);               \
			if (condition)                                   \
				break;                                   \
			if (ended) {                                     \
				_ret = error;                            \
				break;                                   \
			}                                                \
			sleep;                                           \
		}                                                        \
		finish_wait(wq, &_waiter);                               \
		_ret;                                                    \
	})

/* Like wait_event(), but returns -ERESTARTSYS if a signal comes first, else 0. */
#define wait_event_interruptible(wq, condition)                                         \
	WAIT_EVENT(wq, false, condition, TASK_INTERRUPTIBLE, task_interrupted(current), \
		   -ERESTARTSYS, schedule())

/* The same for something of which each waiter takes a part: see wake_up_next(). */
#define wait_event_exclusive(wq, condition)                                            \
	WAIT_EVENT(wq, true, condition, TASK_INTERRUPTIBLE, task_interrupted(current), \
		   -ERESTARTSYS, schedule())

/* Like wait_event(), but returns -EINTR if the task is killed. */
#define wait_event_killable(wq, condition) \
	WAIT_EVENT(wq, false, condition, TASK_KILLABLE, task_killed(current), -EINTR, schedule())

#endif
