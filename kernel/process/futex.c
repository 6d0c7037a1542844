// SPDX-License-Identifier: BSD-2-Clause
#include <lego/futex.h>

#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/time.h>
#include <lego/uaccess.h>

/*
 * Waiters stand in a hash table by address space and address; no memory is shared between
 * processes, so private and shared futexes are the same. A waiter compares the user's word and
 * queues itself under the bucket's lock, a waker changes the word first and looks for waiters
 * under the same lock: none is missed. With the lock held a page fault is not served but makes
 * the read fail; the word is then touched without the lock, and all is tried again.
 */

#define FUTEX_WAIT	  0
#define FUTEX_WAKE	  1
#define FUTEX_REQUEUE	  3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP	  5
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10

#define FUTEX_PRIVATE_FLAG   128
#define FUTEX_CLOCK_REALTIME 256
#define FUTEX_CMD_MASK	     (~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME))

#define FUTEX_MATCH_ANY 0xffffffffU

#define NR_BUCKETS 256

/* A futex system call's wait, from entry to wake-up. */
DEFINE_PROFILE_POINT_SLEEPS(futex_wait)

struct futex_bucket {
	spinlock_t lock;
	struct list_head waiters;
} __aligned(64);

/*
 * On the waiting task's stack; guarded by the lock of ->bucket, which changes with both locks
 * held.
 */
struct futex_waiter {
	struct list_head node;
	struct task *task;
	struct mm *mm;
	u32 __user *addr;
	u32 bitset;
	struct futex_bucket *bucket;
	bool woken;
};

static struct futex_bucket buckets[NR_BUCKETS];

void futex_init(void)
{
	for (int i = 0; i < NR_BUCKETS; i++) {
		spin_lock_init(&buckets[i].lock);
		list_init(&buckets[i].waiters);
	}
}

static struct futex_bucket *find_bucket(struct mm *mm, const u32 __user *addr)
{
	u64 hash = ((u64)mm ^ (u64)addr >> 2) * 0x9e3779b97f4a7c15ULL;

	return &buckets[hash >> 56];
}

BUILD_BUG_ON(NR_BUCKETS != 1 << (64 - 56));

static int check_addr(const u32 __user *addr)
{
	if (!IS_ALIGNED((u64)addr, sizeof(*addr)))
		return -EINVAL;
	return access_ok(addr, sizeof(*addr)) ? 0 : -EFAULT;
}

/* Two buckets that may be one. Lower address first. */
static unsigned long lock_two(struct futex_bucket *a, struct futex_bucket *b)
{
	unsigned long flags = local_irq_save();

	spin_lock(&min(a, b)->lock);
	if (a != b)
		spin_lock(&max(a, b)->lock);
	return flags;
}

static void unlock_two(struct futex_bucket *a, struct futex_bucket *b, unsigned long flags)
{
	spin_unlock(&a->lock);
	if (a != b)
		spin_unlock(&b->lock);
	local_irq_restore(flags);
}

/* With the bucket's lock held. Once that is dropped the waiter may be gone. */
static void wake_waiter(struct futex_waiter *waiter)
{
	list_del(&waiter->node);
	waiter->woken = true;
	task_wake(waiter->task);
}

/* With the bucket's lock held. Like Linux's, wakes one even when asked for none. */
static long wake_matching(struct futex_bucket *bucket, u32 __user *addr, int nr, u32 bitset)
{
	struct futex_waiter *waiter, *next;
	long nr_woken = 0;

	list_for_each_entry_safe(waiter, next, &bucket->waiters, node) {
		if (waiter->mm != current->mm || waiter->addr != addr || !(waiter->bitset & bitset))
			continue;
		wake_waiter(waiter);
		if (++nr_woken >= nr)
			break;
	}
	return nr_woken;
}

static long wake_bitset(u32 __user *addr, int nr, u32 bitset)
{
	struct futex_bucket *bucket = find_bucket(current->mm, addr);
	unsigned long flags;
	long ret = check_addr(addr);

	if (!bitset)
		return -EINVAL;
	if (ret)
		return ret;
	flags = spin_lock_irqsave(&bucket->lock);
	ret = wake_matching(bucket, addr, nr, bitset);
	spin_unlock_irqrestore(&bucket->lock, flags);
	return ret;
}

