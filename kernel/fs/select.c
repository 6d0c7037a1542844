// SPDX-License-Identifier: BSD-2-Clause
/*
 * select: poll with descriptors and results in bit maps. As in Linux, descriptors that the table
 * has no room for are ignored.
 */

#include "poll.h"

#include <lego/errno.h>
#include <lego/poll.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

enum set {
	SET_READ,
	SET_WRITE,
	SET_EXCEPT,
	NR_SETS,
};

/* The events that mean readable, writable and exceptional, as in Linux. */
#define EVENTS_READ   (POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR)
#define EVENTS_WRITE  (POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR)
#define EVENTS_EXCEPT POLLPRI

struct select {
	unsigned int nr_fds;   /* descriptors below this are looked at */
	unsigned int nr_words; /* of a set */
	u64 __user *user_sets[NR_SETS];
	struct poll_item *items;
	unsigned int nr_items;
	u64 words[]; /* of the sets, one after the other */
};

static u64 *get_set(struct select *select, enum set set)
{
	return select->words + set * select->nr_words;
}

static size_t set_bytes(const struct select *select)
{
	return select->nr_words * sizeof(u64);
}

/* Copies the bit maps from the user, and clears the bits from nr_fds on. */
static int read_sets(struct select *select)
{
	for (int i = 0; i < NR_SETS; i++) {
		u64 *set = get_set(select, i);

		if (!select->user_sets[i])
			continue;
		if (copy_from_user(set, select->user_sets[i], set_bytes(select)))
			return -EFAULT;
		if (select->nr_fds % 64)
			set[select->nr_fds / 64] &= BIT(select->nr_fds % 64) - 1;
	}
	return 0;
}

static unsigned int count_bits(u64 bits)
{
	unsigned int nr = 0;

	for (; bits; bits &= bits - 1)
		nr++;
	return nr;
}

static int make_items(struct select *select)
{
	const u64 *reads = get_set(select, SET_READ), *writes = get_set(select, SET_WRITE);
	const u64 *excepts = get_set(select, SET_EXCEPT);
	struct poll_item *item;
	unsigned int nr = 0;

	for (unsigned int word = 0; word < select->nr_words; word++)
		nr += count_bits(reads[word] | writes[word] | excepts[word]);
	item = kmalloc(nr * sizeof(*item));
	if (!item)
		return -ENOMEM;
	select->items = item;
	select->nr_items = nr;
	for (unsigned int word = 0; word < select->nr_words; word++) {
		u64 read = reads[word], write = writes[word], except = excepts[word];

		for (u64 left = read | write | except; left; left &= left - 1, item++) {
			u64 bit = left & -left;

			item->poll.fd = word * 64 + __builtin_ctzll(left);
			item->poll.events = (read & bit ? EVENTS_READ : 0) |
					    (write & bit ? EVENTS_WRITE : 0) |
					    (except & bit ? EVENTS_EXCEPT : 0);
		}
	}
	return 0;
}

/*
 * Writes the results over the bit maps. Returns the number of bits, or -EBADF if a descriptor is
 * not open.
 */
static long make_answer(struct select *select)
{
	u64 *read = get_set(select, SET_READ), *write = get_set(select, SET_WRITE);
	u64 *except = get_set(select, SET_EXCEPT);
	const struct poll_item *item = select->items;
	long nr = 0;

	for (unsigned int word = 0; word < select->nr_words; word++) {
		u64 ready[NR_SETS] = { 0 };

		for (u64 left = read[word] | write[word] | except[word]; left;
		     left &= left - 1, item++) {
			u64 bit = left & -left;
			u32 events = item->poll.revents;

			if (!events)
				continue;
			if (events & POLLNVAL)
				return -EBADF;
			ready[SET_READ] |= events & EVENTS_READ ? read[word] & bit : 0;
			ready[SET_WRITE] |= events & EVENTS_WRITE ? write[word] & bit : 0;
			ready[SET_EXCEPT] |= events & EVENTS_EXCEPT ? except[word] & bit : 0;
		}
		read[word] = ready[SET_READ];
		write[word] = ready[SET_WRITE];
		except[word] = ready[SET_EXCEPT];
		nr += count_bits(read[word]) + count_bits(write[word]) + count_bits(except[word]);
	}
	return nr;
}

