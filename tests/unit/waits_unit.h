/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_WAITS_UNIT_H
#define TESTS_WAITS_UNIT_H

/* A producer wakes a consumer at given times. A cycle is a nanosecond. */

#include "unit.h"

#include "../../kernel/profile/table.h"
#include "../../kernel/profile/waits/waits.h"

/* Function 0 belongs to the scheduler, where the stack walk begins. */
#define FN(i) (0xffffffff81000000ull + (i)*256)

static struct process producer_proc = { .pid = 20, .comm = "producer" };
static struct process consumer_proc = { .pid = 21, .comm = "consumer" };
static struct task producer = { .proc = &producer_proc };
static struct task consumer = { .proc = &consumer_proc };
static u64 callers[3];
static bool in_lock; /* waits go through function 9, which belongs to a lock */

/* Makes task the current one, inside a function that called the scheduler. */
static inline void go_to(struct task *task, unsigned int function)
{
	host_current = task;
	strcpy(host_comm, task->proc->comm);
	host_pid = host_tid = task->proc->pid;
	callers[0] = FN(9) + 8;
	callers[in_lock] = FN(function) + 8;
	host_here = (struct pt_regs){
		.pc = FN(0) + 8,
		.callers = callers,
		.nr_callers = 1 + in_lock,
	};
}

/* The consumer goes off its CPU, is woken by the producer (woken 0: preempted), and runs again. */
static inline void wait_and_run(const char *name, u64 out, u64 woken, u64 in)
{
	host_wait_name = name;
	go_to(&consumer, 2);
	profile_switch_out(&consumer.profile, out);
	if (woken) {
		go_to(&producer, 3);
		host_now = woken;
		profile_wake(&consumer);
		go_to(&consumer, 2);
	}
	host_now = in;
	profile_switch_in(in);
}

static inline int setup(void **state)
{
	static bool ready;

	host_cpu = 0;
	host_irq_depth = 0;
	host_idle = false;
	host_syscall = OS_NO_SYSCALL;
	host_wait_addr = 0;
	in_lock = false;
	host_now = 1000;
	host_off = 0;
	host_cpu_times = (struct profile_cpu_times){ 0 };
	if (!ready) {
		profile_process_init(&producer_proc);
		profile_process_init(&consumer_proc);
		profile_init();
	}
	ready = true;
	host_sleeper = NULL;
	profile_task_exit(&producer);
	profile_task_exit(&consumer);
	go_to(&producer, 1);
	profile_task_init(&producer);
	go_to(&consumer, 1);
	profile_task_init(&consumer);
	consumer_proc.profile.waits.ended_threads = (struct profile_thread_sums){ 0 };
	host_current = &consumer;
	profile_reset();
	host_log_clear();
	table_text_restart();
	return 0;
}

static inline const struct wait_row *only_row(struct process *process)
{
	waits_pin();
	waits_make_view(process, wait_by_reason);
	waits_unpin();
	assert_int_equal(wait_view.nr_rows, 1);
	return &wait_view.rows[0];
}

#endif
