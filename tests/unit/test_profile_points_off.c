// SPDX-License-Identifier: BSD-2-Clause
/* Without the profilers, all hooks compile, do nothing and take no space. */

#include "unit.h"

DEFINE_PROFILE_POINT(lego)
DEFINE_PROFILE_POINT(other)
DEFINE_PROFILE_POINT_SLEEPS(sleeps)
PROFILE_POINT_CPU_TIME(other)

static int lego_style(int value)
{
	PROFILE_POINT_TIME(lego)
	PROFILE_POINT_TIME(other);
	int copy = value;

	profile_point_start(lego);
	if (copy)
		PROFILE_START(other);
	else
		PROFILE_LEAVE(other);
	{
		PROFILE_SCOPE(lego);
		copy++;
	}
	{
		PROFILE_SCOPE(sleeps);
		copy++;
	}
	profile_point_start_cpu(other);
	profile_point_leave_cpu(other);
	profile_point_leave(lego);
	return copy;
}

HOST_TEST(hooks_do_nothing)
{
	struct process proc = { .pid = 1 };
	struct task task = { .proc = &proc };
	struct pt_regs regs = { .pc = 1 };

	host_step = 1;
	host_now = 0;
	assert_int_equal(lego_style(1), 3);
	profile_init();
	profile_process_init(&proc);
	profile_task_init(&task);
	profile_process_exec(&proc);
	profile_syscall_enter(0);
	profile_syscall_exit(0);
	profile_tick(&regs, 0);
	profile_report("test");
	print_profile_points();
	profile_reset();
	profile_task_exit(&task);
	profile_process_exit(&proc);
	assert_int_equal(host_now, 0);
	assert_log("");
}

HOST_TEST(structs_are_empty)
{
	assert_int_equal(sizeof(struct profile_task), 0);
	assert_int_equal(sizeof(struct profile_process), 0);
}
