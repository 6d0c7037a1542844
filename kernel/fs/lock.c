// SPDX-License-Identifier: BSD-2-Clause
/*
 * Advisory locks. An inode that was locked once has the locks held (lock_tree.c), and a list of
 * waiting requests. An owner's record locks do not overlap, and those of the same type are not
 * adjacent.
 *
 * A waiting request stores the owner of the lock that blocks it. Each change that could unblock
 * requests looks at them in the order in which they came, clears the pointers of those that could
 * now be granted together, and wakes these waiters, which try again. A waiter that was woken, but
 * does not take the lock, does the same for the requests that had to wait for its own. So the
 * pointers always say who waits for whom, and a request that would close a cycle is refused
 * (EDEADLK). As in Linux, this covers only the locks of processes, and only one of a process's
 * waiting threads.
 */

#include "lock_tree.h"

#include "mount.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/text.h>

struct file_locks {
	struct lock_tree held[NR_LOCK_KINDS];
	struct list_head waits;
	struct list_head woken;	       /* waits that will try again */
	unsigned int nr_process_waits; /* of both, of processes */
};

struct lock_wait {
	struct list_head node;	/* in one of the file's lists */
	struct lock_wait *next; /* in the bucket of the owner */
	const void *owner;
	const struct file_lock *request;
	const void *blocker; /* owner of a conflicting lock or woken wait; NULL: try again */
	struct wait_queue wq;
};

/* Guards everything in this file. User memory must not be accessed while it is held. */
static DEFINE_MUTEX(lock_mutex);

static LIST_HEAD(all_locks); /* all locks held */

/* All of these, by owner. */
#define LOG2_BUCKETS 8
static struct lock_wait *buckets[1 << LOG2_BUCKETS];

#define MAX_CHAIN 10 /* processes that wait for each other; as with Linux */

static struct lock_wait **bucket_of(const void *owner)
{
	return &buckets[(u64)owner * 0x9e3779b97f4a7c15 >> (64 - LOG2_BUCKETS)];
}

static void add_to_bucket(struct lock_wait *wait)
{
	struct lock_wait **first = bucket_of(wait->owner);

	wait->next = *first;
	*first = wait;
}

static void remove_from_bucket(struct lock_wait *wait)
{
	struct lock_wait **at = bucket_of(wait->owner);

	while (*at != wait)
		at = &(*at)->next;
	*at = wait->next;
}

static bool is_of_process(const struct file_lock *request)
{
	return request->owner != request->file;
}

/* Returns who blocks a request of this process. */
static const void *blocker_of(const void *owner)
{
	const struct lock_wait *wait = *bucket_of(owner);

	while (wait && (wait->owner != owner || !is_of_process(wait->request)))
		wait = wait->next;
	return wait ? wait->blocker : NULL;
}

static bool is_deadlock(const void *owner, const void *blocker)
{
	for (unsigned int i = 0; blocker && i < MAX_CHAIN; i++) {
		if (blocker == owner)
			return true;
		blocker = blocker_of(blocker);
	}
	return false;
}

static struct file_locks *get_locks(struct inode *inode)
{
	struct file_locks *locks = inode->locks;

	ASSERT_HELD(&lock_mutex);
	if (locks)
		return locks;
	locks = kzalloc(sizeof(*locks));
	if (!locks)
		return NULL;
	list_init(&locks->waits);
	list_init(&locks->woken);
	WRITE_ONCE(inode->locks, locks);
	return locks;
}

void lock_free(struct inode *inode)
{
	struct file_locks *locks = inode->locks;

	DEBUG_ASSERT(!locks || (!lock_tree_first(&locks->held[LOCK_RECORD]) &&
				!lock_tree_first(&locks->held[LOCK_WHOLE]) &&
				list_empty(&locks->waits) && list_empty(&locks->woken)));
	kfree(locks);
}

