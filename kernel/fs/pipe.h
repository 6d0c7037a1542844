/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_PIPE_H
#define FS_PIPE_H

/* A pipe: pipe.c is its ends as files, pipe_splice.c moves bytes between them. */

#include "inode.h"

#include <lego/mutex.h>
#include <lego/page.h>
#include <lego/wait.h>

#define PIPE_NR_PAGES (PIPE_BYTES / PAGE_SIZE)

struct pipe {
	struct mutex lock;		   /* guards the rest; no user memory is touched under it */
	u64 head, tail;			   /* bytes read and written so far */
	struct page *pages[PIPE_NR_PAGES]; /* of byte i: i / PAGE_SIZE % PIPE_NR_PAGES */
	bool claimed;			   /* by pipe_drain(): nobody else may read */
	size_t reserved;		   /* by pipe_reserve(): room that nobody else may use */
	unsigned int nr_readers, nr_writers;
	unsigned int nr_readers_ever, nr_writers_ever; /* for open() of a FIFO */
	struct wait_queue read_wait;		       /* bytes came, or the last writer went */
	struct wait_queue write_wait;		       /* room came, or the last reader went */
	struct wait_queue open_wait;		       /* an end was opened */
};

static inline struct pipe *pipe_of(const struct file *file)
{
	return file->inode->private;
}

static inline struct page **pipe_page_at(struct pipe *pipe, u64 at)
{
	return &pipe->pages[at / PAGE_SIZE % PIPE_NR_PAGES];
}

/* Returns how many of n bytes are in the same page. */
static inline size_t pipe_piece_bytes(u64 at, size_t n)
{
	return min(n, PAGE_SIZE - (size_t)(at % PAGE_SIZE));
}

/* Returns how many bytes are in a pipe, claimed or not; any context. */
static inline size_t pipe_used(const struct pipe *pipe)
{
	return READ_ONCE(pipe->tail) - READ_ONCE(pipe->head);
}

/* Returns how many bytes may be read now; any context. */
static inline size_t pipe_bytes(const struct pipe *pipe)
{
	return READ_ONCE(pipe->claimed) ? 0 : pipe_used(pipe);
}

/* Returns true if there will be no more bytes to read; any context. */
static inline bool pipe_is_at_end(const struct pipe *pipe)
{
	return !READ_ONCE(pipe->nr_writers) && !READ_ONCE(pipe->claimed);
}

/* Returns how many more there may be; any context. */
static inline size_t pipe_room(const struct pipe *pipe)
{
	size_t taken = pipe_used(pipe) + READ_ONCE(pipe->reserved);

	return PIPE_BYTES - min(taken, (size_t)PIPE_BYTES);
}

/* Takes n bytes out, which there are, and copies them to buf unless it is NULL. Locked. */
void pipe_take_out(struct pipe *pipe, void *buf, size_t n);
/* Writes n bytes. Returns n, or a negative errno: -EAGAIN if there is no room. */
ssize_t pipe_try_write(struct pipe *pipe, const void *buf, size_t n, struct page *whole);
/* The same, also for 0 bytes, in room that was reserved, which it gives back except for -ENOMEM. */
ssize_t pipe_write_reserved(struct pipe *pipe, const void *buf, size_t n, size_t reserved);
/* Called when bytes have come, after an unlock of the mutex: pairs with prepare_wait(). */
void pipe_wake_readers(struct pipe *pipe);

#endif
