// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls that send signals. Permissions follow Linux's rule without capabilities: root may send
 * any signal, other users may send signals to their own processes, and SIGCONT within the session.
 * Signal 0 only checks the permission.
 */

#include <lego/signal.h>

#include "process.h"
#include "signal.h"
#include <lego/errno.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

static struct siginfo info_from_current(int code)
{
	struct siginfo info = { .si_code = code };

	info.sender.pid = current->proc->pid;
	info.sender.uid = current->proc->creds.uid;
	return info;
}

static bool may_signal(const struct process *proc, int sig)
{
	const struct credentials *mine = &current->proc->creds, *theirs = &proc->creds;

	if (proc == current->proc || !mine->euid || mine->euid == theirs->suid ||
	    mine->euid == theirs->uid || mine->uid == theirs->suid || mine->uid == theirs->uid)
		return true;
	return sig == SIGCONT && proc->sid == current->proc->sid;
}

/* Sends a signal to a thread or, if task is NULL, to the process. A zombie is no error. */
static int signal_one(struct process *proc, struct task *task, int sig, const struct siginfo *info)
{
	int error;

	if (!may_signal(proc, sig))
		return -EPERM;
	if (!sig)
		return 0;
	error = task ? signal_send_thread(task, sig, info) : signal_send(proc, sig, info);
	return error == -ESRCH && !task ? 0 : error;
}

/* Sends a signal to a thread of the process tgid; 0: of any process. */
static long signal_thread(pid_t tgid, pid_t tid, int sig, const struct siginfo *info)
{
	struct process *proc;
	struct task *task;
	long ret = -ESRCH;

	if (sig < 0 || sig > NR_SIGNALS)
		return -EINVAL;
	proc = tgid ? process_find(tgid) : pid_find_process(tid);
	if (!proc)
		return -ESRCH;
	task = process_find_thread(proc, tid);
	if (task) {
		ret = signal_one(proc, task, sig, info);
		task_put(task);
	}
	process_put(proc);
	return ret;
}

SYSCALL_DEFINE3(tgkill, pid_t, tgid, pid_t, tid, int, sig)
{
	struct siginfo info = info_from_current(SI_TKILL);

	if (tgid <= 0 || tid <= 0)
		return -EINVAL;
	return signal_thread(tgid, tid, sig, &info);
}

SYSCALL_DEFINE2(tkill, pid_t, tid, int, sig)
{
	struct siginfo info = info_from_current(SI_TKILL);

	if (tid <= 0)
		return -EINVAL;
	return signal_thread(0, tid, sig, &info);
}

/* Sends a signal to a process. As in Linux, the number of any of its threads is accepted. */
static long signal_process(pid_t pid, int sig, const struct siginfo *info)
{
	struct process *proc = pid_find_process(pid);
	long ret;

	if (!proc)
		return -ESRCH;
	ret = sig < 0 || sig > NR_SIGNALS ? -EINVAL : signal_one(proc, NULL, sig, info);
	process_put(proc);
	return ret;
}

struct broadcast {
	pid_t pgid; /* 0: all but init and the sender */
	int sig;
	const struct siginfo *info;
	long ret;
};

/*
 * The call succeeds if one process could be signalled. In a broadcast to all processes, it also
 * succeeds if permission was denied for all of them, as in Linux.
 */
static bool broadcast_one(struct process *proc, void *arg)
{
	struct broadcast *broadcast = arg;
	long error;

	if (!broadcast->pgid && (proc->pid == INIT_PID || proc == current->proc))
		return true;
	error = signal_one(proc, NULL, broadcast->sig, broadcast->info);
	if (error == -EPERM && !broadcast->pgid)
		error = 0;
	if (broadcast->ret)
		broadcast->ret = error;
	return true;
}

static bool wake_one(struct process *proc, void *more)
{
	if (signal_wake_continued(proc, 1))
		*(bool *)more = true;
	return true;
}

/* Returns true if there may be more. */
static bool wake_continued(pid_t pgid)
{
	bool more = false;

	if (pgid)
		process_for_each_member(pgid, wake_one, &more);
	else
		process_for_each(wake_one, &more);
	return more;
}

static long signal_many(pid_t pgid, int sig, const struct siginfo *info)
{
	struct broadcast broadcast = { .pgid = pgid, .sig = sig, .info = info, .ret = -ESRCH };

	if (sig < 0 || sig > NR_SIGNALS)
		return -EINVAL;
	if (pgid)
		process_for_each_member(pgid, broadcast_one, &broadcast);
	else
		process_for_each(broadcast_one, &broadcast);
	while (sig == SIGCONT && wake_continued(pgid))
		;
	return broadcast.ret;
}

void signal_send_self(int sig)
{
	struct siginfo info = info_from_current(SI_USER);

	signal_send_thread(current, sig, &info);
}

SYSCALL_DEFINE2(kill, pid_t, pid, int, sig)
{
	struct siginfo info = info_from_current(SI_USER);

	if (pid > 0)
		return signal_process(pid, sig, &info);
	if (pid == -1)
		return signal_many(0, sig, &info);
	/* No group has this number, and it cannot be negated. */
	if (pid == (pid_t)0x80000000)
		return -ESRCH;
	return signal_many(pid ? -pid : current->proc->pgid, sig, &info);
}

/*
 * A siginfo that looks like one from the kernel, kill() or tkill() can be sent only to the sender's
 * own process.
 */
static int copy_siginfo(struct siginfo *info, const struct siginfo __user *user, int sig, pid_t to)
{
	if (get_user(*info, user))
		return -EFAULT;
	info->si_signo = sig;
	if ((info->si_code >= 0 || info->si_code == SI_TKILL) && to != current->pid)
		return -EPERM;
	return 0;
}

SYSCALL_DEFINE3(rt_sigqueueinfo, pid_t, pid, int, sig, const struct siginfo __user *, uinfo)
{
	struct siginfo info;
	int error = copy_siginfo(&info, uinfo, sig, pid);

	if (error)
		return error;
	return pid > 0 ? signal_process(pid, sig, &info) : -ESRCH;
}

SYSCALL_DEFINE4(rt_tgsigqueueinfo, pid_t, tgid, pid_t, tid, int, sig, const struct siginfo __user *,
		uinfo)
{
	struct siginfo info;
	int error = copy_siginfo(&info, uinfo, sig, tid);

	if (error)
		return error;
	if (tgid <= 0 || tid <= 0)
		return -EINVAL;
	return signal_thread(tgid, tid, sig, &info);
}
