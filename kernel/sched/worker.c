// SPDX-License-Identifier: BSD-2-Clause
/* A kernel thread that calls a function each time that it is woken. */

#include <lego/worker.h>

#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/sched.h>

static int worker_thread(void *arg)
{
	struct worker *worker = arg;

	for (;;) {
		wait_event(&worker->wq, xchg(&worker->wanted, false));
		worker->fn();
	}
	return 0;
}

int worker_start(struct worker *worker, const char *name)
{
	struct task *task = kthread_create(worker_thread, worker, name);

	if (IS_ERR(task))
		return PTR_ERR(task);
	task_wake(task);
	return 0;
}

void worker_wake(struct worker *worker)
{
	WRITE_ONCE(worker->wanted, true);
	wake_up_all(&worker->wq);
}
