// SPDX-License-Identifier: BSD-2-Clause
/*
 * Futexes. Waiters are in a hash table, by the key of the word (mm_key_of()): an address in an
 * address space or, in shared memory, an offset in a file. FUTEX_PRIVATE_FLAG saves the look-up of
 * the key. If the file is freed before the waiter, another file at the same address may cause a
 * spurious wake-up. A waiter compares the word and queues itself with the bucket's lock held. A
 * waker changes the word first and then looks for waiters with the same lock held, so it misses
 * none. With the lock held, the read of the word fails instead of handling a page fault. Then the
 * waiter reads the word without the lock, and tries again.
 */

#include <lego/futex.h>

#include "futex.h"
#include "process.h"

#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/time.h>
#include <lego/uaccess.h>

#define FUTEX_WAIT	  0
#define FUTEX_WAKE	  1
#define FUTEX_REQUEUE	  3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP	  5
#define FUTEX_LOCK_PI	  6
#define FUTEX_UNLOCK_PI	  7
#define FUTEX_TRYLOCK_PI  8
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_LOCK_PI2	  13

#define FUTEX_PRIVATE_FLAG   128
#define FUTEX_CLOCK_REALTIME 256
#define FUTEX_CMD_MASK	     (~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME))

#define FUTEX_MATCH_ANY 0xffffffffU

/* Measures the wait of a futex system call, from entry to wake-up. */
DEFINE_PROFILE_POINT_SLEEPS(futex_wait)

struct futex_bucket futex_buckets[NR_FUTEX_BUCKETS];

void futex_init(void)
{
	for (int i = 0; i < NR_FUTEX_BUCKETS; i++) {
		spin_lock_init(&futex_buckets[i].lock);
		list_init(&futex_buckets[i].waiters);
		list_init(&futex_buckets[i].pi_waiters);
	}
}

static int check_addr(const u32 __user *addr)
{
	if (!IS_ALIGNED((u64)addr, sizeof(*addr)))
		return -EINVAL;
	return access_ok(addr, sizeof(*addr)) ? 0 : -EFAULT;
}

struct futex futex_find(u32 __user *addr, bool private)
{
	struct futex futex = { .addr = addr, .key = { current->mm, (u64)addr } };
	u64 hash;

	might_sleep();
	if (!private)
		futex.key = mm_key_of(current->mm, (u64)addr);
	/* Only a waker checks whether memory is mapped there; a waiter reads the word anyway. */
	futex.error = check_addr(addr);
	if (!futex.error && !futex.key.object)
		futex.error = -EFAULT;
	hash = ((u64)futex.key.object ^ futex.key.offset >> 2) * 0x9e3779b97f4a7c15ULL;
	futex.bucket = &futex_buckets[hash >> 56];
	return futex;
}

BUILD_BUG_ON(NR_FUTEX_BUCKETS != 1 << (64 - 56));

/* Locks two buckets, which may be the same. Lower address first. */
static unsigned long lock_two(struct futex_bucket *a, struct futex_bucket *b)
{
	unsigned long flags = local_irq_save();

	spin_lock(&min(a, b)->lock);
	if (a != b)
		spin_lock_nested(&max(a, b)->lock);
	return flags;
}

static void unlock_two(struct futex_bucket *a, struct futex_bucket *b, unsigned long flags)
{
	spin_unlock(&a->lock);
	if (a != b)
		spin_unlock(&b->lock);
	local_irq_restore(flags);
}

/* Wakes a waiter. It may be gone as soon as the bucket's lock is released. */
static void wake_waiter(struct futex_waiter *waiter)
{
	ASSERT_HELD(&waiter->bucket->lock);
	DEBUG_ASSERT(!waiter->woken);
	list_del(&waiter->node);
	waiter->woken = true;
	task_wake(waiter->task);
}

/*
 * Wakes waiters of the futex until nr are woken; at least one even if nr is 0, as Linux does. Looks
 * at no more than nr_steps, from the one behind `at` to the one before `end`. Adds to *nr_woken.
 * Returns where to go on, or NULL if all is done.
 */
