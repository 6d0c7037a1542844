// SPDX-License-Identifier: BSD-2-Clause
/* Thread and process IDs, and the addresses that a thread's C library registers. */

#include <lego/sched.h>

#include "process.h"
#include <lego/errno.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define ARCH_GET_GS 0x1004

#define ROBUST_LIST_HEAD_BYTES 24

SYSCALL_DEFINE0(getpid)
{
	return current->proc->pid;
}

SYSCALL_DEFINE0(gettid)
{
	return current->pid;
}

SYSCALL_DEFINE1(set_tid_address, u32 __user *, addr)
{
	current->clear_child_tid = addr;
	return current->pid;
}

SYSCALL_DEFINE2(set_robust_list, void __user *, head, size_t, len)
{
	if (len != ROBUST_LIST_HEAD_BYTES)
		return -EINVAL;
	current->robust_list = head;
	return 0;
}

SYSCALL_DEFINE3(get_robust_list, pid_t, tid, void __user *__user *, head, size_t __user *, len)
{
	struct task *task = task_find(tid);
	void __user *list;
	u32 version;
	bool allowed;

	if (!task)
		return -ESRCH;
	allowed = process_may_inspect(task->proc, &version);
	list = READ_ONCE(task->robust_list);
	allowed &= process_was_inspected(task->proc, version);
	task_put(task);
	if (!allowed)
		return -EPERM;
	if (put_user(ROBUST_LIST_HEAD_BYTES, len))
		return -EFAULT;
	return put_user(list, head);
}

/*
 * Accepts only user addresses, because the NMI entry recognizes the kernel by the sign of the GS
 * base.
 */
SYSCALL_DEFINE2(arch_prctl, int, code, unsigned long, addr)
{
	struct task *task = current;

	switch (code) {
	case ARCH_SET_FS:
		if (addr >= TASK_SIZE)
			return -EPERM;
		thread_set_fs_base(task, addr);
		return 0;
	case ARCH_SET_GS:
		if (addr >= TASK_SIZE)
			return -EPERM;
		thread_set_gs_base(task, addr);
		return 0;
	case ARCH_GET_FS:
		return put_user(task->thread.fs_base, (u64 __user *)addr);
	case ARCH_GET_GS:
		return put_user(task->thread.gs_base, (u64 __user *)addr);
	default:
		return -EINVAL;
	}
}
