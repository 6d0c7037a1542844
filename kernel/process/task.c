// SPDX-License-Identifier: BSD-2-Clause
/*
 * Allocates and frees tasks and processes. A task's first reference is its own: the scheduler drops
 * it when the dead task has left its stack. A process has a reference from each thread, and one
 * from process_list until it has been waited for.
 *
 * The numbers in use are limited (pid.c) to one for each 256 KiB of memory, so that a fork bomb
 * fails (-EAGAIN) while there is still memory for others. A small forked process takes about 100
 * KiB: stack, tables, and the pages it has written. A zombie keeps its number, so it counts, too. A
 * sixteenth of the numbers is reserved for root, so that root can always start a program to kill
 * those of another user.
 */

#include <lego/sched.h>

#include "process.h"
#include "signal.h"
#include <asm/function_call.h>
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/leak.h>
#include <lego/page.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/vmap.h>

#define KTHREAD_PID_FIRST 1000000000 /* users never see these numbers */
#define BYTES_PER_TASK	  (256ULL << 10)
#define MIN_TASK_LIMIT	  64
#define MAX_TASK_LIMIT	  32000 /* nearly all of the numbers: see pid.c */

static pid_t last_kthread_pid = KTHREAD_PID_FIRST - 1;
static atomic_t nr_user_tasks;

unsigned int task_limit(void)
{
	u64 limit = page_nr_total() * PAGE_SIZE / BYTES_PER_TASK;

	return min(max(limit, (u64)MIN_TASK_LIMIT), (u64)MAX_TASK_LIMIT);
}

unsigned int task_nr_users(void)
{
	return atomic_read(&nr_user_tasks);
}

static int take_number(struct task *task)
{
	bool is_root = !current->proc || process_is_root(current->proc);

	task->pid = pid_alloc(task_limit() - (is_root ? 0 : task_limit() / 16));
	if (task->pid < 0)
		return task->pid;
	atomic_inc(&nr_user_tasks);
	return 0;
}

static void enlist(struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&task_list_lock);

	if (!task->proc)
		task->pid = ++last_kthread_pid;
	task_list_add(task);
	function_stack_alloc(task);
	spin_unlock_irqrestore(&task_list_lock, flags);
}

#define TIMER_SLACK_NS (50 * NSEC_PER_USEC) /* Linux's */

struct task *task_alloc(const char *comm, struct process *proc)
{
	struct task *task = kmalloc(sizeof(*task));
	size_t nr_bytes = sizeof(*task);
	int error = -ENOMEM;

	if (!task)
		return ERR_PTR(-ENOMEM);
	profile_set_zeroed(nr_bytes, struct task);
	memset(task, 0, nr_bytes);
	task->kernel_stack = kernel_stack_alloc();
	if (!task->kernel_stack)
		goto out_free;
	if (proc) {
		error = take_number(task);
		if (error)
			goto out_stack;
	}
	/* The first thread's number becomes that of its process. */
	task->process_pid = proc && proc->pid ? proc->pid : task->pid;
	strscpy(task->comm, comm, sizeof(task->comm));
	atomic_set(&task->refs, 1);
	task->state = TASK_UNINTERRUPTIBLE;
	task->wait_name = "start";
	task->cpu = smp_processor_id();
	task->cpus_allowed = ~0ULL;
	task->proc = proc;
	task->slack_ns = task->default_slack_ns = TIMER_SLACK_NS;
	list_init(&task->thread_node);
	list_init(&task->run_node);
	sigpending_init(&task->pending);
	list_init(&task->stop_node);
	enlist(task);
	leak_count(LEAK_TASKS, 1);
	return task;
out_stack:
	kernel_stack_free(task->kernel_stack);
out_free:
	kfree(task);
	return ERR_PTR(error);
}

void task_get(struct task *task)
{
	DEBUG_ASSERT(atomic_read(&task->refs) > 0);
	atomic_inc(&task->refs);
}