static void add_lock(struct file_locks *locks, struct file_lock *lock)
{
	lock_tree_add(&locks->held[lock->kind], lock);
	list_add_tail(&lock->all_node, &all_locks);
	WRITE_ONCE(lock->file->nr_locks, lock->file->nr_locks + 1);
}

static void remove_lock(struct file_locks *locks, struct file_lock *lock)
{
	lock_tree_remove(&locks->held[lock->kind], lock);
	list_del(&lock->all_node);
	DEBUG_ASSERT(lock->file->nr_locks);
	WRITE_ONCE(lock->file->nr_locks, lock->file->nr_locks - 1);
	kfree(lock);
}

static bool overlaps(const struct file_lock *a, const struct file_lock *b)
{
	return a->start <= b->last && b->start <= a->last;
}

static bool conflicts(const struct file_lock *a, const struct file_lock *b)
{
	return a->kind == b->kind && a->owner != b->owner && overlaps(a, b) &&
	       (a->type == F_WRLCK || b->type == F_WRLCK);
}

static struct file_lock *find_conflict(struct file_locks *locks, const struct file_lock *request)
{
	return lock_tree_conflict(&locks->held[request->kind], request);
}

/* Returns a request whose waiter was woken, and which conflicts with another request. */
static const struct file_lock *find_woken(struct file_locks *locks, const struct file_lock *request)
{
	const struct lock_wait *wait;

	list_for_each_entry(wait, &locks->woken, node) {
		if (conflicts(wait->request, request))
			return wait->request;
	}
	return NULL;
}

/* Wakes a waiter, and returns true, if its request is in this range and can be granted now. */
static bool grant_waiter(struct file_locks *locks, struct lock_wait *wait,
			 const struct file_lock *range)
{
	const struct file_lock *request = wait->request, *conflict;

	if (request->kind != range->kind || !overlaps(request, range))
		return false;
	conflict = find_conflict(locks, request);
	if (!conflict)
		conflict = find_woken(locks, request);
	WRITE_ONCE(wait->blocker, conflict ? conflict->owner : NULL);
	if (conflict)
		return false;
	list_del(&wait->node);
	list_add_tail(&wait->node, &locks->woken);
	wake_up_all(&wait->wq);
	return true;
}

/* Does the same for all requests of an owner that wait for this file. */
static void wake_owner(struct file_locks *locks, const void *owner, const struct file_lock *range)
{
	for (struct lock_wait *wait = *bucket_of(owner); wait; wait = wait->next) {
		if (wait->owner == owner && wait->blocker &&
		    wait->request->file->inode->locks == locks)
			grant_waiter(locks, wait, range);
	}
}

/* Wakes those whose requests in this range can be granted now. */
static void wake_waiters(struct file_locks *locks, const struct file_lock *range)
{
	struct lock_wait *wait, *next;

	ASSERT_HELD(&lock_mutex);
	list_for_each_entry_safe(wait, next, &locks->waits, node) {
		const struct file_lock *request = wait->request;

		/* Others' conflict with such a one. Only processes must know their blocker. */
		if (grant_waiter(locks, wait, range) && request->type == F_WRLCK &&
		    request->start <= range->start && request->last >= range->last &&
		    !locks->nr_process_waits) {
			wake_owner(locks, wait->owner, range);
			return;
		}
	}
}

/* Removes the range from an owner's lock. Uses *spare if two parts of the lock remain. */
static void cut_lock(struct file_locks *locks, struct file_lock *lock,
		     const struct file_lock *range, struct file_lock **spare)
{
	bool left = lock->start < range->start;
	bool right = lock->last > range->last;

	if (!left && !right) {
		remove_lock(locks, lock);
		return;
	}
	if (left && right) {
		**spare = *lock;
		(*spare)->start = range->last + 1;
		add_lock(locks, *spare);
		*spare = NULL;
	}
	lock_tree_remove(&locks->held[lock->kind], lock);
	if (left)
		lock->last = range->start - 1;
	else
		lock->start = range->last + 1;
	lock_tree_add(&locks->held[lock->kind], lock);
}

