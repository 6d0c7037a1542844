// SPDX-License-Identifier: BSD-2-Clause
/*
 * epoll(7): a set of watched files, and a ready list of watches that may have events. A watch
 * registers callbacks on the wait queues of its file. A waker removes them, puts the watch on the
 * ready list and wakes one sleeper. epoll_wait() takes watches off the list and polls their files,
 * which registers the callbacks again. So a watch costs the wakers nothing until it is polled
 * again, and a watch on the list may have no event. A level-triggered watch with an event goes back
 * on the list; an edge-triggered one waits for its next callback.
 *
 * As in Linux, a watch is identified by its file and descriptor. It exists until it is removed, or
 * until the last descriptor of the file is closed.
 *
 * An epoll is itself a file that another epoll can watch. When a watch is added, a check with
 * graph_lock held keeps such chains short and free of loops. An epoll that polls the next one in a
 * chain holds its own ->lock meanwhile.
 *
 * Locks, outer first: graph_lock, epoll->lock, those of the watched files, their wait queues',
 * ready_lock.
 */

#include "epoll.h"

#include "fd.h"
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fd_tree.h>
#include <lego/page.h>
#include <lego/poll.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/time.h>

#define MAX_CHAIN    5	/* epolls, each of which watches the next */
#define MEMORY_SHARE 25 /* the watches of an epoll take at most 1/25 of memory */

struct epoll {
	struct file *file;
	struct mutex lock; /* guards the watches, except ready_node */
	/*
	 * By descriptor; the watches of one are linked by ->next. Changed with graph_lock held,
	 * too.
	 */
	struct fd_tree watches;
	unsigned int nr_watches;	     /* likewise */
	spinlock_t ready_lock;		     /* taken with interrupts off */
	struct list_head ready;		     /* guarded by ready_lock */
	struct wait_queue wait;		     /* sleepers in epoll_wait(); each wake-up wakes one */
	struct wait_queue poll_wait;	     /* threads and epolls that poll this one */
	struct wake_timer poll_wake;	     /* wakes these */
	unsigned int generation, nr_chained; /* guarded by graph_lock: see longest_chain() */
};

struct watch_entry {
	struct callback_waiter waiter;
	struct wait_queue *wq; /* NULL: none yet */
	struct watch *watch;
};

struct watch {
	struct poll_table table;
	struct epoll *epoll;
	struct file *file; /* without a reference: see epoll_forget_file() */
	int fd;
	u32 events; /* POLL* and EPOLL_FLAGS */
	u64 data;
	struct list_head ready_node;	      /* guarded by ready_lock */
	struct watch *next;		      /* watch of another file with the same descriptor */
	struct watch *file_next, **file_prev; /* in file->watches; guarded by graph_lock */
	unsigned int nr_entries; /* that the poll in progress, or the last one, has used */
	unsigned int nr_before;	 /* that the poll before has used */
	struct watch_entry entries[POLL_MAX_QUEUES];
};

static DEFINE_MUTEX(graph_lock);

static const struct file_ops epoll_ops;

bool file_is_epoll(const struct file *file)
{
	return file->ops == &epoll_ops;
}

/* Returns false if EPOLLONESHOT has disabled the watch. */
static bool is_enabled(const struct watch *watch)
{
	return READ_ONCE(watch->events) & ~EPOLL_FLAGS;
}

/* Puts the watch at the end of the ready list. Returns true if it was not on the list. */
static bool add_ready(struct watch *watch)
{
	struct epoll *epoll = watch->epoll;
	unsigned long flags = spin_lock_irqsave(&epoll->ready_lock);
	bool is_new = list_empty(&watch->ready_node);

	if (is_new)
		list_add_tail(&watch->ready_node, &epoll->ready);
	spin_unlock_irqrestore(&epoll->ready_lock, flags);
	return is_new;
}

/*
 * One step of a scan of the ready list. Puts the mark at the list's end, if the scan begins; puts
 * `again` there, unless it is NULL; and takes the first watch off. Returns NULL if the mark comes
 * first or no watch is wanted: then the scan has ended, and the mark is off the list.
 */
static struct watch *scan_ready(struct epoll *epoll, struct list_head *mark, struct watch *again,
				bool wanted)
{
	unsigned long flags = spin_lock_irqsave(&epoll->ready_lock);
	struct list_head *first;

	if (list_empty(mark))
		list_add_tail(mark, &epoll->ready);
	if (again && list_empty(&again->ready_node))
		list_add_tail(&again->ready_node, &epoll->ready);
	first = wanted ? epoll->ready.next : mark;
	list_del(first);
	spin_unlock_irqrestore(&epoll->ready_lock, flags);
	return first == mark ? NULL : list_entry(first, struct watch, ready_node);
}

