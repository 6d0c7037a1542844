// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of file descriptors. A file is looked up and referenced under the table's spinlock, and
 * used without it. Closing a descriptor that another thread is using does not affect that thread.
 */

#include "fd.h"
#include "lock.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/files_out.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

static void set_bit(u64 *word, int fd, bool on)
{
	u64 bit = BIT(fd % FD_TREE_SLOTS);

	*word = on ? *word | bit : *word & ~bit;
}

static int next_leaf(int fd)
{
	return ALIGN_DOWN(fd, FD_TREE_SLOTS) + FD_TREE_SLOTS;
}

int fd_limit(void)
{
	u64 limit = READ_ONCE(current->proc->rlimits[RLIMIT_NOFILE].cur);

	return (int)min(limit, (u64)FILE_MAX_FDS);
}

static void assert_held(const struct files *files)
{
	DEBUG_ASSERT(atomic_read(&files->refs) == 1 || lock_check_held(&files->lock.map));
}

/*
 * Stores a file and returns the old one. The reference to file passes to the table, that to the old
 * file to the caller.
 */
static struct file *set_slot(struct files *files, struct fd_node *leaf, int fd, struct file *file,
			     bool close_on_exec)
{
	struct file *old = leaf->slots[fd % FD_TREE_SLOTS];

	assert_held(files);
	fd_tree_set(&files->tree, leaf, fd, file);
	set_bit(&leaf->marks, fd, close_on_exec);
	files->end = max(files->end, fd + 1);
	return old;
}

/* Takes out the first file whose descriptor is from *fd to last. NULL: there is none. */
static struct file *take_next(struct files *files, int *fd, int last)
{
	struct file *file = NULL;

	spin_lock(&files->lock);
	*fd = fd_tree_next(&files->tree, *fd);
	if (*fd >= 0 && *fd <= last)
		file = set_slot(files, fd_tree_leaf(&files->tree, *fd), *fd, NULL, false);
	spin_unlock(&files->lock);
	return file;
}

static struct files *alloc_files(void)
{
	struct files *files = kzalloc(sizeof(*files));

	if (!files)
		return NULL;
	atomic_set(&files->refs, 1);
	spin_lock_init(&files->lock);
	fd_tree_init(&files->tree);
	return files;
}

static const char *stdin_path; /* NULL: the console */

static int set_stdin(const char *value)
{
	if (*value != '/')
		return -EINVAL;
	stdin_path = value;
	return 0;
}
/* The file that init has as its standard input: the console by default. */
BOOT_PARAM(stdin, "stdin", "/path", set_stdin);

/* Returns a reference to init's standard input. */
static struct file *open_stdin(struct file *console)
{
	struct file *file;

	if (stdin_path) {
		file = file_open(stdin_path, O_RDONLY, 0);
		if (!IS_ERR(file))
			return file;
		printk("stdin=%s cannot be opened (error %ld): init reads the console\n",
		       stdin_path, -PTR_ERR(file));
	}
	file_get(console);
	return console;
}

struct files *files_alloc(void)
{
	struct files *files = alloc_files();
	struct file *console;

	if (!files)
		return NULL;
	console = file_open("/dev/console", O_RDWR, 0);
	if (IS_ERR(console)) {
		kfree(files);
		return NULL;
	}
	set_slot(files, &files->tree.first, 0, open_stdin(console), false);
	for (int fd = 1; fd <= 2; fd++) {
		file_get(console);
		set_slot(files, &files->tree.first, fd, console, false);
	}
	file_put(console);
	return files;
}

/* Copies the open descriptors of fd's leaf from fd on. Returns false when out of memory. */
static bool copy_leaf(struct files *copy, const struct files *files, int fd)
{
	struct fd_node *leaf;

	if (!fd_tree_copy_leaf(&copy->tree, &files->tree, fd))
		return false;
	leaf = fd_tree_leaf(&copy->tree, fd);
	for (u64 open = leaf->full; open; open &= open - 1)
		file_get(leaf->slots[__builtin_ctzll(open)]);
	copy->end = next_leaf(fd) - __builtin_clzll(leaf->full);
	return true;
}

struct files *files_copy(struct files *files)
{
	struct files *copy = alloc_files();
	bool copied = copy;

	if (!copy)
		return NULL;
	spin_lock(&files->lock);
	for (int fd = 0; copied && (fd = fd_tree_next(&files->tree, fd)) >= 0; fd = next_leaf(fd))
		copied = copy_leaf(copy, files, fd);
	spin_unlock(&files->lock);
	if (copied)
		return copy;
	files_put(copy);
	return NULL;
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
	if (file->writes)
		files_out_close(file);
	else
		file_put(file);
}

void files_put(struct files *files)
{
	DEBUG_ASSERT(atomic_read(&files->refs) > 0);
	might_sleep();
	if (!atomic_dec_and_test(&files->refs))
		return;
	for (int fd = 0; (fd = fd_tree_next(&files->tree, fd)) >= 0; fd = next_leaf(fd)) {
		struct fd_node *leaf = fd_tree_leaf(&files->tree, fd);

		for (u64 open = leaf->full; open; open &= open - 1)
			close_file(files, leaf->slots[__builtin_ctzll(open)]);
	}
	fd_tree_free(&files->tree);
	kfree(files);
}

