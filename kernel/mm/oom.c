// SPDX-License-Identifier: BSD-2-Clause
/*
 * The out-of-memory killer. Memory is overcommitted, so a page fault may find no free page. Then
 * the process that uses most memory, in user space and in the kernel (oom_count.c), is killed. The
 * thread that needs memory frees the victim's private pages itself and at once, because the victim
 * may be waiting for a lock that this thread holds in a system call. No thread waits for memory
 * with an mm->lock held, so this thread can always take the victim's.
 *
 * User pages and the content of pipes leave a reserve (page_is_scarce()) for page tables, system
 * calls of other threads, and exiting threads. The kernel's own allocations do not wait: they take
 * from the reserve or fail, and then the system call fails. But a thread that has taken from the
 * reserve waits here before it returns to user mode, so it takes no more than one call needs.
 *
 * Root's reserve is not counted against a process of root, so that root's shell is not killed
 * because of many small processes of another user.
 */

#include "internal.h"

#include <lego/assert.h>
#include <lego/mutex.h>
#include <lego/page.h>
#include <lego/process.h>
#include <lego/time.h>

#define RETRY_NS	10000000ULL   /* how often a waiting thread looks again */
#define KILL_TIMEOUT_NS 1000000000ULL /* how long a thread waits for a victim to exit */
#define LAST_TIMEOUT_NS 5000000000ULL /* the same, if the next victim would be init */
#define SHORTAGE_END_NS 100000000ULL  /* a later need of memory is another shortage */

static DEFINE_MUTEX(oom_lock); /* guards the rest; taken before any mm->lock */
static pid_t last_victim;
static u64 last_kill_ns;
static u64 leaving_since_ns, leaving_seen_ns; /* of processes that exit by themselves */

struct choice {
	pid_t pid, init;
	u64 bytes;
	bool others_leaving;
};

/* Returns the bytes that count against a process, at least 1. Root's reserve does not count. */
static u64 count_against(struct process *proc)
{
	u64 reserve = process_is_root(proc) ? page_root_reserve() * PAGE_SIZE : 0;
	struct oom_size size;
	u64 bytes;

	oom_count(proc, &size);
	bytes = size.user_bytes + size.kernel_bytes;
	return bytes > reserve ? bytes - reserve : 1;
}

/*
 * Returns true if the process may still hold memory. Its mm and files are freed after they are
 * removed from it, and before it is a zombie.
 */
static bool holds_memory(struct process *proc)
{
	return !READ_ONCE(proc->zombie);
}

static void consider(struct process *proc, struct choice *choice)
{
	u64 bytes = 0;

	ASSERT_HELD(&oom_lock);
	if (!READ_ONCE(proc->mm) || READ_ONCE(proc->exiting))
		choice->others_leaving |= holds_memory(proc) && proc->pid != INIT_PID;
	else if (proc->pid == INIT_PID)
		choice->init = proc->pid;
	else
		bytes = count_against(proc);
	if (bytes > choice->bytes) {
		choice->bytes = bytes;
		choice->pid = proc->pid;
	}
}

/* Returns true if a victim is still exiting. */
static bool kill_in_progress(u64 timeout_ns)
{
	struct process *proc;
	bool there;

	ASSERT_HELD(&oom_lock);
	if (!last_victim || clock_monotonic_ns() - last_kill_ns > timeout_ns)
		return false;
	proc = process_find(last_victim);
	if (!proc)
		return false;
	there = holds_memory(proc);
	process_put(proc);
	return there;
}

struct kill_users {
	const struct mm *mm;
	bool init_uses_it;
};

/* For process_for_each(): kills all processes that share the victim's memory, except init. */
static bool kill_user(struct process *proc, void *arg)
{
	struct kill_users *users = arg;

	ASSERT_HELD(&process_tree_lock);
	if (READ_ONCE(proc->mm) != users->mm)
		return true;
	if (proc->pid == INIT_PID)
		users->init_uses_it = true;
	else
		process_kill(proc, SIGKILL);
	return true;
}

static void take_pages(struct mm *mm)
{
	struct vma *vma;

	mm_lock_write(mm);
	mm->gets_no_pages = true;
	for_each_vma(vma, mm) {
		if (!(vma->flags & MAP_SHARED))
			pages_unmap(mm, vma, vma->start, vma->end);
	}
	mm_unlock_write(mm);
}

static void kill(struct process *victim)
{
	struct mm *mm = process_get_mm(victim);
	struct kill_users users = { mm, false };
	u32 uid = READ_ONCE(victim->creds.uid);
	struct oom_size size;

	ASSERT_HELD(&oom_lock);
	if (!mm)
		return; /* it has just exited */
	oom_count(victim, &size);
	user_printk(uid, 0,
		    "out of memory: killed %pE[%d], %llu KiB: %llu of its own, %llu in the kernel, "
		    "of user %u\n",
		    victim->comm, victim->pid,
		    (unsigned long long)(size.user_bytes + size.kernel_bytes) / 1024,
		    (unsigned long long)size.user_bytes / 1024,
		    (unsigned long long)size.kernel_bytes / 1024, uid);
	last_victim = victim->pid;
	last_kill_ns = clock_monotonic_ns();
	process_kill(victim, SIGKILL);
	process_for_each(kill_user, &users);
	if (!users.init_uses_it || victim->pid == INIT_PID)
		take_pages(mm);
	mm_put(mm);
}

/*
 * Returns true if processes that exit by themselves, or were killed by others, should be waited for
 * before one is killed for memory: the greediest may just be among them. The wait is bounded for
 * each kill, because a user may start and end processes all the time.
 */
static bool leaving_may_suffice(void)
{
	u64 now = clock_monotonic_ns();

	ASSERT_HELD(&oom_lock);
	if (now - leaving_seen_ns > SHORTAGE_END_NS)
		leaving_since_ns = now;
	leaving_seen_ns = now;
	return now - max(leaving_since_ns, last_kill_ns) < KILL_TIMEOUT_NS;
}

/* Kills the process that uses most memory. Returns false if there is none. */
static bool kill_greediest(void)
{
	struct process *victim;
	struct choice choice = { 0 };
	pid_t pid = 0;

	ASSERT_HELD(&oom_lock);
	while ((victim = process_next(pid))) {
		pid = victim->pid;
		consider(victim, &choice);
		process_put(victim);
	}
	if (choice.others_leaving && leaving_may_suffice())
		return true;
	if (!choice.pid && choice.others_leaving && kill_in_progress(LAST_TIMEOUT_NS))
		return true;
	if (!choice.pid)
		choice.pid = choice.init;
	if (!choice.pid)
		return choice.others_leaving;
	victim = process_find(choice.pid);
	if (victim) {
		kill(victim);
		process_put(victim);
	}
	return true;
}

bool oom_wait(void)
{
	bool hope = true;

	might_sleep();
	ASSERT_NOT_HELD(&current->mm->lock);
	if (task_killed(current))
		return false;
	mutex_lock(&oom_lock);
	if (page_is_scarce() && !kill_in_progress(KILL_TIMEOUT_NS))
		hope = kill_greediest();
	mutex_unlock(&oom_lock);
	if (!hope)
		return false;
	if (page_is_scarce() && !task_killed(current)) {
		current->state = TASK_KILLABLE;
		task_waits_for("memory", 0);
		schedule_timeout_ns(RETRY_NS);
	}
	return !task_killed(current);
}

void oom_wait_before_user(void)
{
	current->memory_short = false;
	while (page_is_scarce() && oom_wait())
		;
}