/*
 * The callback. poll_wait may have callbacks of epolls that watch this one, which wake queues of
 * the same lock class. That cannot deadlock, because chains have no loops.
 */
static bool watch_woken(struct callback_waiter *waiter)
{
	struct watch *watch = container_of(waiter, struct watch_entry, waiter)->watch;
	bool has_woken;

	if (!is_enabled(watch) || !add_ready(watch))
		return false;
	has_woken = wake_up_one(&watch->epoll->wait);
	wake_up_in_steps_nested(&watch->epoll->poll_wake);
	return has_woken;
}

/* Does what poll_wait() does. A file usually passes the same queues in the same order each time. */
static void add_waiter(struct poll_table *table, struct wait_queue *wq)
{
	struct watch *watch = container_of(table, struct watch, table);
	struct watch_entry *entry = &watch->entries[watch->nr_entries++];

	ASSERT_HELD(&watch->epoll->lock);
	BUG_ON(watch->nr_entries > POLL_MAX_QUEUES);
	/*
	 * A callback that is still queued was not called since it was added. If a change calls it
	 * now, the watch becomes ready again.
	 */
	if (entry->wq == wq && !list_empty(&entry->waiter.waiter.node))
		return;
	if (entry->wq && entry->wq != wq)
		wait_queue_remove(entry->wq, &entry->waiter.waiter);
	entry->wq = wq;
	entry->waiter.waiter.exclusive = watch->events & EPOLLEXCLUSIVE;
	wait_queue_add_callback(wq, &entry->waiter);
}

/* Removes the callbacks from index `from` on. */
static void remove_waiters(struct watch *watch, unsigned int from)
{
	for (unsigned int i = from; i < POLL_MAX_QUEUES; i++) {
		struct watch_entry *entry = &watch->entries[i];

		if (entry->wq)
			wait_queue_remove(entry->wq, &entry->waiter.waiter);
		entry->wq = NULL;
	}
}

/*
 * Polls the file: returns the wanted events that there are now, and registers callbacks for later
 * ones.
 */
static u32 poll_watch(struct watch *watch)
{
	u32 events = watch->events;

	ASSERT_HELD(&watch->epoll->lock);
	if (!is_enabled(watch))
		return 0;
	watch->table.events = events & ~EPOLL_FLAGS;
	watch->nr_entries = 0;
	events &= watch->file->ops->poll(watch->file, &watch->table);
	if (unlikely(watch->nr_entries < watch->nr_before))
		remove_waiters(watch, watch->nr_entries);
	watch->nr_before = watch->nr_entries;
	return events;
}

/*
 * Polls the files of the watches on the ready list, each once, until max have an event. Stores the
 * events or, if events is NULL, leaves the watches on the list. Returns the number of events.
 */
static int collect_events(struct epoll *epoll, struct epoll_event *events, int max)
{
	LIST_HEAD(mark);
	struct watch *watch = NULL;
	bool again = false;
	int nr = 0;

	ASSERT_HELD(&epoll->lock);
	while ((watch = scan_ready(epoll, &mark, again ? watch : NULL, nr < max))) {
		u32 ready = poll_watch(watch);

		again = ready && (!events || !(watch->events & (EPOLLONESHOT | EPOLLET)));
		if (!ready)
			continue;
		if (events)
			events[nr] = (struct epoll_event){ ready, watch->data };
		nr++;
		if (events && watch->events & EPOLLONESHOT)
			WRITE_ONCE(watch->events, watch->events & EPOLL_FLAGS);
	}
	return nr;
}

static u32 epoll_poll(struct file *file, struct poll_table *table)
{
	struct epoll *epoll = file->private;
	int nr;

	poll_wait(table, &epoll->poll_wait);
	mutex_lock_ordered(&epoll->lock);
	nr = collect_events(epoll, NULL, 1);
	mutex_unlock(&epoll->lock);
	return nr ? POLLIN | POLLRDNORM : 0;
}

/* Watches */

static unsigned int max_watches(void)
{
	return page_nr_total() * PAGE_SIZE / MEMORY_SHARE / sizeof(struct watch);
}

static struct watch *find_watch(struct epoll *epoll, const struct file *file, int fd)
{
	struct watch *watch = fd_tree_get(&epoll->watches, fd);

	ASSERT_HELD(&epoll->lock);
	while (watch && watch->file != file)
		watch = watch->next;
	return watch;
}

static struct watch *alloc_watch(struct epoll *epoll, struct file *file, int fd)
{
	struct watch *watch = kzalloc(sizeof(*watch));

