// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pipes: a ring of bytes, in pages that are allocated when bytes are written and freed when they
 * are read. A pipe belongs to an inode, named (FIFO) or unnamed, and exists as long as the inode.
 * When the last end is closed, unread bytes are dropped.
 *
 * Whole pages are not copied inside the kernel: they become pages of the ring, and are taken out of
 * it.
 *
 * A write of up to PIPE_BUF bytes is atomic, or waits; longer writes arrive here in chunks of that
 * size. Bytes that come wake one reader, room wakes one writer, and both wake all pollers.
 */

#include "pipe.h"

#include "fd.h"
#include "mount.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/poll.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define PIPE_BUF PAGE_SIZE

static void drop_page(struct pipe *pipe, u64 at)
{
	struct page **page = pipe_page_at(pipe, at);

	if (*page)
		page_put(*page);
	*page = NULL;
}

void pipe_take_out(struct pipe *pipe, void *buf, size_t n)
{
	ASSERT_HELD(&pipe->lock);
	DEBUG_ASSERT(n <= pipe_used(pipe) && pipe_used(pipe) <= PIPE_BYTES);
	while (n) {
		size_t piece = pipe_piece_bytes(pipe->head, n);
		char *src = page_address(*pipe_page_at(pipe, pipe->head));

		if (buf) {
			memcpy(buf, src + pipe->head % PAGE_SIZE, piece);
			buf = (char *)buf + piece;
		}
		n -= piece;
		WRITE_ONCE(pipe->head, pipe->head + piece);
		/* In a full pipe the newest bytes may share the page of the oldest. */
		if (pipe->head % PAGE_SIZE == 0 && pipe_used(pipe) <= PIPE_BYTES - PAGE_SIZE)
			drop_page(pipe, pipe->head - 1);
	}
}

/* Lets the next byte of an empty pipe be the first of a page. */
static void align_empty(struct pipe *pipe)
{
	u64 start = ALIGN_UP(pipe->tail, PAGE_SIZE);

	if (pipe->head != pipe->tail || pipe->tail == start)
		return;
	drop_page(pipe, pipe->tail);
	WRITE_ONCE(pipe->head, start);
	WRITE_ONCE(pipe->tail, start);
}

/*
 * Adds all n bytes, for which there is room, or, without memory, none. whole is a page with exactly
 * these bytes, or NULL. Locked.
 */
static bool put_in(struct pipe *pipe, const void *buf, size_t n, struct page *whole)
{
	u64 tail;

	ASSERT_HELD(&pipe->lock);
	DEBUG_ASSERT(pipe_used(pipe) + n <= PIPE_BYTES);
	if (whole)
		align_empty(pipe);
	tail = pipe->tail;
	if (whole && tail % PAGE_SIZE == 0 && !*pipe_page_at(pipe, tail)) {
		page_get(whole);
		*pipe_page_at(pipe, tail) = whole;
		WRITE_ONCE(pipe->tail, tail + n);
		return true;
	}
	for (u64 at = tail; at < tail + n; at += pipe_piece_bytes(at, n)) {
		struct page **page = pipe_page_at(pipe, at);

		if (!*page && !page_is_scarce())
			*page = page_alloc(0, 0);
		if (!*page)
			return false;
	}
	while (n) {
		size_t piece = pipe_piece_bytes(tail, n);

		memcpy((char *)page_address(*pipe_page_at(pipe, tail)) + tail % PAGE_SIZE, buf,
		       piece);
		buf = (const char *)buf + piece;
		n -= piece;
		tail += piece;
	}
	WRITE_ONCE(pipe->tail, tail);
	return true;
}

/* Takes the oldest bytes, if they fill a whole page. Its reference passes to the caller. */
static struct page *pipe_take_page(struct file *file)
{
	struct pipe *pipe = pipe_of(file);
	struct page *page = NULL, **at;

	mutex_lock(&pipe->lock);
	if (pipe->head % PAGE_SIZE == 0 && pipe_bytes(pipe) >= PAGE_SIZE) {
		at = pipe_page_at(pipe, pipe->head);
		page = *at;
		*at = NULL;
		WRITE_ONCE(pipe->head, pipe->head + PAGE_SIZE);
	}
	mutex_unlock(&pipe->lock);
	if (page)
		wake_up(&pipe->write_wait);
	return page;
}