static int write_sets(struct select *select)
{
	for (int i = 0; i < NR_SETS; i++) {
		if (select->user_sets[i] &&
		    copy_to_user(select->user_sets[i], get_set(select, i), set_bytes(select)))
			return -EFAULT;
	}
	return 0;
}

static long select_fds(int n, u64 __user *const user_sets[NR_SETS], u64 deadline_ns)
{
	unsigned int nr_fds, nr_words;
	struct select *select;
	long ret;

	if (n < 0)
		return -EINVAL;
	nr_fds = min((unsigned int)n, files_nr_slots(current->files));
	nr_words = DIV_ROUND_UP(nr_fds, 64);
	select = kzalloc(sizeof(*select) + (size_t)NR_SETS * nr_words * sizeof(u64));
	if (!select)
		return -ENOMEM;
	select->nr_fds = nr_fds;
	select->nr_words = nr_words;
	memcpy(select->user_sets, user_sets, sizeof(select->user_sets));
	ret = read_sets(select);
	if (!ret)
		ret = make_items(select);
	if (!ret)
		ret = poll_items(select->items, select->nr_items, deadline_ns);
	if (ret >= 0)
		ret = make_answer(select);
	if (ret >= 0 && write_sets(select))
		ret = -EFAULT;
	kfree(select->items);
	kfree(select);
	return ret;
}

#define USEC_PER_SEC 1000000

/* Converts a timeval to a deadline. Accepts more than a million microseconds. */
static int timeval_deadline(const struct timeval __user *user_time, u64 *deadline_ns)
{
	struct timespec64 time;
	struct timeval tv;

	*deadline_ns = TIME_NEVER_NS;
	if (!user_time)
		return 0;
	if (copy_from_user(&tv, user_time, sizeof(tv)))
		return -EFAULT;
	if (__builtin_add_overflow(tv.tv_sec, tv.tv_usec / USEC_PER_SEC, &time.tv_sec))
		return -EINVAL;
	time.tv_nsec = tv.tv_usec % USEC_PER_SEC * (s64)NSEC_PER_USEC;
	return poll_deadline_of(&time, deadline_ns);
}

static void return_timeval(struct timeval __user *user_time, u64 deadline_ns)
{
	struct timespec64 left = poll_time_left(deadline_ns);
	struct timeval tv = { .tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000 };

	if (!user_time)
		return;
	if (copy_to_user(user_time, &tv, sizeof(tv)))
		return;
}

SYSCALL_DEFINE5(select, int, n, u64 __user *, reads, u64 __user *, writes, u64 __user *, excepts,
		struct timeval __user *, timeout)
{
	u64 __user *const sets[NR_SETS] = { reads, writes, excepts };
	u64 deadline_ns;
	long ret = timeval_deadline(timeout, &deadline_ns);

	if (ret)
		return ret;
	ret = poll_end_mask(select_fds(n, sets, deadline_ns), false);
	return_timeval(timeout, deadline_ns);
	return ret;
}

/* A system call has six arguments, so the mask and its size are passed in a struct. */
struct select_mask {
	const u64 __user *mask;
	size_t bytes;
};

SYSCALL_DEFINE6(pselect6, int, n, u64 __user *, reads, u64 __user *, writes, u64 __user *, excepts,
		struct timespec64 __user *, timeout, const struct select_mask __user *, user_mask)
{
	u64 __user *const sets[NR_SETS] = { reads, writes, excepts };
	struct select_mask mask = { 0 };
	u64 deadline_ns;
	long ret;

	if (user_mask && copy_from_user(&mask, user_mask, sizeof(mask)))
		return -EFAULT;
	ret = poll_deadline(timeout, &deadline_ns);
	if (!ret)
		ret = poll_begin_mask(mask.mask, mask.bytes);
	if (ret)
		return ret;
	ret = poll_end_mask(select_fds(n, sets, deadline_ns), mask.mask);
	poll_return_time(timeout, deadline_ns);
	return ret;
}