	if (!watch || !fd_tree_make_leaf(&epoll->watches, fd)) {
		kfree(watch);
		return NULL;
	}
	watch->table.add = add_waiter;
	watch->epoll = epoll;
	watch->file = file;
	watch->fd = fd;
	list_init(&watch->ready_node);
	for (int i = 0; i < POLL_MAX_QUEUES; i++) {
		struct watch_entry *entry = &watch->entries[i];

		list_init(&entry->waiter.waiter.node);
		entry->waiter.woken = watch_woken;
		entry->watch = watch;
	}
	return watch;
}

static void link_watch(struct watch *watch)
{
	struct fd_tree *tree = &watch->epoll->watches;
	struct file *file = watch->file;

	ASSERT_HELD(&graph_lock);
	ASSERT_HELD(&watch->epoll->lock);
	watch->next = fd_tree_get(tree, watch->fd);
	fd_tree_set(tree, fd_tree_leaf(tree, watch->fd), watch->fd, watch);
	watch->file_next = file->watches;
	watch->file_prev = &file->watches;
	if (file->watches)
		file->watches->file_prev = &watch->file_next;
	WRITE_ONCE(file->watches, watch);
	WRITE_ONCE(watch->epoll->nr_watches, watch->epoll->nr_watches + 1);
}

static void unlink_watch(struct watch *watch)
{
	struct fd_tree *tree = &watch->epoll->watches;
	struct watch *at = fd_tree_get(tree, watch->fd);

	ASSERT_HELD(&graph_lock);
	ASSERT_HELD(&watch->epoll->lock);
	if (at == watch)
		fd_tree_set(tree, fd_tree_leaf(tree, watch->fd), watch->fd, watch->next);
	while (at != watch && at->next != watch)
		at = at->next;
	at->next = watch->next;
	if (watch->file_next)
		watch->file_next->file_prev = watch->file_prev;
	/*
	 * Pairs with file_put(), which may free a file once it has no watches. So this must be the
	 * last access to the file.
	 */
	smp_store_release(watch->file_prev, watch->file_next);
	WRITE_ONCE(watch->epoll->nr_watches, watch->epoll->nr_watches - 1);
}

static void free_watch(struct watch *watch)
{
	struct epoll *epoll = watch->epoll;
	unsigned long flags;

	remove_waiters(watch, 0);
	flags = spin_lock_irqsave(&epoll->ready_lock);
	list_del(&watch->ready_node);
	spin_unlock_irqrestore(&epoll->ready_lock, flags);
	unlink_watch(watch);
	kfree(watch);
}

void epoll_forget_file(struct file *file)
{
	mutex_lock(&graph_lock);
	while (file->watches) {
		struct epoll *epoll = file->watches->epoll;

		mutex_lock(&epoll->lock);
		free_watch(file->watches);
		mutex_unlock(&epoll->lock);
	}
	mutex_unlock(&graph_lock);
}

/*
 * Returns the number of epolls in the longest chain that begins at this one, downwards to those
 * that it watches, or upwards. Returns more than MAX_CHAIN if a chain contains stop. Each epoll is
 * visited once in a generation.
 */
static unsigned int longest_chain(struct epoll *epoll, bool up, const struct epoll *stop,
				  unsigned int generation)
{
	unsigned int nr = 0;

	ASSERT_HELD(&graph_lock);
	if (epoll == stop)
		return MAX_CHAIN + 1;
	if (epoll->generation == generation)
		return epoll->nr_chained;
	for (struct watch *watch = up ? epoll->file->watches : NULL; watch;
	     watch = watch->file_next)
		nr = max(nr, longest_chain(watch->epoll, up, stop, generation));
	for (int fd = 0; !up && (fd = fd_tree_next(&epoll->watches, fd)) >= 0; fd++) {
		for (struct watch *watch = fd_tree_get(&epoll->watches, fd); watch;
		     watch = watch->next) {
			if (file_is_epoll(watch->file))
				nr = max(nr,
					 longest_chain(watch->file->private, up, stop, generation));
		}
	}
	epoll->generation = generation;
	epoll->nr_chained = nr + 1;
	return nr + 1;
}

/* Returns true if epoll may watch target. */
static bool may_watch(struct epoll *epoll, struct epoll *target)
{
	static unsigned int generation; /* an epoll that was never visited has 0 */
	unsigned int below, above;

	ASSERT_HELD(&graph_lock);
	generation += 2;
	below = longest_chain(target, false, epoll, generation);
	above = longest_chain(epoll, true, NULL, generation + 1);
	return below + above <= MAX_CHAIN;
}

/* Polls a new or changed watch, which may be ready already. */
static void update_watch(struct watch *watch, const struct epoll_event *event)
{
	struct epoll *epoll = watch->epoll;

	watch->data = event->data;
	WRITE_ONCE(watch->events, event->events | POLL_ALWAYS);
	if (!poll_watch(watch) || !add_ready(watch))
		return;
	wake_up_one(&epoll->wait);
	wake_up_in_steps(&epoll->poll_wake, true);
}

