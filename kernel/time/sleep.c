// SPDX-License-Identifier: BSD-2-Clause
/* Sleeps for a time by a timer on the sleeper's stack that wakes it. */

#include <lego/sched.h>

#include <lego/atomic.h>
#include <lego/errno.h>

struct sleep_timer {
	struct timer timer;
	struct task *task;
};

static void wake_sleeper(struct timer *timer)
{
	task_wake(container_of(timer, struct sleep_timer, timer)->task);
}

u64 schedule_timeout_ns(u64 ns)
{
	struct sleep_timer sleep = { .task = current };
	u64 now = clock_monotonic_ns(), end;

	if (ns >= ~0ULL - now) {
		schedule();
		return ns;
	}
	end = now + ns;
	timer_setup(&sleep.timer, wake_sleeper);
	timer_start(&sleep.timer, end);
	schedule();
	timer_cancel(&sleep.timer);
	now = clock_monotonic_ns();
	return now < end ? end - now : 0;
}

int sleep_until_ns(u64 deadline_ns)
{
	for (;;) {
		u64 now = clock_monotonic_ns();

		if (now >= deadline_ns)
			return 0;
		/*
		 * Full barrier between the state and the check for signals. Pairs with the one
		 * between the sender's mark and its task_kick(); otherwise the signal could be
		 * missed.
		 */
		(void)xchg(&current->state, TASK_INTERRUPTIBLE);
		if (task_interrupted(current)) {
			WRITE_ONCE(current->state, TASK_RUNNING);
			return -EINTR;
		}
		task_waits_for("sleep", 0);
		schedule_timeout_ns(deadline_ns - now);
	}
}
