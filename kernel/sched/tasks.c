// SPDX-License-Identifier: BSD-2-Clause
/* The list of all tasks. SysRq t: one line for each task. */

#include <lego/sysrq.h>

#include <lego/assert.h>
#include <lego/printk.h>
#include <lego/sched.h>

DEFINE_SPINLOCK(task_list_lock);
LIST_HEAD(task_list);
LIST_HEAD(kernel_threads);
static LIST_HEAD(walks);

#define NR_STEPS 4 /* with interrupts off: a line of the log takes thousands of instructions */

void task_list_add(struct task *task)
{
	ASSERT_HELD(&task_list_lock);
	list_add_tail(&task->all_node, &task_list);
	if (!task->proc)
		list_add_tail(&task->thread_node, &kernel_threads);
}

void task_list_remove(struct task *task)
{
	ASSERT_HELD(&task_list_lock);
	list_del_walked(&task->all_node, &walks);
	if (!task->process_pid)
		list_del(&task->thread_node);
}

void task_for_each(void (*fn)(struct task *task))
{
	unsigned long flags = spin_lock_irqsave(&task_list_lock);
	struct list_walk walk = { .next = task_list.next };

	list_add(&walk.node, &walks);
	for (unsigned int i = 1; walk.next != &task_list; i++) {
		struct task *task = list_entry(walk.next, struct task, all_node);

		walk.next = walk.next->next;
		fn(task);
		if (i % NR_STEPS == 0) {
			spin_unlock_irqrestore(&task_list_lock, flags);
			spin_lock_irqsave(&task_list_lock);
		}
	}
	list_del(&walk.node);
	spin_unlock_irqrestore(&task_list_lock, flags);
}

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

static void show_task(struct task *task)
{
	printk("%10d %-15pE %-8s %3u %12llu %s\n", task->pid, task->comm, state_name(task),
	       task->cpu,
	       (unsigned long long)(cycles_to_ns(task_exec_cycles(task)) / NSEC_PER_MSEC),
	       wait_name(task));
}

static void show_tasks(void)
{
	printk("%10s %-15s %-8s %3s %12s %s\n", "pid", "comm", "state", "cpu", "time.ms",
	       "waits.for");
	task_for_each(show_task);
}

SYSRQ_KEY(tasks, 't', "tasks", show_tasks);
