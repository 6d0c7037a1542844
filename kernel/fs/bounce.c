// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads and writes files with operations of their own. Most of these operations do not access user
 * memory: the bytes go through a kernel buffer of at most a page.
 *
 * A read of a stream returns the bytes that are there: it only waits for the first ones. They
 * cannot be put back, so the user's memory is made writable before they are taken, and a bad
 * address loses none. A write passes a page of bytes at a time (PIPE_BUF), also from several
 * buffers. If a page of bytes cannot be read completely, none of it is written.
 */

#include "fd.h"
#include "iov.h"

#include <lego/errno.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/slab.h>

#define SMALL_BYTES 128 /* a buffer that does not need an allocation */

/* A buffer for n bytes, at most a page. */
struct buffer {
	char *start; /* NULL: not needed yet */
	size_t bytes;
	char small[SMALL_BYTES];
};

static void buffer_init(struct buffer *buf, size_t n)
{
	buf->bytes = min(n, (size_t)PAGE_SIZE);
	buf->start = NULL;
}

static char *buffer_get(struct buffer *buf)
{
	if (!buf->start)
		buf->start = buf->bytes > SMALL_BYTES ? kmalloc(buf->bytes) : buf->small;
	return buf->start;
}

static void buffer_free(struct buffer *buf)
{
	if (buf->start != buf->small)
		kfree(buf->start);
}

static ssize_t read_once(struct file *file, void *buf, size_t n, u64 pos, bool more)
{
	if (more && file_is_stream(file))
		return file->ops->read_more ? file->ops->read_more(file, buf, n) : 0;
	return file->ops->read(file, buf, n, pos);
}

/*
 * Reads a chunk. Returns how many bytes were taken from the file, or the same errors as
 * read_once(). Sets *copied to how many of these bytes have reached the user.
 */
static ssize_t read_chunk(struct file *file, struct iov_iter *iter, size_t n, u64 pos, bool more,
			  struct buffer *buf, size_t *copied)
{
	struct page *page = NULL;
	ssize_t done;

	if (n == PAGE_SIZE && file->ops->take_page)
		page = file->ops->take_page(file);
	if (page) {
		*copied = iov_copy_to(iter, page_address(page), n);
		page_put(page);
		return n;
	}
	if (!buffer_get(buf))
		return -ENOMEM;
	done = read_once(file, buf->start, n, pos, more);
	if (done > 0)
		*copied = iov_copy_to(iter, buf->start, done);
	return done;
}

static ssize_t write_page(struct file *file, struct iov_iter *iter)
{
	struct page *page = page_alloc(0, 0);
	ssize_t done = -EFAULT;

	if (!page)
		return -ENOMEM;
	if (iov_copy_from(page_address(page), iter, PAGE_SIZE) == PAGE_SIZE)
		done = file->ops->write_page(file, page);
	page_put(page);
	return done;
}

static ssize_t write_chunk(struct file *file, struct iov_iter *iter, size_t n, u64 pos,
			   struct buffer *buf)
{
	if (n == PAGE_SIZE && file->ops->write_page && !page_is_scarce())
		return write_page(file, iter);
	if (!buffer_get(buf))
		return -ENOMEM;
	if (iov_copy_from(buf->start, iter, n) < n)
		return -EFAULT;
	return file->ops->write(file, buf->start, n, pos);
}

/* Returns the result of a read or a write of 0 bytes. */
static ssize_t move_nothing(const struct file *file)
{
	return file->ops->has_records ? -EINVAL : 0;
}

ssize_t bounce_read(struct file *file, struct iov_iter *iter, u64 pos)
{
	struct buffer buf;
	size_t total = 0;
	ssize_t done = 0;

	if (file->ops->read_user)
		return file->ops->read_user(file, iter);
	if (!file->ops->read)
		return -EINVAL;
	if (!iter->left)
		return move_nothing(file);
	buffer_init(&buf, iter->left);
	while (iter->left) {
		size_t chunk = min(iter->left, buf.bytes), copied = 0;

		if (file_is_stream(file) && iov_make_writable(iter, chunk)) {
			done = -EFAULT;
			break;
		}
		done = read_chunk(file, iter, chunk, pos + total, total, &buf, &copied);
		if (done <= 0)
			break;
		total += copied;
		if (copied < (size_t)done) {
			done = -EFAULT;
			break;
		}
		if ((size_t)done < chunk || task_interrupted(current))
			break;
		cond_resched();
	}
	buffer_free(&buf);
	return total ? (ssize_t)total : done;
}

ssize_t bounce_write(struct file *file, struct iov_iter *iter, u64 pos)
{
	struct buffer buf;
	size_t total = 0;
	ssize_t done = 0;

	if (file->ops->write_user)
		return file->ops->write_user(file, iter);
	if (!file->ops->write)
		return -EINVAL;
	if (!iter->left)
		return move_nothing(file);
	buffer_init(&buf, iter->left);
	while (iter->left) {
		size_t chunk = min(iter->left, buf.bytes);

		done = write_chunk(file, iter, chunk, pos + total, &buf);
		if (done <= 0)
			break;
		total += done;
		if ((size_t)done < chunk || (iter->left && task_interrupted(current)))
			break;
		cond_resched();
	}
	buffer_free(&buf);
	return total ? (ssize_t)total : done;
}
