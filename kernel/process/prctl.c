// SPDX-License-Identifier: BSD-2-Clause
/* prctl and personality: settings of a process, most of which are only stored and read back. */

#include <lego/process.h>

#include "process.h"
#include <lego/errno.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define PR_SET_PDEATHSIG       1
#define PR_GET_PDEATHSIG       2
#define PR_GET_DUMPABLE	       3
#define PR_SET_DUMPABLE	       4
#define PR_GET_KEEPCAPS	       7
#define PR_SET_KEEPCAPS	       8
#define PR_GET_TIMING	       13
#define PR_SET_TIMING	       14
#define PR_SET_NAME	       15
#define PR_GET_NAME	       16
#define PR_GET_SECCOMP	       21
#define PR_CAPBSET_READ	       23
#define PR_GET_TSC	       25
#define PR_SET_TSC	       26
#define PR_GET_SECUREBITS      27
#define PR_SET_TIMERSLACK      29
#define PR_GET_TIMERSLACK      30
#define PR_SET_CHILD_SUBREAPER 36
#define PR_GET_CHILD_SUBREAPER 37
#define PR_SET_NO_NEW_PRIVS    38
#define PR_GET_NO_NEW_PRIVS    39
#define PR_GET_TID_ADDRESS     40
#define PR_SET_THP_DISABLE     41
#define PR_GET_THP_DISABLE     42

#define PR_TIMING_STATISTICAL 0
#define PR_TSC_ENABLE	      1
#define SECURE_KEEP_CAPS      BIT(4)

/* Names a thread. The first thread's name is also that of the process. */
static void name_task(struct task *task, const char *comm)
{
	strscpy_pad(task->comm, comm, sizeof(task->comm));
	profile_task_changed(task);
	profile_trace_task(task);
	if (task->pid == task->proc->pid)
		strscpy_pad(task->proc->comm, comm, sizeof(task->proc->comm));
}

int process_name_thread(struct process *proc, pid_t tid, const char *name)
{
	struct task *task;

	if (proc != current->proc)
		return -EINVAL;
	task = process_find_thread(proc, tid);
	if (!task)
		return -ESRCH;
	name_task(task, name);
	task_put(task);
	return 0;
}

static long set_name(const char __user *name)
{
	char comm[TASK_COMM_LEN] = { 0 };
	ssize_t len = strncpy_from_user(comm, name, sizeof(comm));

	if (len < 0 && len != -ENAMETOOLONG)
		return len;
	comm[sizeof(comm) - 1] = '\0';
	name_task(current, comm);
	return 0;
}

static long get_name(char __user *name)
{
	char comm[TASK_COMM_LEN] = { 0 };

	strscpy(comm, current->comm, sizeof(comm));
	return copy_to_user(name, comm, sizeof(comm));
}

static long set_death_signal(unsigned long sig)
{
	if (sig > NR_SIGNALS)
		return -EINVAL;
	WRITE_ONCE(current->proc->death_signal, (int)sig);
	return 0;
}

static long set_flag(bool *flag, bool value)
{
	WRITE_ONCE(*flag, value);
	return 0;
}

static long set_dumpable(struct process *proc, bool dumpable)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	if (dumpable)
		WRITE_ONCE(proc->not_dumpable, false);
	else
		process_close_locked(proc);
	spin_unlock_irqrestore(&proc->lock, flags);
	return 0;
}

/* Sets the timer slack. 0: to the value of the thread that created this one. */
static long set_timer_slack(u64 slack_ns)
{
	current->slack_ns = (s64)slack_ns > 0 ? slack_ns : current->default_slack_ns;
	return 0;
}

SYSCALL_DEFINE5(prctl, int, option, unsigned long, arg, unsigned long, arg3, unsigned long, arg4,
		unsigned long, arg5)
{
	struct process *proc = current->proc;

	switch (option) {
	case PR_SET_NAME:
		return set_name((const char __user *)arg);
	case PR_GET_NAME:
		return get_name((char __user *)arg);
	case PR_SET_PDEATHSIG:
		return set_death_signal(arg);
	case PR_GET_PDEATHSIG:
		return put_user(READ_ONCE(proc->death_signal), (int __user *)arg);
	case PR_SET_DUMPABLE:
		return arg > 1 ? -EINVAL : set_dumpable(proc, arg);
	case PR_GET_DUMPABLE:
		return !READ_ONCE(proc->not_dumpable);
	case PR_SET_NO_NEW_PRIVS:
		return arg != 1 || arg3 || arg4 || arg5 ? -EINVAL :
							  set_flag(&proc->no_new_privs, true);
	case PR_GET_NO_NEW_PRIVS:
		return arg || arg3 || arg4 || arg5 ? -EINVAL : READ_ONCE(proc->no_new_privs);
	case PR_SET_KEEPCAPS:
		return arg > 1 ? -EINVAL : set_flag(&proc->keeps_caps, arg);
	case PR_GET_KEEPCAPS:
		return READ_ONCE(proc->keeps_caps);
	case PR_GET_SECUREBITS:
		return READ_ONCE(proc->keeps_caps) ? SECURE_KEEP_CAPS : 0;
	case PR_SET_TIMERSLACK:
		return set_timer_slack(arg);
	case PR_GET_TIMERSLACK:
		return (long)current->slack_ns;
	case PR_SET_THP_DISABLE:
		return arg3 || arg4 || arg5 ? -EINVAL : set_flag(&proc->no_large_pages, arg);
	case PR_GET_THP_DISABLE:
		return arg || arg3 || arg4 || arg5 ? -EINVAL : READ_ONCE(proc->no_large_pages);
	case PR_SET_TIMING:
		return arg == PR_TIMING_STATISTICAL ? 0 : -EINVAL;
	case PR_GET_TIMING:
		return PR_TIMING_STATISTICAL;
	case PR_SET_CHILD_SUBREAPER:
		return set_flag(&proc->is_subreaper, arg);
	case PR_GET_CHILD_SUBREAPER:
		return put_user((int)READ_ONCE(proc->is_subreaper), (int __user *)arg);
	case PR_CAPBSET_READ:
		return arg > LAST_CAPABILITY ? -EINVAL : 1;
	case PR_GET_TSC:
		return put_user(PR_TSC_ENABLE, (int __user *)arg);
	case PR_SET_TSC: /* reading the TSC cannot be forbidden here */
		return arg == PR_TSC_ENABLE ? 0 : -EINVAL;
	case PR_GET_SECCOMP:
		return 0;
	case PR_GET_TID_ADDRESS:
		return put_user((u64)current->clear_child_tid, (u64 __user *)arg);
	default:
		return -EINVAL;
	}
}

#define ADDR_NO_RANDOMIZE 0x0040000
#define PERSONALITY_QUERY 0xffffffff

/*
 * Only Linux's own personality is supported. Addresses are the same in each run of a program (see
 * randomize_va_space), so the kernel always does what ADDR_NO_RANDOMIZE asks for. Returns the old
 * value.
 */
SYSCALL_DEFINE1(personality, u32, persona)
{
	u32 old = current->personality;

	if (persona == PERSONALITY_QUERY)
		return old;
	if (persona & ~ADDR_NO_RANDOMIZE)
		return -EINVAL;
	current->personality = persona;
	return old;
}