static __always_inline struct list_head *wake_some(const struct futex *futex, struct list_head *at,
						   const struct list_head *end, int nr, u32 bitset,
						   unsigned int nr_steps, long *nr_woken)
{
	ASSERT_HELD(&futex->bucket->lock);
	for (; at->next != end; nr_steps--) {
		struct futex_waiter *waiter = list_entry(at->next, struct futex_waiter, node);

		if (!nr_steps)
			return at;
		if (!futex_same_key(&waiter->key, &futex->key) || !(waiter->bitset & bitset)) {
			at = at->next;
			continue;
		}
		wake_waiter(waiter);
		if (++*nr_woken >= nr)
			break;
	}
	return NULL;
}

#define WAKE_STEPS 32 /* each takes 1,200 instructions if its wait and call chain are recorded */

/*
 * The same, in steps between which interrupts are on and the lock is free. Two marks, which have no
 * key, keep the place in the queue, and where its end was: later waiters are not looked at.
 */
static __always_inline long wake_in_steps(const struct futex *futex, int nr, u32 bitset)
{
	struct futex_bucket *bucket = futex->bucket;
	struct list_head *all = &bucket->waiters, *at;
	struct futex_waiter place = { .bucket = bucket }, end = { .bucket = bucket };
	unsigned long flags = spin_lock_irqsave(&bucket->lock);
	long nr_woken = 0;

	at = wake_some(futex, all, all, nr, bitset, WAKE_STEPS, &nr_woken);
	if (at)
		list_add_tail(&end.node, all);
	else
		list_init(&end.node);
	while (at) {
		list_add(&place.node, at);
		spin_unlock_irqrestore(&bucket->lock, flags);
		flags = spin_lock_irqsave(&bucket->lock);
		at = place.node.prev;
		list_del(&place.node);
		at = wake_some(futex, at, &end.node, nr, bitset, WAKE_STEPS, &nr_woken);
	}
	list_del(&end.node);
	spin_unlock_irqrestore(&bucket->lock, flags);
	return nr_woken;
}

/* The same in a function of its own, for calls that are rare. */
static noinline long wake_waiters(const struct futex *futex, int nr)
{
	return wake_in_steps(futex, nr, FUTEX_MATCH_ANY);
}

static long wake_bitset(u32 __user *addr, bool private, int nr, u32 bitset)
{
	struct futex futex = futex_find(addr, private);

	if (!bitset)
		return -EINVAL;
	if (futex.error)
		return futex.error;
	return wake_in_steps(&futex, nr, bitset);
}

long futex_wake(u32 __user *addr, unsigned int nr)
{
	return wake_bitset(addr, false, (int)nr, FUTEX_MATCH_ANY);
}

/*
 * Queues the waiter if the word still has the value. Returns 0, -EAGAIN if the value differs,
 * -EFAULT if the word cannot be read, or -ERESTARTNOINTR if a signal must be handled first.
 */
static int queue_waiter(struct futex_waiter *waiter, u32 __user *addr, u32 value)
{
	u32 seen;

	for (;;) {
		struct futex_bucket *bucket = waiter->bucket;
		unsigned long flags;
		int error;

		/* Makes the page present. The value that counts is read below. */
		if (get_user(seen, addr))
			return -EFAULT;
		flags = spin_lock_irqsave(&bucket->lock);
		error = get_user_nofault(seen, addr);
		if (!error && seen == value) {
			list_add_tail(&waiter->node, &bucket->waiters);
			spin_unlock_irqrestore(&bucket->lock, flags);
			return 0;
		}
		spin_unlock_irqrestore(&bucket->lock, flags);
		if (!error)
			return -EAGAIN;
		if (task_interrupted(current))
			return -ERESTARTNOINTR;
		cond_resched();
	}
}

/*
 * Removes the waiter from its queue. Returns true if it was woken. Always takes the lock, because a
 * waker may still use the waiter.
 */
static bool dequeue_waiter(struct futex_waiter *waiter)
{
	for (;;) {
		struct futex_bucket *bucket = READ_ONCE(waiter->bucket);
		unsigned long flags = spin_lock_irqsave(&bucket->lock);
		bool same = bucket == waiter->bucket;

		if (same)
			list_del(&waiter->node);
		spin_unlock_irqrestore(&bucket->lock, flags);
		if (same)
			return waiter->woken;
	}
}