int epoll_add(struct epoll *epoll, struct file *file, int fd, const struct epoll_event *event)
{
	struct watch *watch;
	int error = 0;

	mutex_lock(&graph_lock);
	if (file_is_epoll(file) && !may_watch(epoll, file->private))
		error = -ELOOP;
	mutex_lock(&epoll->lock);
	if (!error && find_watch(epoll, file, fd))
		error = -EEXIST;
	if (!error && epoll->nr_watches >= max_watches())
		error = -ENOSPC;
	watch = error ? NULL : alloc_watch(epoll, file, fd);
	if (watch)
		link_watch(watch);
	mutex_unlock(&graph_lock);
	if (watch)
		update_watch(watch, event);
	mutex_unlock(&epoll->lock);
	return watch ? 0 : error ?: -ENOMEM;
}

int epoll_remove(struct epoll *epoll, struct file *file, int fd)
{
	struct watch *watch;

	mutex_lock(&graph_lock);
	mutex_lock(&epoll->lock);
	watch = find_watch(epoll, file, fd);
	if (watch)
		free_watch(watch);
	mutex_unlock(&epoll->lock);
	mutex_unlock(&graph_lock);
	return watch ? 0 : -ENOENT;
}

int epoll_change(struct epoll *epoll, struct file *file, int fd, const struct epoll_event *event)
{
	struct watch *watch;
	int error = 0;

	mutex_lock(&epoll->lock);
	watch = find_watch(epoll, file, fd);
	if (!watch)
		error = -ENOENT;
	else if (watch->events & EPOLLEXCLUSIVE)
		error = -EINVAL;
	else
		update_watch(watch, event);
	mutex_unlock(&epoll->lock);
	return error;
}

int epoll_take(struct epoll *epoll, struct epoll_event *events, int max)
{
	int nr;

	mutex_lock(&epoll->lock);
	nr = collect_events(epoll, events, max);
	/* Full barrier: pairs with the one in prepare_wait(), whose caller then reads the list. */
	mutex_unlock(&epoll->lock);
	if (!list_empty(&epoll->ready) && unlikely(!list_empty(&epoll->wait.waiters)))
		wake_up_one(&epoll->wait); /* there may be events for another sleeper */
	return nr;
}

int epoll_max_events(const struct epoll *epoll)
{
	return list_empty(&epoll->ready) ? 0 : READ_ONCE(epoll->nr_watches);
}

int epoll_sleep(struct epoll *epoll, u64 deadline_ns)
{
	u64 now;

	return WAIT_EVENT(&epoll->wait, false, !list_empty(&epoll->ready), TASK_INTERRUPTIBLE,
			  (now = clock_monotonic_ns()) >= deadline_ns || task_interrupted(current),
			  now >= deadline_ns ? -ETIMEDOUT : -EINTR,
			  schedule_timeout_ns(deadline_ns - now));
}

static void epoll_release(struct file *file)
{
	struct epoll *epoll = file->private;

	mutex_lock(&graph_lock);
	mutex_lock(&epoll->lock);
	for (int fd = 0; (fd = fd_tree_next(&epoll->watches, fd)) >= 0;)
		free_watch(fd_tree_get(&epoll->watches, fd));
	mutex_unlock(&epoll->lock);
	mutex_unlock(&graph_lock);
	fd_tree_free(&epoll->watches);
	wake_timer_end(&epoll->poll_wake);
	kfree(epoll);
}

static u64 epoll_held_bytes(const struct file *file)
{
	const struct epoll *epoll = file->private;

	return sizeof(*epoll) + READ_ONCE(epoll->nr_watches) * sizeof(struct watch) +
	       READ_ONCE(epoll->watches.nr_nodes) * sizeof(struct fd_node);
}

static const struct file_ops epoll_ops = {
	.poll = epoll_poll,
	.release = epoll_release,
	.held_bytes = epoll_held_bytes,
};

struct file *epoll_make_file(void)
{
	struct epoll *epoll = kzalloc(sizeof(*epoll));
	struct file *file;

	if (!epoll)
		return NULL;
	mutex_init(&epoll->lock);
	fd_tree_init(&epoll->watches);
	spin_lock_init(&epoll->ready_lock);
	list_init(&epoll->ready);
	wait_queue_init_at(&epoll->wait, "epoll", LOCK_PLACE("epoll->wait"));
	wait_queue_init_at(&epoll->poll_wait, "epoll", LOCK_PLACE("epoll->poll_wait"));
	wake_timer_init(&epoll->poll_wake, &epoll->poll_wait);
	file = file_alloc_anon("anon_inode:[eventpoll]", 0600, &epoll_ops, epoll, O_RDWR);
	if (!file)
		kfree(epoll);
	else
		epoll->file = file;
	return file;
}