/*
 * Applies a request without conflicts. spares[0] is memory for the new lock, spares[1] for the
 * second part of a lock that is split.
 */
static void apply_lock(struct file_locks *locks, const struct file_lock *request,
		       struct file_lock *spares[2])
{
	const struct lock_tree *held = &locks->held[request->kind];
	u64 before = request->start - (request->start > 0);
	struct file_lock *new = spares[0], *lock, *next;
	bool gives_up = false;

	*new = *request;
	/* Those that overlap the range, or touch it. */
	lock = lock_tree_owned(held, request->owner, before);
	for (; lock && lock->start <= request->last + 1; lock = next) {
		next = lock_tree_next_owned(lock);
		if (lock->type == request->type) {
			new->start = min(new->start, lock->start);
			new->last = max(new->last, lock->last);
			remove_lock(locks, lock);
		} else if (overlaps(lock, request)) {
			cut_lock(locks, lock, request, &spares[1]);
			gives_up = true;
		}
	}
	if (request->type != F_UNLCK) {
		add_lock(locks, new);
		spares[0] = NULL;
	}
	if (gives_up)
		wake_waiters(locks, request);
}

/*
 * Drops a lock of another type: flock(2) converts a lock in two steps, so the old lock is lost even
 * if the new one fails. Returns 0 if the owner has the requested lock already.
 */
static int drop_other_type(struct file_locks *locks, const struct file_lock *request)
{
	struct file_lock *lock = lock_tree_owned(&locks->held[request->kind], request->owner, 0);

	if (lock && lock->type == request->type)
		return 0;
	if (lock) {
		remove_lock(locks, lock);
		wake_waiters(locks, request);
	}
	return -EAGAIN;
}

/* Waits for a change, without the mutex. Returns 0, -EDEADLK or -ERESTARTSYS. */
static int wait_for_change(struct file_locks *locks, const struct file_lock *request,
			   const struct file_lock *conflict)
{
	struct lock_wait wait = {
		.owner = request->owner,
		.request = request,
		.blocker = conflict->owner,
	};
	bool of_process = is_of_process(request);
	int error;

	ASSERT_HELD(&lock_mutex);
	if (of_process && is_deadlock(request->owner, conflict->owner))
		return -EDEADLK;
	wait_queue_init_at(&wait.wq, request->kind == LOCK_RECORD ? "record lock" : "flock",
			   LOCK_PLACE("lock_wait"));
	list_add_tail(&wait.node, &locks->waits);
	locks->nr_process_waits += of_process;
	add_to_bucket(&wait);
	mutex_unlock(&lock_mutex);
	error = wait_event_interruptible(&wait.wq, !READ_ONCE(wait.blocker));
	mutex_lock(&lock_mutex);
	list_del(&wait.node);
	locks->nr_process_waits -= of_process;
	remove_from_bucket(&wait);
	if (!wait.blocker && (error || find_conflict(locks, request)))
		wake_waiters(locks, request);
	return error;
}

static int set_lock(const struct file_lock *request, bool wait, struct file_lock *spares[2])
{
	struct file_locks *locks = get_locks(request->file->inode);
	const struct file_lock *conflict;
	int error;

	if (!locks)
		return -ENOLCK;
	if (request->kind == LOCK_WHOLE && !drop_other_type(locks, request))
		return 0;
	while ((conflict = find_conflict(locks, request)) != NULL) {
		error = wait ? wait_for_change(locks, request, conflict) : -EAGAIN;
		if (error)
			return error;
	}
	apply_lock(locks, request, spares);
	return 0;
}

