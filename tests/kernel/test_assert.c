// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests of assertions. Each test does to its own objects what a faulty kernel would do: it omits a
 * lock, or a decrement, or uses a wrong order. It expects the assertion that finds the fault, and
 * then repairs the object.
 */

#include <lego/selftest.h>

#include "../../kernel/fs/inode.h"
#include "../../kernel/mm/internal.h"
#include "../../kernel/process/process.h"
#include "../../kernel/process/signal.h"
#include "../../kernel/profile/samples/samples.h"
#include "../../kernel/profile/strace/strace.h"
#include "../../kernel/sched/rq.h"
#include "test_mm.h"

#include <lego/assert.h>
#include <lego/mutex.h>
#include <lego/page.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/timer.h>

/* Expects this to be the first assertion that failed since the last check; NULL expects none. */
#define EXPECT_ASSERTION(want)                                                            \
	do {                                                                              \
		const char *_got = assert_trapped(), *_want = (want);                     \
		if (_want ? !_got || strcmp(_got, _want) : _got != NULL)                  \
			selftest_fail(__FILE__, __LINE__, _got ?: "no assertion failed"); \
	} while (0)

static struct mm *make_mm(void)
{
	struct mm *mm = mm_alloc();

	if (mm && map_fixed(mm, USER_BASE, 2 * PAGE_SIZE)) {
		mm_put(mm);
		return NULL;
	}
	return mm;
}

SELFTEST(assert, areas_without_a_lock)
{
	struct mm *mm = make_mm();

	ASSERT(mm);
	assert_set_trap(true);
	EXPECT(vma_find(mm, USER_BASE));
	EXPECT_ASSERTION("vma_find_from: mm->lock is held");
	rw_mutex_lock_read(&mm->lock);
	EXPECT(vma_find(mm, USER_BASE));
	EXPECT_ASSERTION(NULL);
	EXPECT_EQ(vma_split_range(mm, 0, TASK_SIZE), 0);
	EXPECT_ASSERTION("vma_split_range: mm->lock is held for writing");
	rw_mutex_unlock_read(&mm->lock);
	mm_put(mm);
	EXPECT_ASSERTION(NULL);
	assert_set_trap(false);
}

SELFTEST(assert, areas_that_overlap)
{
	struct vma *vma = kzalloc(sizeof(*vma));
	struct mm *mm = make_mm();

	ASSERT(mm && vma);
	*vma = (struct vma){ .start = USER_BASE + PAGE_SIZE,
			     .end = USER_BASE + 3 * PAGE_SIZE,
			     .flags = MAP_PRIVATE };
	assert_set_trap(true);
	rw_mutex_lock_write(&mm->lock);
	vma_insert(mm, vma, vma_find_from(mm, vma->start));
	rw_mutex_unlock_write(&mm->lock);
	EXPECT_ASSERTION("vma_insert: vma_range_free(mm, vma->start, vma->end)");
	mm_put(mm);
	EXPECT_ASSERTION("mm_put: vma_tree_is_sound(&mm->areas, mm->nr_vmas)");
	assert_set_trap(false);
}

SELFTEST(assert, pages_that_are_free)
{
	struct page page = { .refs = ATOMIC_INIT(0) };

	assert_set_trap(true);
	page_get(&page);
	EXPECT_ASSERTION("page_get: atomic_read(&page->refs) > 0");
	page_get(&page);
	EXPECT_ASSERTION(NULL);
	assert_set_trap(false);
}

SELFTEST(assert, run_queue)
{
	static struct rq rq;
	static struct task task;

	spin_lock_init(&rq.lock);
	list_init(&rq.queue);
	list_init(&task.run_node);
	task.cpu = &rq - rqs;
	assert_set_trap(true);
	rq_enqueue(&rq, &task, &rq.queue);
	EXPECT_ASSERTION("rq_enqueue: &rq->lock is held");
	spin_lock(&rq.lock);
	rq_dequeue(&rq, &task);
	EXPECT_ASSERTION(NULL);
	task.on_rq = true; /* wrong order: queued again before it is dequeued */
	rq_enqueue(&rq, &task, &rq.queue);
	EXPECT_ASSERTION("rq_enqueue: !task->on_rq && list_empty(&task->run_node)");
	rq.nr_queued = 0;
	rq_dequeue(&rq, &task);
	EXPECT_ASSERTION("rq_dequeue: task->on_rq && rq->nr_queued");
	spin_unlock(&rq.lock);
	assert_set_trap(false);
}

SELFTEST(assert, waiter_of_another_task)
{
	static struct task other;
	struct waiter waiter = WAITER_INIT(waiter, false);
	struct wait_queue wq;

	wait_queue_init(&wq);
	assert_set_trap(true);
	prepare_wait(&wq, &waiter, TASK_UNINTERRUPTIBLE);
	waiter.task = &other;
	finish_wait(&wq, &waiter);
	EXPECT_ASSERTION("finish_wait: waiter->task == current");
	assert_set_trap(false);
}

static bool timer_done;

static void try_in_interrupt(struct timer *timer)
{
	static DEFINE_MUTEX(mutex);

	if (mutex_trylock(&mutex))
		mutex_unlock(&mutex);
	WRITE_ONCE(timer_done, true);
}

