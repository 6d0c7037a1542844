// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sysrq.h>

#include <lego/printk.h>
#include <lego/sched.h>

/* SysRq t: one line for each task. */

static const char *state_name(const struct task *task)
{
	if (task->on_cpu)
		return "on CPU";
	switch (task->state) {
	case TASK_RUNNING:
		return "runnable";
	case TASK_INTERRUPTIBLE:
		return "sleeping";
	case TASK_UNINTERRUPTIBLE:
	case TASK_KILLABLE:
		return "blocked";
	case TASK_STOPPED:
		return "stopped";
	default:
		return "dead";
	}
}

static void show_tasks(void)
{
	unsigned long flags = spin_lock_irqsave(&task_list_lock);
	struct task *task;

	printk("%10s %-15s %-8s %3s %12s\n", "pid", "comm", "state", "cpu", "time.ms");
	list_for_each_entry(task, &task_list, all_node)
		printk("%10d %-15s %-8s %3u %12llu\n", task->pid, task->comm, state_name(task),
		       task->cpu,
		       (unsigned long long)(cycles_to_ns(task_exec_cycles(task)) / NSEC_PER_MSEC));
	spin_unlock_irqrestore(&task_list_lock, flags);
}

SYSRQ_KEY(tasks, 't', "tasks", show_tasks);
