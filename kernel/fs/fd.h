/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_FD_H
#define FS_FD_H

/* Open files and descriptors. Process context; all functions may sleep. */

#include "inode.h"
#include "path.h"

#include <lego/fd_tree.h>
#include <lego/process.h>
#include <lego/sched.h>

struct files {
	atomic_t refs;
	spinlock_t lock;     /* guards the fields below */
	int end;	     /* above the highest descriptor ever used */
	struct fd_tree tree; /* of files; a mark means close-on-exec */
};

/* Linux's values. */
enum {
	SEEK_SET,
	SEEK_CUR,
	SEEK_END,
	SEEK_DATA,
	SEEK_HOLE
};

/* file.c */
struct file *file_alloc(const struct path *path, u32 flags); /* takes references */
/*
 * Makes an open file without content, with operations and private data, which release() frees. Its
 * path is the name. mode is 0600, or a socket's. NULL: no memory; the caller still owns private.
 */
struct file *file_alloc_anon(const char *name, u32 mode, const struct file_ops *ops, void *private,
			     u32 flags);
/* Returns true if a reference was dropped; false: the caller has the last one. */
bool file_put_unless_last(struct file *file);
u64 file_own_bytes(const struct file *file); /* like file_held_bytes(), even if counted already */
int file_call_open(struct file *file);	     /* by its creator, once; on error, file_put() it */
static inline bool file_is_pipe(const struct file *file)
{
	return S_ISFIFO(file->inode->mode);
}
/* Returns true if the file has no position. */
static inline bool file_is_stream(const struct file *file)
{
	const struct inode *inode = file->inode;

	if (S_ISFIFO(inode->mode) || (file->ops && file->ops->is_stream))
		return true;
	if (inode->device)
		return inode->device->stream;
	return S_ISANON(inode->mode) || S_ISSOCK(inode->mode);
}

/* Counts a call that reads or writes, and its result, for /proc/<pid>/io. */
static inline void file_count_io(bool write, ssize_t done)
{
	struct io_counts *io = &current->io;

	io->nr_calls[write]++;
	if (done > 0)
		io->nr_bytes[write] += done;
}

/*
 * pipe_splice.c: ends of pipes. nonblock, not O_NONBLOCK: -EAGAIN instead of waiting. Errors of
 * signals are those of wait_event_interruptible(). A write to a pipe without readers sends SIGPIPE
 * and returns -EPIPE.
 *
 * Accepts some of n bytes. Returns their number or a negative errno.
 */
typedef ssize_t (*pipe_put_fn)(void *data, const void *bytes, size_t n);
/*
 * Waits for room for n bytes or a page, and reserves room for at most n: no lock is held, but
 * nobody else can use it. Returns how much, or a negative errno.
 */
ssize_t pipe_reserve(struct file *file, size_t n, bool nonblock);
/* Writes n bytes, or none, in room that was reserved, and gives back the rest of it. */
ssize_t pipe_put(struct file *file, const void *buf, size_t n, size_t reserved);
/*
 * Waits for bytes, shows up to n of them to put(), and takes those that it accepts. put() may wait:
 * no lock is held, but nobody else can read meanwhile. whole: in one piece.
 */
ssize_t pipe_drain(struct file *file, size_t n, bool nonblock, bool whole, pipe_put_fn put,
		   void *data);
/* Moves bytes to another pipe; keeps: copies them. */
ssize_t pipe_move(struct file *in, struct file *out, size_t n, bool keeps, bool nonblock);
/* Replaces the flags in mask atomically. */
void file_set_flags(struct file *file, u32 mask, u32 flags);

/*
 * fdtable.c: installs a file at the lowest free descriptor from `from` on, and takes over the
 * reference. Returns the descriptor or -EMFILE, -ENOMEM.
 */
int fd_install(struct file *file, int from, bool close_on_exec);
/* The same from 0 on. Drops the reference if there is no free descriptor. */
int fd_install_or_put(struct file *file, bool close_on_exec);
/* Installs two files and copies their numbers to the user. After an error, neither is installed. */
int fd_install_pair(struct file *const files[2], bool close_on_exec, int __user *user_fds);

/*
 * Replaces the file of a valid descriptor by another one, whose reference passes to the table, or
 * by none. Closes the old file. Returns 1 if there was one, 0 if not, or -ENOMEM with nothing
 * changed.
 */
int fd_replace(int fd, struct file *file, bool close_on_exec);
long fd_set_close_on_exec(int fd, bool on); /* 0 or -EBADF */
bool fd_get_close_on_exec(int fd);

/* Returns the limit of the current process's descriptors: RLIMIT_NOFILE, at most FILE_MAX_FDS. */
int fd_limit(void);

/* Returns the file of a descriptor of any table, with a reference, or NULL if it is not open. */
struct file *files_get_file(struct files *files, int fd);
/* Returns the first open descriptor from fd on, or -1. */
int files_next_fd(struct files *files, int fd);

/* Returns whether the descriptor may be open. It may be above a limit that was lowered since. */
static inline bool fd_is_valid(int fd)
{
	return fd >= 0 && fd < FILE_MAX_FDS;
}

/*
 * A file in use by a system call of the current thread. It is counted only if other threads use the
 * table of descriptors: else nobody can close the descriptor before the call ends. Threads of a
 * process share its table without references of their own.
 */
struct fd_use {
	struct file *file; /* NULL: fd is not open, or open as a path only (O_PATH) */
	bool counted;
};

static inline struct fd_use fd_use(int fd)
{
	const struct files *files = current->files;
	struct file *file;

	if (unlikely(READ_ONCE(current->proc->nr_threads) != 1 || atomic_read(&files->refs) != 1)) {
		file = fd_get(fd);
		return (struct fd_use){ file, file };
	}
	file = fd_is_valid(fd) ? fd_tree_get(&files->tree, fd) : NULL;
	if (file && unlikely(file->flags & O_PATH))
		file = NULL;
	return (struct fd_use){ file, false };
}

static inline void fd_use_end(struct fd_use use)
{
	if (unlikely(use.counted))
		file_put(use.file);
}

/* Like fd_get(), but also returns a file that is open as a path only (O_PATH). */
struct file *fd_get_any(int fd);
/*
 * Like fd_get(), but only for files with these operations. ERR_PTR(-EBADF), or -EINVAL for others.
 */
struct file *fd_get_with(int fd, const struct file_ops *ops);
/* Finds the place of fd or AT_FDCWD, with references. Returns 0 or -EBADF. */
int fd_get_path(int fd, struct path *path);

#endif