int lock_set(const struct file_lock *request, bool wait)
{
	struct file_lock *spares[2] = { kmalloc(sizeof(**spares)), kmalloc(sizeof(**spares)) };
	int error = -ENOLCK;

	DEBUG_ASSERT(request->start <= request->last && request->last <= LOCK_LAST_BYTE);
	if (spares[0] && spares[1]) {
		mutex_lock(&lock_mutex);
		error = set_lock(request, wait, spares);
		mutex_unlock(&lock_mutex);
	}
	kfree(spares[0]);
	kfree(spares[1]);
	return error;
}

bool lock_find_conflict(struct file_lock *request)
{
	struct file_locks *locks;
	const struct file_lock *conflict = NULL;

	mutex_lock(&lock_mutex);
	locks = request->file->inode->locks;
	if (locks)
		conflict = find_conflict(locks, request);
	if (conflict)
		*request = *conflict;
	mutex_unlock(&lock_mutex);
	return conflict;
}

/*
 * Removes all locks of an owner, or those that others have set through a file while it was closed:
 * the file must outlive its locks. Returns true if there were any.
 */
static bool remove_all(struct file_locks *locks, enum lock_kind kind, const void *owner)
{
	struct file_lock *lock;
	bool found = false;

	while ((lock = lock_tree_owned(&locks->held[kind], owner, 0)) != NULL) {
		remove_lock(locks, lock);
		found = true;
	}
	return found;
}

static bool remove_late(struct file_locks *locks, enum lock_kind kind, const struct file *file)
{
	struct file_lock *lock = lock_tree_first(&locks->held[kind]), *next;
	bool found = false;

	for (; lock && file->nr_locks; lock = next) {
		next = lock_tree_next(lock);
		if (lock->file == file) {
			remove_lock(locks, lock);
			found = true;
		}
	}
	return found;
}

static noinline void release_locks(struct file_locks *locks, struct file *file, const void *owner)
{
	struct file_lock all = { .last = LOCK_LAST_BYTE };

	mutex_lock(&lock_mutex);
	for (all.kind = LOCK_RECORD; all.kind < NR_LOCK_KINDS; all.kind++) {
		bool found = remove_all(locks, all.kind, owner);

		if (owner == file)
			found |= remove_late(locks, all.kind, file);
		if (found)
			wake_waiters(locks, &all);
	}
	mutex_unlock(&lock_mutex);
}

void lock_release_owner(struct file *file, const void *owner)
{
	struct file_locks *locks = READ_ONCE(file->inode->locks);

	if (unlikely(locks))
		release_locks(locks, file, owner);
}

/*
 * Prints a lock as Linux does: number, kind, READ or WRITE, process, device and inode, first and
 * last byte.
 */
static void show_lock(struct text *text, unsigned int nr, const char *arrow,
		      const struct file_lock *lock)
{
	const struct inode *inode = lock->file->inode;
	const char *kind = lock->pid < 0 ? "OFDLCK" : "POSIX ";

	text_printf(text, "%u: %s%s ADVISORY  %s %d 00:%02x:%llu ", nr, arrow,
		    lock->kind == LOCK_WHOLE ? "FLOCK " : kind,
		    lock->type == F_WRLCK ? "WRITE" : "READ", lock->pid, inode->fs->device,
		    (unsigned long long)inode->number);
	text_printf(text, "%llu ", (unsigned long long)lock->start);
	if (lock->last == LOCK_LAST_BYTE)
		text_printf(text, "EOF\n");
	else
		text_printf(text, "%llu\n", (unsigned long long)lock->last);
}

void locks_text(struct text *text)
{
	const struct file_lock *lock;
	const struct lock_wait *wait;
	unsigned int nr = 0;

	mutex_lock(&lock_mutex);
	list_for_each_entry(lock, &all_locks, all_node) {
		show_lock(text, ++nr, "", lock);
		list_for_each_entry(wait, &lock->file->inode->locks->waits, node) {
			if (find_conflict(lock->file->inode->locks, wait->request) == lock)
				show_lock(text, nr, "-> ", wait->request);
		}
	}
	mutex_unlock(&lock_mutex);
}
