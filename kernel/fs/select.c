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
static const u32 set_events[NR_SETS] = {
	[SET_READ] = POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR,
	[SET_WRITE] = POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR,
	[SET_EXCEPT] = POLLPRI,
};

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

static bool test_bit(const u64 *set, unsigned int fd)
{
	return set[fd / 64] >> (fd % 64) & 1;
}

static u32 events_of(struct select *select, unsigned int fd)
{
	u32 events = 0;

	for (int i = 0; i < NR_SETS; i++)
		events |= test_bit(get_set(select, i), fd) ? set_events[i] : 0;
	return events;
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

static int make_items(struct select *select)
{
	unsigned int nr = 0;

	for (unsigned int fd = 0; fd < select->nr_fds; fd++)
		nr += events_of(select, fd) != 0;
	select->items = kmalloc(nr * sizeof(*select->items));
	if (!select->items)
		return -ENOMEM;
	for (unsigned int fd = 0; fd < select->nr_fds; fd++) {
		u32 events = events_of(select, fd);

		if (events)
			select->items[select->nr_items++] =
				(struct poll_item){ .fd = fd, .events = events };
	}
	return 0;
}

/*
 * Writes the results over the bit maps. Returns the number of bits, or -EBADF if a descriptor is
 * not open.
 */
static long make_answer(struct select *select)
{
	long nr = 0;

	for (unsigned int i = 0; i < select->nr_items; i++) {
		const struct poll_item *item = &select->items[i];
		unsigned int fd = item->fd;

		if (item->revents & POLLNVAL)
			return -EBADF;
		for (int j = 0; j < NR_SETS; j++) {
			u64 *set = get_set(select, j);

			if (!test_bit(set, fd))
				continue;
			if (item->revents & set_events[j])
				nr++;
			else
				set[fd / 64] &= ~BIT(fd % 64);
		}
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
