// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"
#include "lock.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/*
 * Descriptors. A file is looked up with a reference under the table's spinlock and used without
 * it; closing a descriptor that another thread is using ends nothing for that thread.
 */

#define NR_WORDS (FILE_MAX_FDS / 64)

struct files {
	atomic_t refs;
	spinlock_t lock; /* guards the rest */
	int end;	 /* above the highest descriptor there ever was */
	struct file *fds[FILE_MAX_FDS];
	u64 open[NR_WORDS]; /* a bit for each descriptor */
	u64 close_on_exec[NR_WORDS];
};

static void set_bit(u64 *words, int fd, bool on)
{
	u64 bit = BIT(fd % 64);

	words[fd / 64] &= ~bit;
	if (on)
		words[fd / 64] |= bit;
}

/* Returns the first descriptor from `from` on whose bit is not set, or limit. */
static int next_clear(const u64 *words, int from, int limit)
{
	u64 clear = from < limit ? ~words[from / 64] & ~0ULL << from % 64 : 0;
	int fd = ALIGN_DOWN(from, 64);

	while (!clear) {
		fd += 64;
		if (fd >= limit)
			return limit;
		clear = ~words[fd / 64];
	}
	return min(fd + __builtin_ctzll(clear), limit);
}

static bool get_close_on_exec(const struct files *files, int fd)
{
	return files->close_on_exec[fd / 64] & BIT(fd % 64);
}

/* A descriptor that could be open: also one above a limit that was lowered since. */
static bool fd_is_valid(int fd)
{
	return fd >= 0 && fd < FILE_MAX_FDS;
}

int fd_limit(void)
{
	u64 limit = READ_ONCE(current->proc->rlimits[RLIMIT_NOFILE].cur);

	return (int)min(limit, (u64)FILE_MAX_FDS);
}

/* The reference to file passes to the table, that to the old one back. */
static struct file *set_slot(struct files *files, int fd, struct file *file, bool close_on_exec)
{
	struct file *old = files->fds[fd];

	DEBUG_ASSERT(fd_is_valid(fd));
	DEBUG_ASSERT(atomic_read(&files->refs) == 1 || lock_check_held(&files->lock.map));
	files->fds[fd] = file;
	set_bit(files->open, fd, file);
	set_bit(files->close_on_exec, fd, close_on_exec);
	files->end = max(files->end, fd + 1);
	return old;
}

static struct files *alloc(void)
{
	struct files *files = kzalloc(sizeof(*files));

	if (!files)
		return NULL;
	atomic_set(&files->refs, 1);
	spin_lock_init(&files->lock);
	return files;
}

struct files *files_alloc(void)
{
	struct files *files = alloc();
	struct file *console;

	if (!files)
		return NULL;
	console = file_open("/dev/console", O_RDWR, 0);
	if (IS_ERR(console)) {
		kfree(files);
		return NULL;
	}
	for (int fd = 0; fd <= 2; fd++) {
		file_get(console);
		set_slot(files, fd, console, false);
	}
	file_put(console);
	return files;
}

struct files *files_copy(struct files *files)
{
	struct files *copy = alloc();

	if (!copy)
		return NULL;
	spin_lock(&files->lock);
	for (int fd = 0; fd < files->end; fd++) {
		if (!files->fds[fd])
			continue;
		file_get(files->fds[fd]);
		set_slot(copy, fd, files->fds[fd], get_close_on_exec(files, fd));
	}
	spin_unlock(&files->lock);
	return copy;
}

struct files *files_get(struct files *files)
{
	DEBUG_ASSERT(atomic_read(&files->refs) > 0);
	atomic_inc(&files->refs);
	return files;
}

static void close_file(struct files *files, struct file *file)
{
	lock_release_owner(file, files);
	file_put(file);
}

void files_put(struct files *files)
{
	DEBUG_ASSERT(atomic_read(&files->refs) > 0);
	might_sleep();
	if (!atomic_dec_and_test(&files->refs))
		return;
	for (int fd = 0; fd < files->end; fd++) {
		if (files->fds[fd])
			close_file(files, files->fds[fd]);
	}
	kfree(files);
}

u64 files_held_bytes(struct files *files, u32 count)
{
	u64 bytes = sizeof(*files);

	spin_lock(&files->lock);
	for (int fd = 0; fd < files->end; fd++) {
		if (files->fds[fd])
			bytes += file_held_bytes(files->fds[fd], count);
	}
	spin_unlock(&files->lock);
	return bytes;
}

/* Also right for a table that others use meanwhile: mark and file are taken under one lock. */
void files_close_on_exec(struct files *files)
{
	for (int fd = 0; fd < FILE_MAX_FDS; fd++) {
		struct file *file = NULL;

		if (!READ_ONCE(files->close_on_exec[fd / 64])) {
			fd |= 63;
			continue;
		}
		spin_lock(&files->lock);
		if (get_close_on_exec(files, fd))
			file = set_slot(files, fd, NULL, false);
		spin_unlock(&files->lock);
		if (file)
			close_file(files, file);
	}
}