/* Takes bytes. Returns their number; 0: the pipe is empty. */
static size_t try_read(struct pipe *pipe, void *buf, size_t n)
{
	mutex_lock(&pipe->lock);
	n = min(n, pipe_bytes(pipe));
	pipe_take_out(pipe, buf, n);
	mutex_unlock(&pipe->lock);
	if (n)
		wake_up(&pipe->write_wait);
	return n;
}

static ssize_t pipe_read_more(struct file *file, void *buf, size_t n)
{
	return try_read(pipe_of(file), buf, n);
}

void pipe_wake_readers(struct pipe *pipe)
{
	if (!list_empty(&pipe->read_wait.waiters))
		wake_up(&pipe->read_wait);
}

static ssize_t pipe_read(struct file *file, void *buf, size_t n, u64 pos)
{
	struct pipe *pipe = pipe_of(file);
	ssize_t ret = 0;

	while (!ret) {
		/*
		 * Read before the bytes, because the last writer's bytes come before it closes its
		 * end.
		 */
		bool at_end = pipe_is_at_end(pipe);

		ret = (ssize_t)try_read(pipe, buf, n);
		if (ret || at_end)
			break;
		ret = -EAGAIN;
		if (!(READ_ONCE(file->flags) & O_NONBLOCK))
			ret = wait_event_exclusive(&pipe->read_wait,
						   pipe_bytes(pipe) || pipe_is_at_end(pipe));
	}
	wake_up_next(&pipe->read_wait, pipe_bytes(pipe));
	return ret;
}

static __always_inline ssize_t write_now(struct pipe *pipe, const void *buf, size_t n,
					 struct page *whole)
{
	if (!pipe->nr_readers)
		return -EPIPE;
	if (pipe_room(pipe) < n)
		return -EAGAIN;
	return put_in(pipe, buf, n, whole) ? (ssize_t)n : -ENOMEM;
}

ssize_t pipe_try_write(struct pipe *pipe, const void *buf, size_t n, struct page *whole)
{
	ssize_t ret;

	mutex_lock(&pipe->lock);
	ret = write_now(pipe, buf, n, whole);
	mutex_unlock(&pipe->lock);
	return ret;
}

ssize_t pipe_write_reserved(struct pipe *pipe, const void *buf, size_t n, size_t reserved)
{
	ssize_t ret;

	mutex_lock(&pipe->lock);
	DEBUG_ASSERT(n <= reserved && reserved <= pipe->reserved);
	WRITE_ONCE(pipe->reserved, pipe->reserved - reserved);
	ret = n ? write_now(pipe, buf, n, NULL) : 0;
	if (ret == -ENOMEM)
		WRITE_ONCE(pipe->reserved, pipe->reserved + reserved);
	mutex_unlock(&pipe->lock);
	return ret;
}

/* Waits for any room, of which one writer at a time is told; if that is too little, for more. */
static int wait_to_write(struct pipe *pipe, size_t n)
{
	int error = wait_event_exclusive(&pipe->write_wait,
					 pipe_room(pipe) || !READ_ONCE(pipe->nr_readers));

	if (error || pipe_room(pipe) >= n)
		return error;
	wake_up_next(&pipe->write_wait, pipe_room(pipe));
	return wait_event_interruptible(&pipe->write_wait,
					pipe_room(pipe) >= n || !READ_ONCE(pipe->nr_readers));
}

static __always_inline ssize_t write_bytes(struct file *file, const void *buf, size_t n,
					   struct page *whole)
{
	struct pipe *pipe = pipe_of(file);
	ssize_t ret;

	do {
		ret = pipe_try_write(pipe, buf, n, whole);
		if (ret > 0)
			pipe_wake_readers(pipe);
		if (ret == -EPIPE)
			signal_send_self(SIGPIPE);
		if (ret == -ENOMEM && oom_wait()) {
			ret = 0;
			continue;
		}
		if (ret != -EAGAIN || READ_ONCE(file->flags) & O_NONBLOCK)
			break;
		ret = wait_to_write(pipe, n);
	} while (!ret);
	wake_up_next(&pipe->write_wait, pipe_room(pipe));
	return ret;
}

