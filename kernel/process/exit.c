// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ends threads. Every thread ends itself, in task_exit(), on its way to user mode or in exit(2). To
 * end another thread, a thread marks it as killed and kicks it: the other one wakes from an
 * interruptible sleep, or its CPU is interrupted, and then it finds the mark.
 */

#include <lego/sched.h>

#include "process.h"
#include "signal.h"
#include <asm/irqflags.h>
#include <lego/assert.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/files_out.h>
#include <lego/fs.h>
#include <lego/futex.h>
#include <lego/printk.h>
#include <lego/syscall.h>
#include <lego/sysrq.h>
#include <lego/tty.h>
#include <lego/uaccess.h>
#include <profile/memory.h>

/* Returns the exit status that a shell would print for a wait status. */
static int shell_status(int status)
{
	int signal = status & 0x7f;

	return signal ? 128 + signal : status >> 8 & 0xff;
}

/*
 * Clears the word for which pthread_join() of glibc and musl waits, and wakes its waiters. Errors
 * are ignored: a bad address is the program's own problem.
 */
static void clear_tid(struct task *task)
{
	u32 __user *addr = task->clear_child_tid;

	if (!addr)
		return;
	task->clear_child_tid = NULL;
	/* No other thread is left that could read the word. */
	if (atomic_read(&task->mm->refs) == 1 && READ_ONCE(task->proc->nr_threads) == 1)
		return;
	if (put_user(0, addr) == 0)
		futex_wake(addr, 1);
}

static void leave_mm(struct task *task)
{
	struct mm *mm = task->mm;
	unsigned long flags = local_irq_save();

	task->mm = NULL;
	mm_switch(mm, NULL);
	local_irq_restore(flags);
}

/* Returns true for the last thread of a process that begins to leave it. */
static bool is_last_to_leave(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool last = --proc->nr_staying == 0;

	spin_unlock_irqrestore(&proc->lock, flags);
	return last;
}

/*
 * Frees what the process has, in its last thread, so that this is part of its CPU time. Its report
 * needs the areas of its memory.
 */
static void drop_resources(struct process *proc)
{
	wait_event(&proc->exit_wait, READ_ONCE(proc->nr_threads) == 1);
	signal_stop_timers(proc);
	posix_timers_delete(proc);
	profile_memory_ends(proc);
	mm_drop_pages(proc->mm);
	process_drop_files(proc);
}

/*
 * Leaves a thread's CPU time and counts to its process. What it does from now on is the kernel's.
 * All of this is with the lock held that readers of the process's time take, or that time could go
 * back.
 */
static void end_time(struct process *proc, struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	cputime_set_owner(CPUTIME_EXIT);
	cputime_end_thread(&proc->group);
	WRITE_ONCE(task->is_gone, true);
	spin_unlock_irqrestore(&proc->lock, flags);
}

/* Ends the accounts of a thread, its profile and samples. */
static void end_account(struct task *task)
{
	if (task->proc) {
		end_time(task->proc, task);
	} else {
		cputime_set_owner(CPUTIME_EXIT);
		WRITE_ONCE(task->is_gone, true);
	}
	profile_task_changed(task);
	if (!task->proc)
		cputime_end_kernel_thread(task);
	profile_task_exit(task);
}

/* For an assertion. Returns true if nr_threads is right. proc->lock is held. */
static __maybe_unused bool threads_are_counted(const struct process *proc)
{
	const struct task *task;
	unsigned int nr = 0;

	list_for_each_entry(task, &proc->threads, thread_node)
		nr++;
	return nr && nr == proc->nr_threads;
}

/* Removes a thread from its process, which may change at any time from then on. */
static void leave_process(struct process *proc, struct task *task, int status)
{
	unsigned long flags;
	bool last;

	signal_discard_in_steps(proc, &task->pending);
	flags = spin_lock_irqsave(&proc->lock);
	/*
	 * Unless exit_group() or a signal ended all threads, the first thread's status is the
	 * process's.
	 */
	if (!proc->exiting && task->pid == proc->pid)
		proc->exit_status = status;
	fault_counts_add(&proc->exited_faults, &task->faults);
	io_counts_sum(&proc->summed_io, &task->io, &task->summed_io);
	DEBUG_ASSERT(task == current && threads_are_counted(proc));
	list_del_walked(&task->thread_node, &proc->thread_walks);
	/* With the lock held, because timers may own some of these signals. */
	signal_discard(&task->pending, ~0ULL);
	pid_set_owner(task->pid, task->pid == proc->pid ? proc : NULL, NULL);
	mm_add_threads(proc->mm, -1);
	last = --proc->nr_threads == 0;
	if (!last)
		user_uncharge_locked(proc, 1);
	else
		signal_end_stop(proc);
	spin_unlock_irqrestore(&proc->lock, flags);
	wake_up_all(&proc->exit_wait);
	if (last)
		late_kill_end(proc);
	else
		signal_thread_gone(proc);
}

static bool count_unreported(struct process *proc, void *nr)
{
	if (!READ_ONCE(proc->reported))
		++*(unsigned int *)nr;
	return true;
}

void process_end_reports(void)
{
	unsigned int nr = 0;

	might_sleep();
	sysrq_finish();
	profile_end_reports();
	process_for_each(count_unreported, &nr);
	if (nr)
		printk("processes that end without a report: %u\n", nr);
	files_out_write();
}