/*
 * Returns whether a thread of this process has the number `value`, and the kernel clears the word
 * when that thread ends. pthread_join() of glibc waits for such a word, without
 * FUTEX_PRIVATE_FLAG.
 */
static bool is_tid_word(const u32 __user *addr, bool private, u32 value)
{
	struct task *thread = private || !value ? NULL : task_find((pid_t)value);
	bool found = thread && thread->proc == current->proc &&
		     READ_ONCE(thread->clear_child_tid) == addr;

	if (thread)
		task_put(thread);
	return found;
}

static long wait_bitset(u32 __user *addr, bool private, u32 value, u64 deadline_ns, u32 bitset);

/* Continues a wait after a signal, with the deadline of the first call. */
static long restart_wait(struct task *task)
{
	return wait_bitset(task->restart.arg, task->restart.private, task->restart.value,
			   task->restart.deadline_ns, task->restart.bitset);
}

static long wait_bitset(u32 __user *addr, bool private, u32 value, u64 deadline_ns, u32 bitset)
{
	struct futex futex = futex_find(addr, private);
	struct futex_waiter waiter = {
		.node = LIST_HEAD_INIT(waiter.node),
		.task = current,
		.key = futex.key,
		.bitset = bitset,
		.bucket = futex.bucket,
	};
	int error = futex.error;
	bool is_join, is_queued;
	PROFILE_SCOPE(futex_wait);

	if (!bitset)
		return -EINVAL;
	if (!error)
		error = queue_waiter(&waiter, addr, value);
	is_queued = !error;
	is_join = is_queued && is_tid_word(addr, private, value);
	if (is_queued)
		error = futex_sleep(&waiter, is_join ? "exit of a thread" : "futex",
				    is_join ? 0 : (u64)addr, deadline_ns);
	if (is_queued && dequeue_waiter(&waiter))
		error = 0;
	if (error == -ERESTARTNOINTR && deadline_ns != TIME_NEVER_NS)
		error = -ERESTARTSYS;
	if (error != -ERESTARTSYS || deadline_ns == TIME_NEVER_NS)
		return error;
	current->restart.fn = restart_wait;
	current->restart.arg = addr;
	current->restart.private = private;
	current->restart.value = value;
	current->restart.bitset = bitset;
	current->restart.deadline_ns = deadline_ns;
	return -ERESTART_RESTARTBLOCK;
}

#define MOVE_STEPS 512 /* each takes 50 instructions */

/*
 * Moves waiters to the end of the other queue, until *nr_moved is nr. Looks at no more than
 * MOVE_STEPS, from the one behind `at` to the one before `end`. Returns where to go on, or NULL if
 * all is done.
 */
static struct list_head *move_some(const struct futex *from, const struct futex *to,
				   struct list_head *at, const struct list_head *end, int nr,
				   long *nr_moved)
{
	ASSERT_HELD(&from->bucket->lock);
	ASSERT_HELD(&to->bucket->lock);
	for (unsigned int i = 0; at->next != end && *nr_moved < nr; i++) {
		struct futex_waiter *waiter = list_entry(at->next, struct futex_waiter, node);

		if (i == MOVE_STEPS)
			return at;
		if (!futex_same_key(&waiter->key, &from->key)) {
			at = at->next;
			continue;
		}
		list_del(&waiter->node);
		waiter->key = to->key;
		WRITE_ONCE(waiter->bucket, to->bucket);
		list_add_tail(&waiter->node, &to->bucket->waiters);
		++*nr_moved;
	}
	return NULL;
}

/* Releases the locks of both buckets for a moment. Returns the place in the queue again. */
static struct list_head *pause_at(const struct futex *from, const struct futex *to,
				  struct list_head *at, unsigned long flags)
{
	struct futex_waiter place = { .bucket = from->bucket };

	list_add(&place.node, at);
	unlock_two(from->bucket, to->bucket, flags);
	lock_two(from->bucket, to->bucket);
	at = place.node.prev;
	list_del(&place.node);
	return at;
}