static ssize_t pipe_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	return write_bytes(file, buf, n, NULL);
}

static ssize_t pipe_write_page(struct file *file, struct page *page)
{
	return write_bytes(file, page_address(page), PAGE_SIZE, page);
}

static noinline void add_poller(struct file *file, struct poll_table *table)
{
	struct pipe *pipe = pipe_of(file);

	if (file_may_read(file))
		poll_wait(table, &pipe->read_wait);
	if (file_may_write(file))
		poll_wait(table, &pipe->write_wait);
}

/*
 * Takes no lock. A poller was added to the wait queues, under their locks, before it looks here,
 * and a change wakes them, under their locks, after it was made. So either the poller sees the
 * change, or the change finds the poller.
 */
static u32 pipe_poll(struct file *file, struct poll_table *table)
{
	const struct pipe *pipe = pipe_of(file);
	u32 events = 0;

	if (table)
		add_poller(file, table);
	if (file_may_read(file)) {
		/* A FIFO that nobody has opened for writing yet is not at its end. */
		if (!READ_ONCE(pipe->nr_writers) && READ_ONCE(pipe->nr_writers_ever) != file->pos)
			events |= POLLHUP;
		if (pipe_used(pipe))
			events |= POLLIN | POLLRDNORM;
	}
	if (file_may_write(file)) {
		if (pipe_room(pipe) >= PIPE_BUF)
			events |= POLLOUT | POLLWRNORM;
		if (!READ_ONCE(pipe->nr_readers))
			events |= POLLERR;
	}
	return events;
}

#define FIONREAD 0x541b

static long pipe_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct pipe *pipe = pipe_of(file);
	int nr;

	if (command != FIONREAD)
		return -ENOTTY;
	mutex_lock(&pipe->lock);
	nr = pipe_used(pipe);
	mutex_unlock(&pipe->lock);
	return put_user(nr, (int __user *)arg);
}

static void add_ends(struct pipe *pipe, const struct file *file)
{
	if (file_may_read(file)) {
		WRITE_ONCE(pipe->nr_readers, pipe->nr_readers + 1);
		WRITE_ONCE(pipe->nr_readers_ever, pipe->nr_readers_ever + 1);
	}
	if (file_may_write(file)) {
		WRITE_ONCE(pipe->nr_writers, pipe->nr_writers + 1);
		WRITE_ONCE(pipe->nr_writers_ever, pipe->nr_writers_ever + 1);
	}
}

static void pipe_release(struct file *file)
{
	struct pipe *pipe = pipe_of(file);

	mutex_lock(&pipe->lock);
	DEBUG_ASSERT(!file_may_read(file) || pipe->nr_readers);
	DEBUG_ASSERT(!file_may_write(file) || pipe->nr_writers);
	if (file_may_read(file))
		WRITE_ONCE(pipe->nr_readers, pipe->nr_readers - 1);
	if (file_may_write(file))
		WRITE_ONCE(pipe->nr_writers, pipe->nr_writers - 1);
	if (!pipe->nr_readers && !pipe->nr_writers) {
		for (u64 i = 0; i < PIPE_NR_PAGES; i++)
			drop_page(pipe, i * PAGE_SIZE);
		pipe->head = pipe->tail = 0;
	}
	mutex_unlock(&pipe->lock);
	wake_up_all(&pipe->read_wait);
	wake_up_all(&pipe->write_wait);
}

/*
 * Opens a FIFO or, by /proc/self/fd, an unnamed pipe, which does not wait. The position, which is
 * not used otherwise, is the number of earlier writers of a FIFO.
 */
