/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_WORKER_H
#define LEGO_WORKER_H

/* A kernel thread that does one thing whenever it is asked to: what an interrupt may not do. */

#include <lego/wait.h>

struct worker {
	struct wait_queue wq;
	bool wanted;
	void (*fn)(void); /* process context, may sleep */
};

#define WORKER_INIT(worker, fn_)                                                                 \
	{                                                                                        \
		.wq = WAIT_QUEUE_INIT_AT((worker).wq, #worker, LOCK_PLACE(#worker)), .fn = (fn_) \
	}

/* Start its thread: process context. 0 or a negative errno. */
int worker_start(struct worker *worker, const char *name);

/* Have fn run soon, once however often this is called meanwhile. Any context but NMI. */
void worker_wake(struct worker *worker);

#endif