struct file *files_get_file(struct files *files, int fd)
{
	struct file *file;

	if (!fd_is_valid(fd))
		return NULL;
	spin_lock(&files->lock);
	file = files->fds[fd];
	if (file)
		file_get(file);
	spin_unlock(&files->lock);
	return file;
}

struct file *fd_get_any(int fd)
{
	return files_get_file(current->proc->files, fd);
}

struct file *fd_get(int fd)
{
	struct file *file = fd_get_any(fd);

	if (!file || !(file->flags & O_PATH))
		return file;
	file_put(file);
	return NULL;
}

struct file *fd_get_with(int fd, const struct file_ops *ops)
{
	struct file *file = fd_get(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	if (file->ops == ops)
		return file;
	file_put(file);
	return ERR_PTR(-EINVAL);
}

int fd_install(struct file *file, int from, bool close_on_exec)
{
	struct files *files = current->proc->files;
	int limit = fd_limit(), fd;

	DEBUG_ASSERT(from >= 0 && atomic_read(&file->refs) > 0);
	spin_lock(&files->lock);
	fd = next_clear(files->open, from, limit);
	if (fd < limit)
		set_slot(files, fd, file, close_on_exec);
	spin_unlock(&files->lock);
	return fd < limit ? fd : -EMFILE;
}

int fd_install_or_put(struct file *file, bool close_on_exec)
{
	int fd = fd_install(file, 0, close_on_exec);

	if (fd < 0)
		file_put(file);
	return fd;
}

int fd_install_pair(struct file *const files[2], bool close_on_exec, int __user *user_fds)
{
	int fds[2], error;

	fds[0] = fd_install_or_put(files[0], close_on_exec);
	if (fds[0] < 0) {
		file_put(files[1]);
		return fds[0];
	}
	fds[1] = fd_install_or_put(files[1], close_on_exec);
	error = min(fds[1], 0);
	if (!error)
		error = copy_to_user(user_fds, fds, sizeof(fds));
	if (!error)
		return 0;
	fd_replace(fds[0], NULL, false);
	if (fds[1] >= 0)
		fd_replace(fds[1], NULL, false);
	return error;
}

long fd_set_close_on_exec(int fd, bool on)
{
	struct files *files = current->proc->files;
	long error = 0;

	spin_lock(&files->lock);
	if (fd_is_valid(fd) && files->fds[fd])
		set_bit(files->close_on_exec, fd, on);
	else
		error = -EBADF;
	spin_unlock(&files->lock);
	return error;
}

bool fd_get_close_on_exec(int fd)
{
	return fd_is_valid(fd) && get_close_on_exec(current->proc->files, fd);
}

bool fd_replace(int fd, struct file *file, bool close_on_exec)
{
	struct files *files = current->proc->files;
	struct file *old;

	spin_lock(&files->lock);
	old = set_slot(files, fd, file, close_on_exec);
	spin_unlock(&files->lock);
	if (old)
		close_file(files, old);
	return old;
}

SYSCALL_DEFINE1(close, int, fd)
{
	return fd_is_valid(fd) && fd_replace(fd, NULL, false) ? 0 : -EBADF;
}

static void mark_close_on_exec(struct files *files, int first, int last)
{
	spin_lock(&files->lock);
	for (int fd = first; fd <= last && fd < files->end; fd++) {
		if (files->fds[fd])
			set_bit(files->close_on_exec, fd, true);
	}
	spin_unlock(&files->lock);
}

/*
 * The table becomes the process's own. The threads of a process always share theirs, so that is not
 * for one of several.
 */
static int unshare(struct process *proc)
{
	struct files *old = proc->files, *copy;
	unsigned long flags;

	if (READ_ONCE(proc->nr_threads) > 1)
		return -EINVAL;
	if (!READ_ONCE(proc->shares_files))
		return 0;
	copy = files_copy(old);
	if (!copy)
		return -ENOMEM;
	flags = spin_lock_irqsave(&proc->lock);
	proc->files = copy;
	proc->shares_files = false;
	spin_unlock_irqrestore(&proc->lock, flags);
	files_put(old);
	return 0;
}

#define CLOSE_RANGE_UNSHARE 2
#define CLOSE_RANGE_CLOEXEC 4

SYSCALL_DEFINE3(close_range, u32, first, u32, last, u32, flags)
{
	struct process *proc = current->proc;
	int error = 0;

	if (flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) || first > last)
		return -EINVAL;
	if (flags & CLOSE_RANGE_UNSHARE)
		error = unshare(proc);
	if (error || first >= FILE_MAX_FDS)
		return error;
	last = min(last, (u32)FILE_MAX_FDS - 1);
	if (flags & CLOSE_RANGE_CLOEXEC) {
		mark_close_on_exec(proc->files, first, last);
		return 0;
	}
	for (int fd = first; fd <= (int)last && fd < READ_ONCE(proc->files->end); fd++)
		fd_replace(fd, NULL, false);
	return 0;
}
