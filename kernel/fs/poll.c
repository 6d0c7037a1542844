// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits for several files: polls each, and registers a waiter on its wait queues; if none is ready,
 * sleeps, removes the waiters and polls again. Polling may sleep for a lock, so the task's state
 * cannot be set before it. Instead, a waker removes the waiter from its queue before it wakes the
 * task. So if a waiter is gone after the state was set, there was a change, and the task does not
 * sleep.
 */

#include <lego/poll.h>

#include "fd.h"
#include "poll.h"
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define NR_INLINE 8
#define NR_CHUNK  64

struct poll_entry {
	struct waiter waiter;
	struct wait_queue *wq;
};

struct poll_chunk {
	struct poll_chunk *next;
	unsigned int nr;
	struct poll_entry entries[NR_CHUNK];
};

/* The waiters of one call. They wake the caller. */
struct poll_call {
	struct poll_table table;
	unsigned int nr;
	struct poll_entry entries[NR_INLINE];
	struct poll_chunk *chunks; /* if there are more */
	bool no_memory;
};

static struct poll_entry *new_entry(struct poll_call *call)
{
	struct poll_chunk *chunk = call->chunks;

	if (call->nr < NR_INLINE)
		return &call->entries[call->nr++];
	if (!chunk || chunk->nr == NR_CHUNK) {
		chunk = kmalloc(sizeof(*chunk));
		if (!chunk)
			return NULL;
		current->call_bytes += sizeof(*chunk);
		chunk->nr = 0;
		chunk->next = call->chunks;
		call->chunks = chunk;
	}
	return &chunk->entries[chunk->nr++];
}

static void add_waiter(struct poll_table *table, struct wait_queue *wq)
{
	struct poll_call *call = container_of(table, struct poll_call, table);
	struct poll_entry *entry;

	might_sleep();
	entry = new_entry(call);
	if (!entry) {
		call->no_memory = true;
		return;
	}
	entry->waiter = (struct waiter)WAITER_INIT(entry->waiter, false);
	entry->wq = wq;
	wait_queue_add(wq, &entry->waiter);
}

static bool any_woken(const struct poll_entry *entries, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (list_empty(&entries[i].waiter.node))
			return true;
	}
	return false;
}

static bool has_news(const struct poll_call *call)
{
	bool news = any_woken(call->entries, call->nr);

	for (struct poll_chunk *chunk = call->chunks; chunk && !news; chunk = chunk->next)
		news = any_woken(chunk->entries, chunk->nr);
	return news;
}

static void remove_waiters(struct poll_entry *entries, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		wait_queue_remove(entries[i].wq, &entries[i].waiter);
}

static void clear(struct poll_call *call)
{
	remove_waiters(call->entries, call->nr);
	call->nr = 0;
	while (call->chunks) {
		struct poll_chunk *chunk = call->chunks;

		remove_waiters(chunk->entries, chunk->nr);
		call->chunks = chunk->next;
		current->call_bytes -= sizeof(*chunk);
		kfree(chunk);
	}
}

static u32 ask(struct file *file, struct poll_table *table)
{
	if (!file)
		return POLLNVAL;
	if (!file_can_poll(file))
		return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
	return file->ops->poll(file, table);
}

/* Polls all items. Returns how many have events. Keeps the files: waiters are on their queues. */
static int ask_all(struct poll_item *items, unsigned int nr, struct poll_call *call, bool wait)
{
	struct poll_table *table = wait ? &call->table : NULL;
	int nr_ready = 0;

	for (unsigned int i = 0; i < nr; i++) {
		struct poll_item *item = &items[i];

		if (item->poll.fd < 0) {
			item->poll.revents = 0;
			item->use = (struct fd_use){ 0 };
			continue;
		}
		item->use = fd_use(item->poll.fd);
		call->table.events = item->poll.events;
		item->poll.revents = ask(item->use.file, table) & (item->poll.events | POLLNVAL);
		if (!item->poll.revents)
			continue;
		nr_ready++;
		table = NULL; /* the caller will not sleep, so needs no more waiters */
	}
	return nr_ready;
}

static void put_files(const struct poll_item *items, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		fd_use_end(items[i].use);
}

/* Sleeps. Returns 0 to poll again, or -EINTR. */
static int sleep_for_news(const struct poll_call *call, u64 ns)
{
	int error = 0;

	/*
	 * Full barrier: pairs with the lock that a waker takes between list_del() and reading the
	 * state. Either this task sees that a waiter is gone, or the waker sees the new state.
	 */
	(void)xchg(&current->state, TASK_INTERRUPTIBLE);
	task_waits_for("poll", 0);
	if (task_interrupted(current))
		error = -EINTR;
	else if (!has_news(call))
		schedule_timeout_ns(ns);
	WRITE_ONCE(current->state, TASK_RUNNING);
	return error;
}

int poll_items(struct poll_item *items, unsigned int nr, u64 deadline_ns)
{
	struct poll_call call = { .table.add = add_waiter };
	u64 items_bytes = nr * (sizeof(*items) + sizeof(struct pollfd));
	int ret;

	current->call_bytes += items_bytes;
	for (;;) {
		u64 now = clock_monotonic_ns();
		bool wait = now < deadline_ns;
		bool again = false;

		ret = ask_all(items, nr, &call, wait);
		if (!ret && call.no_memory)
			ret = -ENOMEM;
		if (!ret && wait) {
			ret = sleep_for_news(&call, deadline_ns - now);
			again = !ret;
		}
		clear(&call);
		put_files(items, nr);
		if (!again)
			break;
	}
	current->call_bytes -= items_bytes;
	return ret;
}