long futex_wake(u32 __user *addr, unsigned int nr)
{
	return wake_bitset(addr, (int)nr, FUTEX_MATCH_ANY);
}

/* Queue if the word still has the value. 0, -EAGAIN if it has not, -EFAULT if it cannot be read. */
static int queue_waiter(struct futex_waiter *waiter, u32 value)
{
	u32 seen;

	for (;;) {
		struct futex_bucket *bucket = waiter->bucket;
		unsigned long flags;
		int error;

		/* Brings the page in; the value that counts is read below. */
		if (get_user(seen, waiter->addr))
			return -EFAULT;
		flags = spin_lock_irqsave(&bucket->lock);
		error = get_user(seen, waiter->addr);
		if (!error && seen == value) {
			list_add_tail(&waiter->node, &bucket->waiters);
			spin_unlock_irqrestore(&bucket->lock, flags);
			return 0;
		}
		spin_unlock_irqrestore(&bucket->lock, flags);
		if (!error)
			return -EAGAIN;
		if (task_interrupted(current))
			return -EINTR;
		cond_resched();
	}
}

/* Leave the queue; true if someone woke us. Always takes the lock: a waker may still hold it. */
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

/* 0 when woken, -ETIMEDOUT or -EINTR. */
static int sleep_on_futex(struct futex_waiter *waiter, u64 deadline_ns)
{
	int error = 0;

	for (;;) {
		u64 now = deadline_ns == TIME_NEVER_NS ? 0 : clock_monotonic_ns();

		/* Full barrier: pairs with the queue's lock in task_wake() and task_kick(). */
		(void)xchg(&waiter->task->state, TASK_INTERRUPTIBLE);
		if (READ_ONCE(waiter->woken))
			break;
		error = task_interrupted(waiter->task) ? -EINTR : -ETIMEDOUT;
		if (error == -EINTR || now >= deadline_ns)
			break;
		schedule_timeout_ns(deadline_ns - now);
	}
	WRITE_ONCE(waiter->task->state, TASK_RUNNING);
	return dequeue_waiter(waiter) ? 0 : error;
}

static long wait_bitset(u32 __user *addr, u32 value, u64 deadline_ns, u32 bitset)
{
	struct futex_waiter waiter = {
		.node = LIST_HEAD_INIT(waiter.node),
		.task = current,
		.mm = current->mm,
		.addr = addr,
		.bitset = bitset,
		.bucket = find_bucket(current->mm, addr),
	};
	int error = check_addr(addr);
	PROFILE_SCOPE(futex_wait);

	if (!bitset)
		return -EINVAL;
	if (!error)
		error = queue_waiter(&waiter, value);
	if (error)
		return error;
	return sleep_on_futex(&waiter, deadline_ns);
}

/* With both locks held. */
static long requeue_matching(struct futex_bucket *from, u32 __user *addr, struct futex_bucket *to,
			     u32 __user *addr2, int nr)
{
	struct futex_waiter *waiter, *next;
	LIST_HEAD(moved);
	long nr_moved = 0;

	list_for_each_entry_safe(waiter, next, &from->waiters, node) {
		if (nr_moved >= nr)
			break;
		if (waiter->mm != current->mm || waiter->addr != addr)
			continue;
		/* Not at once to the other queue: that may be the one we walk on. */
		list_del(&waiter->node);
		list_add_tail(&waiter->node, &moved);
		nr_moved++;
	}
	list_for_each_entry_safe(waiter, next, &moved, node) {
		list_del(&waiter->node);
		waiter->addr = addr2;
		WRITE_ONCE(waiter->bucket, to);
		list_add_tail(&waiter->node, &to->waiters);
	}
	return nr_moved;
}

