// SPDX-License-Identifier: BSD-2-Clause
/*
 * Restartable sequences (uapi/linux/rseq.h). The area of a registered thread has the number of its
 * CPU. If the thread was switched out inside the sequence that the area names, it continues at the
 * sequence's abort address. The registered signature must be directly before that address.
 */

#include <lego/sched.h>

#include "process.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define RSEQ_FLAG_UNREGISTER 1
#define RSEQ_AREA_BYTES	     32
#define RSEQ_CPU_UNINIT	     ((u32)-1)

struct rseq_area {
	u32 cpu_id_start;
	u32 cpu_id;
	u64 cs; /* struct rseq_cs *, or 0 */
	u32 flags;
	u32 node_id;
	u32 mm_cid;
	u32 end;
};

struct rseq_cs {
	u32 version;
	u32 flags;
	u64 start_ip;
	u64 post_commit_offset;
	u64 abort_ip;
};

static int write_cpu(struct task *task)
{
	struct rseq_area __user *area = task->rseq_area;
	u32 cpu = smp_processor_id();

	if (task->rseq_cpu == cpu)
		return 0;
	if (put_user(cpu, &area->cpu_id_start) || put_user(cpu, &area->cpu_id))
		return -EFAULT;
	task->rseq_cpu = cpu;
	return 0;
}

/* Returns -EINVAL if the sequence is invalid. */
static int check_cs(const struct rseq_cs *cs, u32 rseq_sig)
{
	u32 sig;

	if (cs->version || cs->start_ip >= TASK_SIZE ||
	    cs->post_commit_offset > TASK_SIZE - cs->start_ip || cs->abort_ip >= TASK_SIZE ||
	    cs->abort_ip < sizeof(sig) || cs->abort_ip - cs->start_ip < cs->post_commit_offset)
		return -EINVAL;
	if (get_user(sig, (u32 __user *)(cs->abort_ip - sizeof(sig))))
		return -EFAULT;
	return sig == rseq_sig ? 0 : -EINVAL;
}

static int abort_cs(struct task *task, struct pt_regs *regs)
{
	struct rseq_area __user *area = task->rseq_area;
	struct rseq_cs cs;
	u64 addr;

	if (get_user(addr, &area->cs))
		return -EFAULT;
	if (!addr)
		return 0;
	if (copy_from_user(&cs, (void __user *)addr, sizeof(cs)))
		return -EFAULT;
	if (check_cs(&cs, task->rseq_sig))
		return -EINVAL;
	if (put_user(0, &area->cs))
		return -EFAULT;
	if (regs->rip - cs.start_ip < cs.post_commit_offset)
		regs->rip = cs.abort_ip;
	return 0;
}

void rseq_resume(struct pt_regs *regs)
{
	struct task *task = current;

	might_sleep();
	task->rseq_event = false;
	if (!task->rseq_area)
		return;
	if (write_cpu(task) || abort_cs(task, regs))
		signal_force_fault(SIGSEGV, SI_KERNEL, 0, regs, "bad rseq area");
}

bool rseq_is_unchanged(const struct task *task)
{
	const struct rseq_area __user *area = task->rseq_area;
	u64 addr;

	ASSERT_IRQS_OFF();
	return task->rseq_cpu == smp_processor_id() && !get_user_nofault(addr, &area->cs) && !addr;
}

void rseq_copy(struct task *child, const struct task *parent)
{
	DEBUG_ASSERT(parent == current);
	child->rseq_area = parent->rseq_area;
	child->rseq_len = parent->rseq_len;
	child->rseq_sig = parent->rseq_sig;
	child->rseq_cpu = RSEQ_CPU_UNINIT;
	child->rseq_event = child->rseq_area;
}

static long unregister(struct task *task, void __user *area, u32 len, u32 sig)
{
	struct rseq_area __user *user = area;

	if (task->rseq_area != area || !area || len != task->rseq_len)
		return -EINVAL;
	if (task->rseq_sig != sig)
		return -EPERM;
	if (put_user(0, &user->cpu_id_start) || put_user(RSEQ_CPU_UNINIT, &user->cpu_id))
		return -EFAULT;
	task->rseq_area = NULL;
	task->rseq_len = 0;
	task->rseq_sig = 0;
	return 0;
}

SYSCALL_DEFINE4(rseq, void __user *, area, u32, len, int, flags, u32, sig)
{
	struct task *task = current;

	if (flags & RSEQ_FLAG_UNREGISTER) {
		if (flags & ~RSEQ_FLAG_UNREGISTER)
			return -EINVAL;
		return unregister(task, area, len, sig);
	}
	if (flags)
		return -EINVAL;
	if (task->rseq_area) {
		if (task->rseq_area != area || task->rseq_len != len)
			return -EINVAL;
		return task->rseq_sig != sig ? -EPERM : -EBUSY;
	}
	if (len != RSEQ_AREA_BYTES || !IS_ALIGNED((u64)area, RSEQ_AREA_BYTES))
		return -EINVAL;
	if (!access_ok(area, len))
		return -EFAULT;
	task->rseq_area = area;
	task->rseq_len = len;
	task->rseq_sig = sig;
	task->rseq_cpu = RSEQ_CPU_UNINIT;
	task->rseq_event = true;
	return 0;
}