/*
 * Wakes and moves waiters in steps, as wake_in_steps() does. Between two steps, others find some
 * waiters at the one futex and some at the other, but each of them at one of both.
 */
static long wake_and_move(const struct futex *from, int nr_wake, const struct futex *to,
			  int nr_move, unsigned long flags)
{
	struct futex_waiter end = { .bucket = from->bucket };
	struct list_head *all = &from->bucket->waiters, *at = nr_wake ? all : NULL;
	long nr_woken = 0, nr_moved = 0;

	/* Those that are moved come behind the end: this may be the other queue, too. */
	list_add_tail(&end.node, all);
	while (at && (at = wake_some(from, at, &end.node, nr_wake, FUTEX_MATCH_ANY, WAKE_STEPS,
				     &nr_woken)))
		at = pause_at(from, to, at, flags);
	at = all;
	while ((at = move_some(from, to, at, &end.node, nr_move, &nr_moved)))
		at = pause_at(from, to, at, flags);
	list_del(&end.node);
	return nr_woken + nr_moved;
}

/* Wakes and moves waiters. The first word must have *value, unless value is NULL. */
static long requeue(const struct futex *from, int nr_wake, const struct futex *to, int nr_move,
		    const u32 *value)
{
	int error = from->error;
	unsigned long flags;
	long ret;
	u32 seen;

	if (nr_wake < 0 || nr_move < 0)
		return -EINVAL;
	if (!error)
		error = to->error;
	if (error)
		return error;
	for (;;) {
		if (value && get_user(seen, from->addr))
			return -EFAULT;
		flags = lock_two(from->bucket, to->bucket);
		error = value ? get_user_nofault(seen, from->addr) : 0;
		if (!error)
			break;
		unlock_two(from->bucket, to->bucket, flags);
		if (task_interrupted(current))
			return -ERESTARTNOINTR;
		cond_resched();
	}
	if (value && seen != *value)
		ret = -EAGAIN;
	else
		ret = wake_and_move(from, nr_wake, to, nr_move, flags);
	unlock_two(from->bucket, to->bucket, flags);
	return ret;
}

/* FUTEX_WAKE_OP's val3: op:4 cmp:4 oparg:12 cmparg:12; op's top bit shifts oparg. */
#define WAKE_OP_SHIFT 8

static s32 sign_extend_12(u32 x)
{
	return (s32)(x << 20) >> 20;
}

static int wake_op_value(u32 code, u32 old, u32 *new)
{
	u32 op = code >> 28, arg = (u32)sign_extend_12(code >> 12);

	if (op & WAKE_OP_SHIFT)
		arg = 1U << (arg & 31);
	switch (op & ~WAKE_OP_SHIFT) {
	case 0:
		*new = arg;
		return 0;
	case 1:
		*new = old + arg;
		return 0;
	case 2:
		*new = old | arg;
		return 0;
	case 3:
		*new = old & ~arg;
		return 0;
	case 4:
		*new = old ^ arg;
		return 0;
	default:
		return -ENOSYS;
	}
}

static int wake_op_compare(u32 code, u32 old)
{
	s32 value = (s32)old, arg = sign_extend_12(code);

	switch (code >> 24 & 15) {
	case 0:
		return value == arg;
	case 1:
		return value != arg;
	case 2:
		return value < arg;
	case 3:
		return value <= arg;
	case 4:
		return value > arg;
	case 5:
		return value >= arg;
	default:
		return -ENOSYS;
	}
}

/* Changes the word atomically, and stores the old value. Returns 0, -EFAULT or -ENOSYS. */
static int wake_op_apply(u32 __user *addr, u32 code, u32 *old)
{
	u32 expected, new;
	int error = get_user(expected, addr);

	while (!error) {
		error = wake_op_value(code, expected, &new);
		if (!error)
			error = user_cmpxchg_u32(addr, expected, new, old);
		if (!error && *old == expected)
			break;
		expected = *old;
	}
	return error;
}

/*
 * Changes the word before taking the locks, so that page faults can be handled. A waiter that
 * queues itself after the change has compared with the new value, so none is missed.
 */