/* value: what *addr must have, or NULL. */
static long requeue(u32 __user *addr, int nr_wake, u32 __user *addr2, int nr_move, const u32 *value)
{
	struct futex_bucket *from = find_bucket(current->mm, addr);
	struct futex_bucket *to = find_bucket(current->mm, addr2);
	int error = check_addr(addr);
	unsigned long flags;
	long ret = 0;
	u32 seen;

	if (nr_wake < 0 || nr_move < 0)
		return -EINVAL;
	if (!error)
		error = check_addr(addr2);
	if (error)
		return error;
	for (;;) {
		if (value && get_user(seen, addr))
			return -EFAULT;
		flags = lock_two(from, to);
		error = value ? get_user(seen, addr) : 0;
		if (!error)
			break;
		unlock_two(from, to, flags);
		if (task_interrupted(current))
			return -EINTR;
		cond_resched();
	}
	if (value && seen != *value) {
		ret = -EAGAIN;
	} else {
		if (nr_wake)
			ret = wake_matching(from, addr, nr_wake, FUTEX_MATCH_ANY);
		ret += requeue_matching(from, addr, to, addr2, nr_move);
	}
	unlock_two(from, to, flags);
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

/* Change the word atomically. The old value, and 0, -EFAULT or -ENOSYS. */
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
 * The word is changed before the locks are taken, with faults served. That is enough: a waiter that
 * queues itself after the change has compared with the new value.
 */
static long wake_op(u32 __user *addr, int nr_wake, u32 __user *addr2, int nr_wake2, u32 code)
{
	struct futex_bucket *bucket = find_bucket(current->mm, addr);
	struct futex_bucket *bucket2 = find_bucket(current->mm, addr2);
	int error = check_addr(addr), wake2;
	unsigned long flags;
	u32 old = 0;
	long ret;

	if (!error)
		error = check_addr(addr2);
	if (!error && wake_op_compare(code, 0) < 0)
		error = -ENOSYS;
	if (!error)
		error = wake_op_apply(addr2, code, &old);
	if (error)
		return error;
	wake2 = wake_op_compare(code, old);
	flags = lock_two(bucket, bucket2);
	ret = wake_matching(bucket, addr, nr_wake, FUTEX_MATCH_ANY);
	if (wake2)
		ret += wake_matching(bucket2, addr2, nr_wake2, FUTEX_MATCH_ANY);
	unlock_two(bucket, bucket2, flags);
	return ret;
}

/* WAIT's time is a duration, WAIT_BITSET's a point in time on one of two clocks. */
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
	} else if (op & FUTEX_CLOCK_REALTIME) {
		ns = realtime_to_monotonic_ns(ns);
	}
	*deadline_ns = ns;
	return 0;
}

SYSCALL_DEFINE6(futex, u32 __user *, addr, int, op, u32, val, unsigned long, arg, u32 __user *,
		addr2, u32, val3)
{
	int command = op & FUTEX_CMD_MASK;
	u64 deadline_ns;
	int error;

	if (op & FUTEX_CLOCK_REALTIME && command != FUTEX_WAIT_BITSET)
		return -ENOSYS;
	if (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) {
		error = read_deadline((const struct timespec64 __user *)arg, op, &deadline_ns);
		if (error)
			return error;
	}
	switch (command) {
	case FUTEX_WAIT:
		return wait_bitset(addr, val, deadline_ns, FUTEX_MATCH_ANY);
	case FUTEX_WAIT_BITSET:
		return wait_bitset(addr, val, deadline_ns, val3);
	case FUTEX_WAKE:
		return wake_bitset(addr, (int)val, FUTEX_MATCH_ANY);
	case FUTEX_WAKE_BITSET:
		return wake_bitset(addr, (int)val, val3);
	case FUTEX_REQUEUE:
		return requeue(addr, (int)val, addr2, (int)arg, NULL);
	case FUTEX_CMP_REQUEUE:
		return requeue(addr, (int)val, addr2, (int)arg, &val3);
	case FUTEX_WAKE_OP:
		return wake_op(addr, (int)val, addr2, (int)arg, val3);
	default:
		return -ENOSYS;
	}
}
