// SPDX-License-Identifier: BSD-2-Clause
/*
 * An open file of /proc keeps its text, so that several reads return parts of the same text. A read
 * from the start makes the text again. Some texts are made in chunks while they are read
 * (text_stream()): these can only be read onward, or again from the start. A stream has no start: a
 * read returns the rest of the text of the previous read, or waits for more. As with trace_pipe on
 * Linux, a handle that has returned text reports the end of the file when there will be no more.
 */

#include "internal.h"

#include <lego/errno.h>
#include <lego/mutex.h>
#include <lego/poll.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/timer.h>

#define STREAM_PERIOD_NS (10 * NSEC_PER_MSEC) /* how often a waiting read looks for more */

#define MAX_WRITE_BYTES 4096

struct open_text {
	struct mutex lock; /* guards the rest */
	struct text text;
	bool made;
	/* The rest is used by streams only. */
	size_t taken; /* bytes of the text that were read */
	bool has_been_read;
	bool has_ended;
	struct wait_queue poll_wait;
	struct wake_timer poll_wake;
	struct timer timer; /* wakes pollers, so that they look again */
};

static void wake_pollers(struct timer *timer)
{
	wake_up_in_steps(&container_of(timer, struct open_text, timer)->poll_wake, true);
}

/*
 * Returns the process that the file is about, with a reference; NULL for a file of the system. Or
 * ERR_PTR. Stores a version for was_allowed().
 */
static struct process *get_process(const struct file *file, u32 *version)
{
	const struct proc_file *what = file->inode->private;
	struct process *proc;

	if (!what->show_process && !what->show_thread && !what->write_process &&
	    !what->write_thread)
		return NULL;
	proc = proc_inode_process(file->inode);
	if (!proc)
		return ERR_PTR(-ESRCH);
	if (!what->private || process_may_inspect(proc, version))
		return proc;
	process_put(proc);
	return ERR_PTR(-EACCES);
}

static bool was_allowed(const struct proc_file *what, struct process *proc, u32 version)
{
	return !what->private || process_was_inspected(proc, version);
}

static void put_process(struct process *proc)
{
	if (proc)
		process_put(proc);
}

/* Checks the permission to open the file. If its process is gone, only reading it fails. */
static int check_open(const struct file *file)
{
	u32 version;
	struct process *proc = get_process(file, &version);

	if (proc == ERR_PTR(-EACCES))
		return -EACCES;
	if (!IS_ERR(proc))
		put_process(proc);
	return 0;
}

static int proc_open(struct file *file)
{
	struct proc_file *what = file->inode->private;
	struct open_text *open;
	int error = check_open(file);

	if (error)
		return error;
	open = kzalloc(sizeof(*open));
	if (!open)
		return -ENOMEM;
	if (what->close && xchg(&what->is_open, true)) {
		kfree(open);
		return -EBUSY;
	}
	mutex_init(&open->lock);
	wait_queue_init(&open->poll_wait);
	wake_timer_init(&open->poll_wake, &open->poll_wait);
	timer_setup(&open->timer, wake_pollers);
	file->private = open;
	return 0;
}

static void proc_release(struct file *file)
{
	struct proc_file *what = file->inode->private;
	struct open_text *open = file->private;

	if (!open)
		return;
	if (what->close) {
		what->close();
		/* Pairs with the xchg() in proc_open(): the next handle finds what close() left. */
		smp_store_release(&what->is_open, false);
	}
	if (what->release_arg && file_may_write(file))
		what->release_arg(what->arg);
	timer_cancel(&open->timer);
	wake_timer_end(&open->poll_wake);
	text_free(&open->text);
	kfree(open);
}

static int show(const struct file *file, struct text *text)
{
	const struct proc_file *what = file->inode->private;
	struct process *proc;
	u32 version;
	int error;

	if (what->show)
		return what->show(text, what->arg);
	if (!what->show_process && !what->show_thread)
		return -EINVAL;
	/* Checked again: the process may have got another user since the file was opened. */
	proc = get_process(file, &version);
	if (IS_ERR(proc))
		return (int)PTR_ERR(proc);
	if (what->show_thread)
		error = what->show_thread(text, proc, proc_inode_tid(file->inode));
	else
		error = what->show_process(text, proc);
	if (!was_allowed(what, proc, version))
		error = -EACCES;
	process_put(proc);
	return error;
}

static int make_text(const struct file *file, struct open_text *open)
{
	int error;

	text_free(&open->text);
	open->made = false;
	error = show(file, &open->text);
	if (!error && open->text.failed)
		error = -ENOMEM;
	open->made = !error;
	return error;
}

static ssize_t proc_read(struct file *file, void *buf, size_t n, u64 pos)
{
	struct open_text *open = file->private;
	ssize_t done = 0;

	mutex_lock(&open->lock);
	if (!pos || !open->made)
		done = make_text(file, open);
	if (!done)
		done = text_read(&open->text, pos, buf, n);
	if (!done && open->text.failed)
		done = -ENOMEM;
	mutex_unlock(&open->lock);
	return done;
}

/*
 * Calls the file's write() with a copy of the bytes as a string. proc is the process whose file it
 * is, NULL for the system's. Returns 0 or a negative errno.
 */