static u64 deadline_after(u64 ns)
{
	u64 now = clock_monotonic_ns();

	return ns < TIME_NEVER_NS - now ? now + ns : TIME_NEVER_NS;
}

u64 poll_deadline_ms(int timeout_ms)
{
	if (timeout_ms < 0)
		return TIME_NEVER_NS;
	return timeout_ms ? deadline_after(timeout_ms * NSEC_PER_MSEC) : 0;
}

int poll_deadline_of(const struct timespec64 *time, u64 *deadline_ns)
{
	u64 ns;

	if (timespec_to_ns(time, &ns))
		return -EINVAL;
	*deadline_ns = ns ? deadline_after(ns) : 0;
	return 0;
}

int poll_deadline(const struct timespec64 __user *user_time, u64 *deadline_ns)
{
	struct timespec64 time;

	*deadline_ns = TIME_NEVER_NS;
	if (!user_time)
		return 0;
	if (copy_from_user(&time, user_time, sizeof(time)))
		return -EFAULT;
	return poll_deadline_of(&time, deadline_ns);
}

struct timespec64 poll_time_left(u64 deadline_ns)
{
	u64 now = clock_monotonic_ns(), left = now < deadline_ns ? deadline_ns - now : 0;

	return (struct timespec64){ .tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC };
}

void poll_return_time(struct timespec64 __user *user_time, u64 deadline_ns)
{
	struct timespec64 time = poll_time_left(deadline_ns);

	if (!user_time)
		return;
	if (copy_to_user(user_time, &time, sizeof(time)))
		return;
}

int poll_begin_mask(const u64 __user *user_mask, size_t mask_bytes)
{
	u64 mask;

	if (!user_mask)
		return 0;
	if (mask_bytes != sizeof(mask))
		return -EINVAL;
	if (get_user(mask, user_mask))
		return -EFAULT;
	signal_set_temporary_mask(mask);
	return 0;
}

/* Ends the use of a mask. After a signal, the mask stays until its handler has been entered. */
long poll_end_mask(long ret, bool has_mask)
{
	if (ret == -EINTR)
		return -ERESTARTNOHAND;
	if (has_mask)
		signal_restore_mask();
	return ret;
}

/* Copies the events to the user. As in Linux, returns what was found even after an error. */
static long return_events(struct pollfd __user *user_fds, const struct poll_item *items,
			  unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (put_user(items[i].poll.revents, &user_fds[i].revents))
			return -EFAULT;
	}
	return 0;
}

static long poll_fds(struct pollfd __user *user_fds, unsigned int nr, u64 deadline_ns)
{
	struct poll_item few[NR_INLINE], *items = few;
	struct pollfd few_fds[NR_INLINE], *fds = few_fds;
	long ret;

	if (nr > (unsigned int)fd_limit())
		return -EINVAL;
	if (nr > NR_INLINE) {
		items = kmalloc(nr * (sizeof(*items) + sizeof(*fds)));
		if (!items)
			return -ENOMEM;
		fds = (struct pollfd *)(items + nr);
	}
	ret = copy_from_user(fds, user_fds, nr * sizeof(*fds));
	if (ret)
		goto out_free;
	for (unsigned int i = 0; i < nr; i++) {
		items[i].poll = fds[i];
		items[i].poll.events |= POLL_ALWAYS;
	}
	ret = poll_items(items, nr, deadline_ns);
	if (return_events(user_fds, items, nr))
		ret = -EFAULT;
out_free:
	if (items != few)
		kfree(items);
	return ret;
}

static long restart_poll(struct task *task);

static long poll_restartable(struct pollfd __user *user_fds, unsigned int nr, u64 deadline_ns)
{
	long ret = poll_fds(user_fds, nr, deadline_ns);

	if (ret != -EINTR)
		return ret;
	current->restart.fn = restart_poll;
	current->restart.deadline_ns = deadline_ns;
	current->restart.arg = user_fds;
	current->restart.nr_fds = nr;
	return -ERESTART_RESTARTBLOCK;
}

static long restart_poll(struct task *task)
{
	return poll_restartable((struct pollfd __user *)task->restart.arg, task->restart.nr_fds,
				task->restart.deadline_ns);
}

SYSCALL_DEFINE3(poll, struct pollfd __user *, fds, unsigned int, nr, int, timeout_ms)
{
	return poll_restartable(fds, nr, poll_deadline_ms(timeout_ms));
}

SYSCALL_DEFINE5(ppoll, struct pollfd __user *, fds, unsigned int, nr, struct timespec64 __user *,
		timeout, const u64 __user *, mask, size_t, mask_bytes)
{
	u64 deadline_ns;
	long ret = poll_deadline(timeout, &deadline_ns);

	if (!ret)
		ret = poll_begin_mask(mask, mask_bytes);
	if (ret)
		return ret;
	ret = poll_end_mask(poll_fds(fds, nr, deadline_ns), mask);
	poll_return_time(timeout, deadline_ns);
	return ret;
}