/* Ends the process. Prints the report first, so that it is there when the parent's wait returns. */
static void end_process(struct process *proc)
{
	might_sleep();
	DEBUG_ASSERT(!proc->nr_threads && list_empty(&proc->threads));
	profile_process_exit(proc);
	WRITE_ONCE(proc->reported, true);
	process_drop_mm(proc);
	if (proc->pid == INIT_PID) {
		process_end_reports();
		machine_power_off(shell_status(proc->exit_status));
	}
	if (proc->sid == proc->pid && READ_ONCE(proc->tty))
		tty_session_exit(proc);
	family_exit(proc);
}

/* Ends the process of a thread, too, if it is the last. */
static void exit_process(struct process *proc, struct task *task, int status)
{
	bool last = is_last_to_leave(proc);

	leave_mm(task);
	if (last)
		drop_resources(proc);
	end_account(task);
	leave_process(proc, task, status);
	if (last)
		end_process(proc);
	process_put(proc);
}

void task_exit(int status)
{
	struct task *task = current;
	struct process *proc = task->proc;

	ASSERT_PROCESS_CONTEXT();
	BUG_ON(task == sched_idle_task(smp_processor_id()));
	lock_check_leave("exit");
	local_irq_enable();
	if (proc) {
		task_leave_files(task);
		futex_exit(task);
		clear_tid(task);
	}
	profile_trace(sched_process_exit, task);
	if (proc)
		exit_process(proc, task, status);
	else
		end_account(task);
	local_irq_disable();
	task->state = TASK_DEAD;
	schedule();
	BUG();
}

#define KILL_STEPS 32 /* with interrupts off: each takes up to 1,200 instructions */

/*
 * Releases the lock for a moment after a number of threads. New threads, which those that are not
 * killed yet may create meanwhile, are the last in the list.
 */
static void kill_threads(struct process *proc, const struct task *except, unsigned long flags)
{
	struct list_walk walk = { .next = proc->threads.next };

	ASSERT_HELD(&proc->lock);
	list_add(&walk.node, &proc->thread_walks);
	for (unsigned int i = 1; walk.next != &proc->threads; i++) {
		struct task *task = list_entry(walk.next, struct task, thread_node);

		walk.next = walk.next->next;
		if (task != except) {
			WRITE_ONCE(task->killed, true);
			/* Takes a lock, so the mark is visible before the task's state is read. */
			task_kick_fatal(task);
		}
		if (i % KILL_STEPS == 0) {
			spin_unlock_irqrestore(&proc->lock, flags);
			spin_lock_irqsave(&proc->lock);
		}
	}
	list_del(&walk.node);
}

void process_kill(struct process *proc, int status)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	if (!proc->exiting) {
		proc->exiting = true;
		proc->exit_status = status;
		if (status & 0x7f && proc->nr_threads)
			late_kill_watch(proc);
	}
	kill_threads(proc, NULL, flags);
	spin_unlock_irqrestore(&proc->lock, flags);
}

int process_kill_others(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	int error = 0;

	DEBUG_ASSERT(proc == current->proc);
	/* If two threads call this at once, the first one kills the second. */
	if (proc->exiting || current->killed)
		error = -EAGAIN;
	else
		kill_threads(proc, current, flags);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (error)
		return error;
	return wait_event_killable(&proc->exit_wait, READ_ONCE(proc->nr_threads) == 1);
}

#define MAX_FAULT_LINES 10 /* of a user in five seconds, as in Linux */

void process_fault(int signal, const char *why, u64 addr, struct pt_regs *regs)
{
	ASSERT_PROCESS_CONTEXT();
	user_printk(current->proc->creds.uid, MAX_FAULT_LINES,
		    "%pE[%d]: %s at %llx, ip %llx sp %llx, signal %d\n", current->comm,
		    current->pid, why, (unsigned long long)addr, (unsigned long long)regs->rip,
		    (unsigned long long)regs->rsp, signal);
	process_kill(current->proc, signal);
}

static noinline void work_before_user(struct pt_regs *regs)
{
	struct task *task = current;

	do {
		local_irq_enable();
		if (READ_ONCE(task->killed))
			task_exit(task->proc->exit_status);
		if (task->memory_short)
			oom_wait_before_user();
		else if (need_resched())
			schedule();
		else if (task->signal_pending)
			signal_deliver(regs);
		else
			rseq_resume(regs);
		local_irq_disable();
	} while (has_user_work(task));
}

/* Returns whether there is work. Whoever calls this returns by IRET, which loads any frame. */
static bool begin_return(struct task *task)
{
	ASSERT_IRQS_OFF();
	lock_check_leave("user mode");
	task->has_new_frame = false;
	return has_user_work(task);
}

void exit_to_user_mode(struct pt_regs *regs)
{
	if (begin_return(current))
		work_before_user(regs);
}

/* Apart, so that the usual case saves fewer registers. */
static noinline void work_after_call(struct task *task, struct pt_regs *regs)
{
	profile_return_begin(&task->profile);
	work_before_user(regs);
	profile_return_end(&task->profile);
}

bool exit_call_to_user_mode(struct pt_regs *regs)
{
	struct task *task = current;

	/* The most frequent work: the call has slept, and rseq has nothing to do about it. */
	if (task->rseq_event && rseq_is_unchanged(task)) {
		task->rseq_event = false;
		if (!has_user_work(task))
			return true;
	}
	if (begin_return(task))
		work_after_call(task, regs);
	return false;
}

SYSCALL_DEFINE1(exit, int, code)
{
	task_exit((code & 0xff) << 8);
}

SYSCALL_DEFINE1(exit_group, int, code)
{
	process_kill(current->proc, (code & 0xff) << 8);
	task_exit(current->proc->exit_status);
}