void task_put(struct task *task)
{
	unsigned long flags;

	DEBUG_ASSERT(atomic_read(&task->refs) > 0);
	if (!atomic_dec_and_test(&task->refs))
		return;
	DEBUG_ASSERT(!task->on_cpu && !task->on_rq && list_empty(&task->run_node));
	DEBUG_ASSERT(!task->process_pid || list_empty(&task->thread_node));
	flags = spin_lock_irqsave(&task_list_lock);
	task_list_remove(task);
	spin_unlock_irqrestore(&task_list_lock, flags);
	if (task->pid < KTHREAD_PID_FIRST) {
		pid_put(task->pid);
		DEBUG_ASSERT(atomic_read(&nr_user_tasks) > 0);
		atomic_dec(&nr_user_tasks);
	}
	sigpending_flush(&task->pending);
	thread_fpu_free(task);
	function_stack_free(task);
	kernel_stack_free(task->kernel_stack);
	kfree(task);
	leak_count(LEAK_TASKS, -1);
}

static u64 nr_created; /* processes */

u64 process_nr_created(void)
{
	return READ_ONCE(nr_created);
}

struct process *process_alloc(const char *comm)
{
	struct process *proc = kmalloc(sizeof(*proc));
	size_t nr_bytes = sizeof(*proc);

	if (!proc)
		return NULL;
	profile_set_zeroed(nr_bytes, struct process);
	memset(proc, 0, nr_bytes);
	strscpy(proc->comm, comm, sizeof(proc->comm));
	atomic_set(&proc->refs, 1);
	proc->start_ns = clock_monotonic_ns();
	__atomic_fetch_add(&nr_created, 1, __ATOMIC_RELAXED);
	list_init(&proc->children);
	list_init(&proc->sibling);
	list_init(&proc->waitable);
	list_init(&proc->wait_node);
	list_init(&proc->all_node);
	list_init(&proc->group_node);
	mutex_init(&proc->drop_lock);
	spin_lock_init(&proc->lock);
	spin_lock_init(&proc->group.lock);
	list_init(&proc->threads);
	list_init(&proc->thread_walks);
	list_init(&proc->stopped_threads);
	sigpending_init(&proc->pending);
	list_init(&proc->search.walk.node);
	wait_queue_init(&proc->exit_wait);
	wait_queue_init(&proc->child_wait);
	leak_count(LEAK_PROCESSES, 1);
	return proc;
}

void process_get(struct process *proc)
{
	DEBUG_ASSERT(atomic_read(&proc->refs) > 0);
	atomic_inc(&proc->refs);
}

void process_put(struct process *proc)
{
	DEBUG_ASSERT(atomic_read(&proc->refs) > 0);
	if (!atomic_dec_and_test(&proc->refs))
		return;
	DEBUG_ASSERT(!proc->nr_threads && list_empty(&proc->threads) &&
		     list_empty(&proc->all_node));
	DEBUG_ASSERT(!proc->nr_charged);
	DEBUG_ASSERT(!proc->mm && !proc->files && !proc->fs && !proc->posix_timers);
	signal_search_end(proc);
	sigpending_flush(&proc->pending);
	kfree(proc->exe_path);
	kfree(proc);
	leak_count(LEAK_PROCESSES, -1);
}

void process_for_each_thread(struct process *proc, unsigned int step,
			     void (*fn)(struct task *task, void *arg), void *arg)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct list_walk walk = { .next = proc->threads.next };

	list_add(&walk.node, &proc->thread_walks);
	for (unsigned int i = 1; walk.next != &proc->threads; i++) {
		struct task *task = list_entry(walk.next, struct task, thread_node);

		walk.next = walk.next->next;
		fn(task, arg);
		if (i % step == 0) {
			spin_unlock_irqrestore(&proc->lock, flags);
			flags = spin_lock_irqsave(&proc->lock);
		}
	}
	list_del(&walk.node);
	spin_unlock_irqrestore(&proc->lock, flags);
}

static void change_key(struct task *task, void *unused)
{
	profile_task_changed(task);
}

