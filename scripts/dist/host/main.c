// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that plays a kernel with one process, one task and two system calls. It calls the hooks
 * as a kernel does, and prints a report: `make run`. `make run OPTIONS=POINTS O=build0` is level 0
 * of PORTING.md.
 */

#include "task.h"

#include <profile/syscall.h>
#include <stdio.h>
#include <time.h>

#define EBADF 9

DEFINE_PROFILE_POINT(add_up)

static struct process process = { .pid = 1, .name = "example" };
static struct task task = { .process = &process };
struct task *current = &task;

u64 clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long add_up(void)
{
	volatile long sum = 0;

	PROFILE_SCOPE(add_up);
	for (int i = 0; i < 10000; i++)
		sum = sum + i;
	return sum;
}

static long system_call(u64 nr)
{
	long ret;

	profile_syscall_enter(nr);
	ret = nr == CALL_SUM ? add_up() : -EBADF;
	profile_syscall_exit(ret);
	return ret;
}

/* What a kernel begins with (PORTING.md): points alone, and no hooks of tasks. */
static void run_level_0(void)
{
	current = NULL;
	for (int i = 0; i < 100; i++)
		add_up();
	profile_report("level 0");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	profile_init();
	if (!PF_IS_ENABLED(CONFIG_PROFILE_STRACE)) {
		run_level_0();
		return 0;
	}
	profile_process_init(&process);
	profile_task_init(&task);
	profile_task_runs(&task.profile); /* as in a scheduler, which switches to the task */
	for (int i = 0; i < 100; i++)
		system_call(CALL_SUM);
	for (int i = 0; i < 7; i++)
		system_call(CALL_FAIL);
	profile_task_exit(&task);
	profile_process_exit(&process);
	profile_process_release(&process);
	return 0;
}