u64 files_held_bytes(struct files *files, u32 count)
{
	u64 bytes;

	spin_lock(&files->lock);
	bytes = sizeof(*files) + files->tree.nr_nodes * sizeof(struct fd_node);
	for (int fd = 0; (fd = fd_tree_next(&files->tree, fd)) >= 0; fd++)
		bytes += file_held_bytes(fd_tree_get(&files->tree, fd), count);
	spin_unlock(&files->lock);
	return bytes;
}

unsigned int files_nr_slots(struct files *files)
{
	unsigned int last = (unsigned int)max(READ_ONCE(files->end), FD_TREE_SLOTS) - 1;

	return 1U << (32 - __builtin_clz(last));
}

int files_next_fd(struct files *files, int fd)
{
	spin_lock(&files->lock);
	fd = fd_tree_next(&files->tree, fd);
	spin_unlock(&files->lock);
	return fd;
}

/* Returns the first descriptor from fd on that is close-on-exec, or -1. */
static int next_close_on_exec(const struct files *files, int fd)
{
	for (; (fd = fd_tree_next(&files->tree, fd)) >= 0; fd = next_leaf(fd)) {
		u64 marks = fd_tree_leaf(&files->tree, fd)->marks >> fd % FD_TREE_SLOTS;

		if (marks)
			return fd + __builtin_ctzll(marks);
	}
	return -1;
}

/*
 * Other processes may change a shared table meanwhile, so the mark and the file are read under one
 * lock.
 */
void files_close_on_exec(struct files *files)
{
	for (int fd = 0; fd >= 0;) {
		struct file *file = NULL;

		spin_lock(&files->lock);
		fd = next_close_on_exec(files, fd);
		if (fd >= 0)
			file = set_slot(files, fd_tree_leaf(&files->tree, fd), fd, NULL, false);
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
	file = fd_tree_get(&files->tree, fd);
	if (file)
		file_get(file);
	spin_unlock(&files->lock);
	return file;
}

struct file *fd_get_any(int fd)
{
	return files_get_file(current->files, fd);
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
	struct files *files = current->files;
	int limit = fd_limit(), fd;
	struct fd_node *leaf;

	DEBUG_ASSERT(from >= 0 && atomic_read(&file->refs) > 0);
	spin_lock(&files->lock);
	fd = fd_tree_next_free(&files->tree, from);
	leaf = fd < limit ? fd_tree_make_leaf(&files->tree, fd) : NULL;
	if (leaf)
		set_slot(files, leaf, fd, file, close_on_exec);
	else
		fd = fd < limit ? -ENOMEM : -EMFILE;
	spin_unlock(&files->lock);
	return fd;
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
	struct files *files = current->files;
	long error = 0;

	spin_lock(&files->lock);
	if (fd_is_valid(fd) && fd_tree_get(&files->tree, fd))
		set_bit(&fd_tree_leaf(&files->tree, fd)->marks, fd, on);
	else
		error = -EBADF;
	spin_unlock(&files->lock);
	return error;
}

bool fd_get_close_on_exec(int fd)
{
	struct files *files = current->files;
	const struct fd_node *leaf;
	bool on;

	if (!fd_is_valid(fd))
		return false;
	if (fd < FD_TREE_SLOTS) /* its leaf is part of the tree, so it needs no lock */
		return READ_ONCE(files->tree.first.marks) & BIT(fd);
	spin_lock(&files->lock);
	leaf = fd_tree_leaf(&files->tree, fd);
	on = leaf && leaf->marks & BIT(fd % FD_TREE_SLOTS);
	spin_unlock(&files->lock);
	return on;
}

int fd_replace(int fd, struct file *file, bool close_on_exec)
{
	struct files *files = current->files;
	struct file *old = NULL;
	struct fd_node *leaf;

	spin_lock(&files->lock);
	leaf = file ? fd_tree_make_leaf(&files->tree, fd) : fd_tree_leaf(&files->tree, fd);
	if (leaf)
		old = set_slot(files, leaf, fd, file, close_on_exec);
	spin_unlock(&files->lock);
	if (old)
		close_file(files, old);
	return !leaf && file ? -ENOMEM : !!old;
}

SYSCALL_DEFINE1(close, int, fd)
{
	return fd_is_valid(fd) && fd_replace(fd, NULL, false) ? 0 : -EBADF;
}

static void mark_close_on_exec(struct files *files, int first, int last)
{
	spin_lock(&files->lock);
	for (int fd = first; (fd = fd_tree_next(&files->tree, fd)) >= 0 && fd <= last; fd++)
		set_bit(&fd_tree_leaf(&files->tree, fd)->marks, fd, true);
	spin_unlock(&files->lock);
}

#define CLOSE_RANGE_UNSHARE 2
#define CLOSE_RANGE_CLOEXEC 4

SYSCALL_DEFINE3(close_range, u32, first, u32, last, u32, flags)
{
	struct files *files;
	struct file *file;
	int error = 0, fd = (int)first;

	if (flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) || first > last)
		return -EINVAL;
	if (flags & CLOSE_RANGE_UNSHARE)
		error = task_unshare_files();
	if (error || first >= FILE_MAX_FDS)
		return error;
	last = min(last, (u32)FILE_MAX_FDS - 1);
	files = current->files;
	if (flags & CLOSE_RANGE_CLOEXEC) {
		mark_close_on_exec(files, fd, (int)last);
		return 0;
	}
	while ((file = take_next(files, &fd, (int)last)))
		close_file(files, file);
	return 0;
}