static int write_text(const struct file *file, struct process *proc, const void *buf, size_t n)
{
	const struct proc_file *what = file->inode->private;
	char *text;
	int error;

	if (n >= MAX_WRITE_BYTES || strnlen(buf, n) != n)
		return -EINVAL;
	text = kmalloc(n + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, buf, n);
	text[n] = '\0';
	if (what->write_thread)
		error = what->write_thread(text, proc, proc_inode_tid(file->inode));
	else if (proc)
		error = what->write_process(text, proc);
	else
		error = what->write ? what->write(text) : what->write_arg(text, what->arg);
	kfree(text);
	return error;
}

static u64 proc_held_bytes(const struct file *file)
{
	const struct open_text *open = file->private;

	return sizeof(*open) + READ_ONCE(open->text.held_bytes);
}

/*
 * Held while a text is obeyed that controls the kernel. Such a text can take long, and the threads
 * that wait for it here can be killed.
 */
static DEFINE_MUTEX(control_mutex);

static int obey(struct file *file, struct process *proc, const void *buf, size_t n)
{
	const struct proc_file *what = file->inode->private;
	bool controls = what->write || what->write_arg;
	int error = controls ? mutex_lock_killable(&control_mutex) : 0;

	if (error)
		return error;
	error = write_text(file, proc, buf, n);
	if (controls)
		mutex_unlock(&control_mutex);
	return error;
}

/* Each write is one whole text. */
static ssize_t proc_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	const struct proc_file *what = file->inode->private;
	struct process *proc;
	u32 version;
	int error;

	if (!what->write && !what->write_process && !what->write_thread && !what->write_arg)
		return -EINVAL;
	proc = get_process(file, &version);
	if (IS_ERR(proc))
		return PTR_ERR(proc);
	error = obey(file, proc, buf, n);
	if (error == -EINVAL)
		proc_log_refused(what, proc ? proc->pid : 0, buf, n);
	put_process(proc);
	return error ? error : (ssize_t)n;
}

static int proc_truncate(struct file *file)
{
	const struct proc_file *what = file->inode->private;

	return what->truncate ? what->truncate(what->arg) : 0;
}

/* Returns the next bytes that are there now; 0: there are none. */
static ssize_t read_next(const struct proc_file *what, struct open_text *open, void *buf, size_t n,
			 bool waits)
{
	ssize_t done;

	mutex_lock(&open->lock);
	if (open->taken == open->text.len) {
		text_free(&open->text);
		open->taken = 0;
		open->has_ended = !what->next(&open->text, what->arg, waits);
	}
	done = text_read(&open->text, open->taken, buf, n);
	open->taken += done;
	open->has_been_read |= done > 0;
	if (!done && open->text.failed)
		done = -ENOMEM;
	mutex_unlock(&open->lock);
	return done;
}

static ssize_t stream_read(struct file *file, void *buf, size_t n, u64 pos)
{
	const struct proc_file *what = file->inode->private;
	struct open_text *open = file->private;
	ssize_t done;
	int error;

	while (!(done = read_next(what, open, buf, n, !(file->flags & O_NONBLOCK)))) {
		if (file->flags & O_NONBLOCK)
			return -EAGAIN;
		if (READ_ONCE(open->has_ended) && READ_ONCE(open->has_been_read))
			return 0;
		error = sleep_until_ns(clock_monotonic_ns() + STREAM_PERIOD_NS);
		if (error)
			return error;
	}
	return done;
}

/* Nothing tells of new events, so a poller is woken after a period to look again. */
static u32 stream_poll(struct file *file, struct poll_table *table)
{
	const struct proc_file *what = file->inode->private;
	struct open_text *open = file->private;
	u32 events = 0;

	poll_wait(table, &open->poll_wait);
	mutex_lock(&open->lock);
	if (open->taken < open->text.len || what->ready(what->arg)) {
		events = POLLIN | POLLRDNORM;
	} else {
		timer_cancel(&open->timer);
		timer_start(&open->timer, clock_monotonic_ns() + STREAM_PERIOD_NS);
	}
	mutex_unlock(&open->lock);
	return events;
}

static const struct file_ops file_ops = {
	.read = proc_read,
	.write = proc_write,
	.open = proc_open,
	.truncate = proc_truncate,
	.release = proc_release,
	.held_bytes = proc_held_bytes,
};

static const struct file_ops process_ops = {
	.read = proc_read,
	.write = proc_write,
	.open = proc_open,
	.truncate = proc_truncate,
	.release = proc_release,
	.no_splice = true,
	.held_bytes = proc_held_bytes,
};

static const struct file_ops stream_ops = {
	.read = stream_read,
	.poll = stream_poll,
	.open = proc_open,
	.release = proc_release,
	.is_stream = true,
	.held_bytes = proc_held_bytes,
};

static const struct file_ops *choose_ops(const struct proc_file *file)
{
	if (file->show_process || file->show_thread || file->write_process || file->write_thread)
		return &process_ops;
	return file->next ? &stream_ops : &file_ops;
}

struct inode *proc_create_file(struct inode *dir, const struct proc_file *file)
{
	struct inode *inode = tree_create(dir, file->name, S_IFREG | file->mode);

	if (IS_ERR(inode))
		return inode;
	inode->file_ops = choose_ops(file);
	inode->private = (void *)file;
	return inode;
}