static long wake_op(const struct futex *first, int nr_wake, const struct futex *second,
		    int nr_wake2, u32 code)
{
	int error = first->error;
	u32 old = 0;
	long ret;

	if (!error)
		error = second->error;
	if (!error && wake_op_compare(code, 0) < 0)
		error = -ENOSYS;
	if (!error)
		error = wake_op_apply(second->addr, code, &old);
	if (error)
		return error;
	ret = wake_waiters(first, nr_wake);
	if (wake_op_compare(code, old))
		ret += wake_waiters(second, nr_wake2);
	return ret;
}

/*
 * WAIT's time is a duration. The others' is a point in time: LOCK_PI's of the real-time clock,
 * WAIT_BITSET's and LOCK_PI2's of one of two clocks.
 */
static int read_deadline(const struct timespec64 __user *timeout, int op, u64 *deadline_ns)
{
	struct timespec64 ts;
	u64 ns, now;

	*deadline_ns = TIME_NEVER_NS;
	if (!timeout)
		return 0;
	if (get_user(ts, timeout))
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns))
		return -EINVAL;
	if ((op & FUTEX_CMD_MASK) == FUTEX_WAIT) {
		now = clock_monotonic_ns();
		ns = ns > TIME_NEVER_NS - now ? TIME_NEVER_NS : now + ns;
	} else if (op & FUTEX_CLOCK_REALTIME || (op & FUTEX_CMD_MASK) == FUTEX_LOCK_PI) {
		ns = realtime_to_monotonic_ns(ns);
	}
	*deadline_ns = ns;
	return 0;
}

static long on_two_futexes(u32 __user *addr, int op, int nr, u32 __user *addr2, int nr2, u32 val3)
{
	bool private = op & FUTEX_PRIVATE_FLAG;
	struct futex first = futex_find(addr, private);
	struct futex second = futex_find(addr2, private);

	if ((op & FUTEX_CMD_MASK) == FUTEX_WAKE_OP)
		return wake_op(&first, nr, &second, nr2, val3);
	return requeue(&first, nr, &second, nr2,
		       (op & FUTEX_CMD_MASK) == FUTEX_CMP_REQUEUE ? &val3 : NULL);
}

/* The operations of futex_pi.c, in a function of its own, so that they cost the others nothing. */
static noinline long on_mutex(u32 __user *addr, int op, const struct timespec64 __user *timeout)
{
	bool private = op & FUTEX_PRIVATE_FLAG;
	u64 deadline_ns;
	int error;

	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		error = read_deadline(timeout, op, &deadline_ns);
		return error ? error : futex_lock_pi(addr, private, deadline_ns, false);
	case FUTEX_TRYLOCK_PI:
		return futex_lock_pi(addr, private, TIME_NEVER_NS, true);
	case FUTEX_UNLOCK_PI:
		return futex_unlock_pi(addr, private);
	default:
		return -ENOSYS;
	}
}

SYSCALL_DEFINE6(futex, u32 __user *, addr, int, op, u32, val, unsigned long, arg, u32 __user *,
		addr2, u32, val3)
{
	int command = op & FUTEX_CMD_MASK;
	bool private = op & FUTEX_PRIVATE_FLAG;
	u64 deadline_ns;
	int error;

	if (op & FUTEX_CLOCK_REALTIME && command != FUTEX_WAIT_BITSET && command != FUTEX_LOCK_PI2)
		return -ENOSYS;
	if (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) {
		error = read_deadline((const struct timespec64 __user *)arg, op, &deadline_ns);
		if (error)
			return error;
	}
	if (command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE || command == FUTEX_WAKE_OP)
		return on_two_futexes(addr, op, (int)val, addr2, (int)arg, val3);
	switch (command) {
	case FUTEX_WAIT:
		return wait_bitset(addr, private, val, deadline_ns, FUTEX_MATCH_ANY);
	case FUTEX_WAIT_BITSET:
		return wait_bitset(addr, private, val, deadline_ns, val3);
	case FUTEX_WAKE:
		return wake_bitset(addr, private, (int)val, FUTEX_MATCH_ANY);
	case FUTEX_WAKE_BITSET:
		return wake_bitset(addr, private, (int)val, val3);
	default:
		return on_mutex(addr, op, (const struct timespec64 __user *)arg);
	}
}
