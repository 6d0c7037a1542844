/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_WORKER_H
#define LEGO_WORKER_H

/* A kernel thread that calls one function on request, for work that an interrupt must not do. */

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

/* Starts the thread. Returns 0 or a negative errno. Process context. */
int worker_start(struct worker *worker, const char *name);

/* Makes fn run soon; several calls before it starts make it run once. Any context but NMI. */
void worker_wake(struct worker *worker);

#endif
