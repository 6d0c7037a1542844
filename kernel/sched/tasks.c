// SPDX-License-Identifier: BSD-2-Clause
/* SysRq t: one line for each task. */

#include <lego/sysrq.h>

#include <lego/printk.h>
#include <lego/sched.h>

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

static const char *wait_name(const struct task *task)
{
	const char *name = READ_ONCE(task->wait_name);

	return name && READ_ONCE(task->state) != TASK_RUNNING ? name : "-";
}

static void show_tasks(void)
{
	unsigned long flags = spin_lock_irqsave(&task_list_lock);
	struct task *task;

	printk("%10s %-15s %-8s %3s %12s %s\n", "pid", "comm", "state", "cpu", "time.ms",
	       "waits.for");
	list_for_each_entry(task, &task_list, all_node)
		printk("%10d %-15pE %-8s %3u %12llu %s\n", task->pid, task->comm, state_name(task),
		       task->cpu,
		       (unsigned long long)(cycles_to_ns(task_exec_cycles(task)) / NSEC_PER_MSEC),
		       wait_name(task));
	spin_unlock_irqrestore(&task_list_lock, flags);
}

SYSRQ_KEY(tasks, 't', "tasks", show_tasks);