static int pipe_open(struct file *file)
{
	struct pipe *pipe = pipe_of(file);
	bool reads = file_may_read(file), writes = file_may_write(file), wait = false;
	bool is_fifo = file->mount;
	unsigned int *ever = reads ? &pipe->nr_writers_ever : &pipe->nr_readers_ever;
	unsigned int seen;
	int error = 0;

	if (!reads && !writes)
		return -EINVAL;
	mutex_lock(&pipe->lock);
	if (is_fifo && !reads && file->flags & O_NONBLOCK && !pipe->nr_readers)
		error = -ENXIO;
	if (!error) {
		add_ends(pipe, file);
		file->pos = is_fifo && !pipe->nr_writers ? pipe->nr_writers_ever : 0;
	}
	if (is_fifo && !(file->flags & O_NONBLOCK))
		wait = !(reads ? pipe->nr_writers : pipe->nr_readers);
	seen = *ever;
	mutex_unlock(&pipe->lock);
	if (error)
		return error;
	wake_up_all(&pipe->open_wait);
	/* The other end may be closed again at once, so wait for the number of opens to change. */
	if (wait)
		error = wait_event_interruptible(&pipe->open_wait, READ_ONCE(*ever) != seen);
	if (error)
		pipe_release(file);
	return error;
}

/* Counts half for each end, because most processes that made a pipe have both ends open. */
static u64 pipe_held_bytes(const struct file *file)
{
	const struct pipe *pipe = pipe_of(file);
	u64 bytes = sizeof(*pipe);

	for (unsigned int i = 0; i < PIPE_NR_PAGES; i++)
		bytes += READ_ONCE(pipe->pages[i]) ? PAGE_SIZE : 0;
	return READ_ONCE(pipe->nr_readers) && READ_ONCE(pipe->nr_writers) ? bytes / 2 : bytes;
}

static const struct file_ops pipe_ops = {
	.read = pipe_read,
	.read_more = pipe_read_more,
	.write = pipe_write,
	.write_page = pipe_write_page,
	.take_page = pipe_take_page,
	.ioctl = pipe_ioctl,
	.poll = pipe_poll,
	.open = pipe_open,
	.release = pipe_release,
	.held_bytes = pipe_held_bytes,
};

static void pipe_free(struct inode *inode)
{
	struct pipe *pipe = inode->private;

	DEBUG_ASSERT(!pipe->nr_readers && !pipe->nr_writers && pipe->head == pipe->tail);
	space_uncharge(inode, sizeof(*pipe));
	kfree(pipe);
}

static const struct inode_ops pipe_inode_ops = { .free = pipe_free };

int pipe_attach(struct inode *inode)
{
	struct pipe *pipe;

	if (!space_charge(inode, sizeof(*pipe), false))
		return -ENOSPC;
	pipe = kzalloc(sizeof(*pipe));
	if (!pipe) {
		space_uncharge(inode, sizeof(*pipe));
		return -ENOMEM;
	}
	mutex_init(&pipe->lock);
	wait_queue_init(&pipe->read_wait);
	wait_queue_init(&pipe->write_wait);
	wait_queue_init(&pipe->open_wait);
	inode->private = pipe;
	inode->ops = &pipe_inode_ops;
	inode->file_ops = &pipe_ops;
	return 0;
}

/*
 * Makes one end of an unnamed pipe. Does not use pipe_open(), because there is nothing to wait for.
 */
static struct file *make_end(struct inode *inode, u32 flags)
{
	struct file *file = file_alloc(&(struct path){ NULL, inode }, flags);

	if (file)
		add_ends(inode->private, file);
	return file;
}

/* Makes a pipe with both ends. Returns 0 or -ENOMEM. */
static int make_pipe(struct file *ends[2], u32 flags)
{
	struct inode *inode = inode_alloc_unnamed("pipe", S_IFIFO | 0600);

	if (!inode)
		return -ENOMEM;
	if (pipe_attach(inode))
		goto out_put;
	ends[0] = make_end(inode, O_RDONLY | flags);
	if (!ends[0])
		goto out_put;
	ends[1] = make_end(inode, O_WRONLY | flags);
	if (!ends[1]) {
		file_put(ends[0]);
		goto out_put;
	}
	inode_put(inode);
	return 0;
out_put:
	inode_put(inode);
	return -ENOMEM;
}

static long pipe_fds(int __user *user_fds, u32 flags)
{
	struct file *ends[2];
	int error;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	error = make_pipe(ends, flags & O_NONBLOCK);
	return error ?: fd_install_pair(ends, flags & O_CLOEXEC, user_fds);
}

SYSCALL_DEFINE1(pipe, int __user *, fds)
{
	return pipe_fds(fds, 0);
}

SYSCALL_DEFINE2(pipe2, int __user *, fds, u32, flags)
{
	return pipe_fds(fds, flags);
}