SELFTEST(assert, mutex_in_an_interrupt)
{
	struct timer timer;

	timer_done = false;
	assert_set_trap(true);
	timer_setup(&timer, try_in_interrupt);
	timer_start(&timer, clock_monotonic_ns());
	/* Spins, so that the interrupt hits this thread: the trap is per thread. */
	while (!READ_ONCE(timer_done))
		cpu_relax();
	timer_cancel(&timer);
	EXPECT_ASSERTION("mutex_trylock: process context");
	assert_set_trap(false);
}

SELFTEST(assert, threads_not_counted)
{
	struct process *proc = process_alloc("mutant");

	ASSERT(proc);
	assert_set_trap(true);
	process_get(proc);
	process_put(proc);
	EXPECT_ASSERTION(NULL);
	proc->nr_threads = 1;
	process_put(proc);
	EXPECT_ASSERTION("process_put: !proc->nr_threads && list_empty(&proc->threads) && "
			 "list_empty(&proc->all_node)");
	assert_set_trap(false);
}

SELFTEST(assert, process_put_too_often)
{
	static struct process proc;

	assert_set_trap(true);
	process_put(&proc);
	EXPECT_ASSERTION("process_put: atomic_read(&proc->refs) > 0");
	process_get(&proc);
	EXPECT_ASSERTION("process_get: atomic_read(&proc->refs) > 0");
	assert_set_trap(false);
}

SELFTEST(assert, signals)
{
	struct process *proc = process_alloc("mutant");
	unsigned long flags;

	ASSERT(proc);
	proc->rlimits[RLIMIT_SIGPENDING].cur = 1;
	assert_set_trap(true);
	EXPECT_EQ(signal_enqueue(proc, &proc->pending, SIGCHLD, NULL), 0);
	EXPECT_ASSERTION("signal_enqueue: &proc->lock is held");
	sigpending_flush(&proc->pending);
	EXPECT_ASSERTION(NULL);
	flags = spin_lock_irqsave(&proc->lock);
	EXPECT_EQ(signal_enqueue(proc, &proc->pending, SIGCHLD, NULL), 0);
	spin_unlock_irqrestore(&proc->lock, flags);
	proc->pending.set = 0;
	sigpending_flush(&proc->pending);
	EXPECT_ASSERTION("sigpending_flush: !pending->set && list_empty(&pending->queue)");
	proc->pending.set = SIGNAL_BIT(SIGCHLD);
	sigpending_flush(&proc->pending);
	process_put(proc);
	EXPECT_ASSERTION(NULL);
	assert_set_trap(false);
}

SELFTEST(assert, family)
{
	struct process *proc = process_alloc("mutant");
	unsigned long flags;

	ASSERT(proc);
	process_get(proc);
	assert_set_trap(true);
	flags = spin_lock_irqsave(&process_tree_lock);
	family_release(proc);
	spin_unlock_irqrestore(&process_tree_lock, flags);
	EXPECT_ASSERTION("family_release: &process_tree_lock is not held");
	family_release(proc);
	EXPECT_ASSERTION(NULL);
	assert_set_trap(false);
}

SELFTEST(assert, names_without_a_lock)
{
	assert_set_trap(true);
	tree_find(root_inode, "x", 1);
	EXPECT_ASSERTION("tree_find: &tree_lock is held");
	tree_lock_write();
	tree_find(root_inode, "x", 1);
	EXPECT_ASSERTION(NULL);
	tree_unlock();
	assert_set_trap(false);
}

SELFTEST(assert, pages_of_a_file)
{
	struct inode *inode = inode_alloc_unnamed("mutant", S_IFREG | 0600);

	ASSERT(inode);
	assert_set_trap(true);
	EXPECT_EQ(inode_write(inode, "x", 1, 0, false), 1);
	EXPECT_ASSERTION(NULL);
	inode->nr_pages--;
	inode_put(inode);
	EXPECT_ASSERTION("inode_free_data: pages_are_counted(inode)");
	assert_set_trap(false);
}

SELFTEST(assert, inode_put_too_often)
{
	static struct inode inode;

	assert_set_trap(true);
	inode_put(&inode);
	EXPECT_ASSERTION("inode_put: !inode || atomic_read(&inode->refs) > 0");
	assert_set_trap(false);
}

#ifdef CONFIG_PROFILE_STRACE
SELFTEST(assert, system_calls)
{
	struct profile_syscall_row wrong = { .nr = 1, .nr_calls = 1, .nr_errors = 2 };
	struct profile_syscall_sum sum = { 0 };
	unsigned long flags;

	assert_set_trap(true);
	EXPECT(strace_row(&sum, 1));
	EXPECT_ASSERTION("strace_row: &lists_lock is held");
	flags = os_lock(&lists_lock);
	EXPECT(strace_row(&sum, 1));
	EXPECT_ASSERTION(NULL);
	strace_sum_add_row(&sum, &sum, &wrong, &wrong);
	EXPECT_ASSERTION("strace_sum_add_row: counters->nr_errors <= counters->nr_calls");
	strace_sum_free(&sum);
	os_unlock(&lists_lock, flags);
	assert_set_trap(false);
}
#endif

#ifdef CONFIG_PROFILE_HEATMAP
SELFTEST(assert, samples_without_a_pin)
{
	assert_set_trap(true);
	samples_next(0, NULL);
	EXPECT_ASSERTION("samples_next: sample_kind.nr_pins");
	samples_pin();
	samples_next(0, NULL);
	samples_unpin();
	EXPECT_ASSERTION(NULL);
	assert_set_trap(false);
}
#endif
