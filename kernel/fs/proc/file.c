// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>

/*
 * An open file of /proc keeps the text it shows: whoever reads it in pieces gets pieces of one
 * text. Reading from the start makes it again.
 */

#define MAX_WRITE_BYTES 4096

struct open_text {
	struct mutex lock; /* guards the rest */
	struct text text;
	bool made;
};

static int proc_open(struct file *file)
{
	struct open_text *open = kzalloc(sizeof(*open));

	if (!open)
		return -ENOMEM;
	mutex_init(&open->lock);
	file->private = open;
	return 0;
}

static void proc_release(struct file *file)
{
	struct open_text *open = file->private;

	if (!open)
		return;
	text_free(&open->text);
	kfree(open);
}

static int show(const struct file *file, struct text *text)
{
	const struct proc_file *what = file->inode->private;
	struct process *proc;
	int error;

	if (what->show)
		return what->show(text);
	if (!what->show_process)
		return -EINVAL;
	proc = proc_inode_process(file->inode);
	if (!proc)
		return -ESRCH;
	error = what->show_process(text, proc);
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
	if (!done && pos < open->text.len) {
		done = min(n, open->text.len - (size_t)pos);
		memcpy(buf, open->text.buf + pos, done);
	}
	mutex_unlock(&open->lock);
	return done;
}

static int write_text(const struct file *file, const char *text)
{
	const struct proc_file *what = file->inode->private;
	struct process *proc;
	int error;

	if (what->write)
		return what->write(text);
	proc = proc_inode_process(file->inode);
	if (!proc)
		return -ESRCH;
	error = what->write_process(text, proc);
	process_put(proc);
	return error;
}

/* One write is one whole text. */
static ssize_t proc_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	const struct proc_file *what = file->inode->private;
	ssize_t error;
	char *text;

	if ((!what->write && !what->write_process) || n >= MAX_WRITE_BYTES)
		return -EINVAL;
	text = kmalloc(n + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, buf, n);
	text[n] = '\0';
	error = strlen(text) == n ? write_text(file, text) : -EINVAL;
	kfree(text);
	return error ? error : (ssize_t)n;
}

const struct file_ops proc_file_ops = {
	.read = proc_read,
	.write = proc_write,
	.open = proc_open,
	.release = proc_release,
};

struct inode *proc_create_file(struct inode *dir, const struct proc_file *file)
{
	u32 mode = (file->show || file->show_process ? 0444 : 0) |
		   (file->write || file->write_process ? 0200 : 0);
	struct inode *inode = tree_create(dir, file->name, S_IFREG | mode);

	if (IS_ERR(inode))
		return inode;
	inode->file_ops = &proc_file_ops;
	inode->private = (void *)file;
	return inode;
}
