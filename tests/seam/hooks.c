// SPDX-License-Identifier: BSD-2-Clause
/*
 * The C file of a kernel in Rust (hooks.rs). The hooks' headers are C, so this file has what needs
 * them: the structures of tasks and processes, and a function for each hook that is inlined.
 */

#include "task.h"

#include <profile/syscall.h>
#include <time.h>

DEFINE_PROFILE_POINT(add_up)
PROFILE_POINT_FUNCTIONS(add_up)

static struct process process = { .pid = 1, .name = "rust" };
static struct task task = { .process = &process };
struct task *current = &task;

u64 clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct task *the_task(void)
{
	return &task;
}

struct process *the_process(void)
{
	return &process;
}

void task_runs(struct task *next)
{
	profile_task_runs(&next->profile);
}

void syscall_enter(u64 nr)
{
	profile_syscall_enter(nr);
}

void syscall_exit(long ret)
{
	profile_syscall_exit(ret);
}