void process_change_task_keys(void)
{
	process_for_each_thread(current->proc, 64, change_key, NULL);
}

struct mm *process_get_mm(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct mm *mm = proc->mm;

	if (mm)
		mm_get(mm);
	spin_unlock_irqrestore(&proc->lock, flags);
	return mm;
}

#ifdef CONFIG_PROFILE_MEMORY_CHAINS
bool process_read_chains(struct process *proc, u64 pass, u64 *addr, u16 *chains, u32 *nr)
{
	bool locked = !panic_in_progress(); /* else, a CPU that was stopped may have it */
	unsigned long flags = locked ? spin_lock_irqsave(&proc->lock) : 0;
	struct mm *mm = proc->nr_threads ? proc->mm : NULL; /* stays while the lock is held */
	bool more = mm && *addr < TASK_SIZE;

	if (more && !*addr)
		more = pass ? mm->profile.memory_pass != pass : atomic_read(&mm->nr_threads) == 1;
	if (more) {
		mm->profile.memory_pass = pass;
		*nr = mm_read_chains(mm, addr, chains, *nr);
	}
	if (locked)
		spin_unlock_irqrestore(&proc->lock, flags);
	return more;
}
#endif

void process_set_mm(struct process *proc, struct mm *mm)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	DEBUG_ASSERT(!proc->mm);
	proc->mm = mm;
	mm_add_threads(mm, (int)proc->nr_threads);
	spin_unlock_irqrestore(&proc->lock, flags);
}

/*
 * Takes proc->lock, because other threads hold it when they read these pointers and take
 * references.
 */
void process_drop_mm(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct mm *mm = proc->mm;

	proc->mm = NULL;
	proc->vfork_done = true;
	DEBUG_ASSERT(proc->nr_threads <= 1);
	if (mm && proc->max_pages < READ_ONCE(mm->max_pages)) {
		proc->max_pages = READ_ONCE(mm->max_pages);
		mm_get_peak(mm, proc->peak_of_kind);
	}
	if (mm)
		mm_add_threads(mm, -(int)proc->nr_threads);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (mm)
		mm_put(mm);
	wake_up_all(&proc->exit_wait);
}

void process_drop_files(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct files *files = proc->files;
	struct fs_info *fs = proc->fs;

	proc->files = NULL;
	proc->fs = NULL;
	spin_unlock_irqrestore(&proc->lock, flags);
	if (files)
		files_put(files);
	if (fs)
		fs_info_put(fs);
}

int process_add_thread(struct process *proc, struct task *task)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	int error = 0;

	DEBUG_ASSERT(proc == current->proc && proc->nr_threads && list_empty(&task->thread_node));
	/* Threads are marked for exit with this lock held, so no new thread is missed. */
	if (proc->exiting || current->killed) {
		error = -EAGAIN;
	} else {
		list_add_tail(&task->thread_node, &proc->threads);
		proc->nr_threads++;
		proc->search.nr_left++; /* a search that goes on comes to the new thread, too */
		mm_add_threads(proc->mm, 1);
		proc->nr_staying++;
		proc->nr_own_files += task->has_own_files;
		process_get(proc);
		pid_set_owner(task->pid, proc, task);
		if (!proc->group.has_begun)
			cputime_begin_group(&proc->group);
		task->group = &proc->group;
		/* A stop or a signal may have come just before the thread was added. */
		signal_recalc(task);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return error;
}

struct task *process_find_thread(struct process *proc, pid_t tid)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct task *task = process_thread(proc, tid);

	if (task)
		task_get(task);
	spin_unlock_irqrestore(&proc->lock, flags);
	return task;
}

struct task *task_find(pid_t tid)
{
	struct process *proc;
	struct task *task;

	if (!tid) {
		task_get(current);
		return current;
	}
	proc = pid_find_process(tid);
	if (!proc)
		return NULL;
	task = process_find_thread(proc, tid);
	process_put(proc);
	return task;
}
