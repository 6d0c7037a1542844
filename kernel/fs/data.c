// SPDX-License-Identifier: BSD-2-Clause
/*
 * File content: an array of pages, which is doubled when it is full. A reader takes references to a
 * few pages at a time with data_lock held, and copies without any lock, so readers hardly wait for
 * each other. Pages are zeroed when allocated. When a file is truncated or grows, the rest of its
 * last page is zeroed, so that a gap reads as zeros.
 *
 * A copy never crosses a page boundary of user memory, either. So if it fails, that whole part is
 * bad, and the number of bytes done is the same as in Linux.
 */

#include "mount.h"
#include "permission.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/time.h>
#include <lego/uaccess.h>

#define READ_BATCH 16

/* An inode without a place in the tree cannot be opened for writing, so it needs no lock. */
#define ASSERT_WRITE_LOCK_HELD(inode)                                               \
	ASSERT_NAMED(!(inode)->parent || lock_check_held(&(inode)->write_lock.map), \
		     #inode "->write_lock is held")

static size_t in_page(u64 pos)
{
	return pos & (PAGE_SIZE - 1);
}

static size_t chunk_bytes(size_t n, u64 pos, const void *buf)
{
	n = min(n, (size_t)PAGE_SIZE - in_page(pos));
	return min(n, (size_t)PAGE_SIZE - in_page((u64)buf));
}

/* Copies from a page, or zeros from a hole. */
static int copy_out(void *dst, const struct page *page, u64 pos, size_t n, bool user)
{
	const void *src = page ? (char *)page_address(page) + in_page(pos) : NULL;

	if (user)
		return src ? copy_to_user(dst, src, n) : clear_user(dst, n);
	if (src)
		memcpy(dst, src, n);
	else
		memset(dst, 0, n);
	return 0;
}

static int copy_in(struct page *page, u64 pos, const void *src, size_t n, bool user)
{
	void *dst = (char *)page_address(page) + in_page(pos);

	if (user)
		return copy_from_user(dst, src, n);
	memcpy(dst, src, n);
	return 0;
}

/*
 * Takes references to the pages of [pos, pos + n), as many as fit. Returns the bytes in them; 0 at
 * the end of the file.
 */
static size_t get_pages(struct inode *inode, u64 pos, size_t n, struct page **batch)
{
	u64 first = pos >> PAGE_SHIFT;
	unsigned int nr;

	spin_lock(&inode->data_lock);
	n = pos < inode->size_bytes ? min((u64)n, inode->size_bytes - pos) : 0;
	n = min(n, READ_BATCH * (size_t)PAGE_SIZE - in_page(pos));
	nr = DIV_ROUND_UP(in_page(pos) + n, PAGE_SIZE);
	for (unsigned int i = 0; n && i < nr; i++) {
		batch[i] = first + i < inode->max_pages ? inode->pages[first + i] : NULL;
		if (batch[i])
			page_get(batch[i]);
	}
	spin_unlock(&inode->data_lock);
	return n;
}

static void put_pages(struct page **batch, u64 pos, size_t n)
{
	unsigned int nr = DIV_ROUND_UP(in_page(pos) + n, PAGE_SIZE);

	for (unsigned int i = 0; i < nr; i++) {
		if (batch[i])
			page_put(batch[i]);
	}
}

/*
 * Updates the access time like Linux's relatime: only if it is not later than the other times, or a
 * day old.
 */
static void touch_atime(struct inode *inode)
{
	s64 now = clock_realtime_ns();

	if (inode->atime_ns <= inode->mtime_ns || inode->atime_ns <= inode->ctime_ns ||
	    now - inode->atime_ns >= 24 * 3600 * (s64)NSEC_PER_SEC)
		inode->atime_ns = now;
}

ssize_t inode_read(struct inode *inode, void *buf, size_t n, u64 pos, bool user)
{
	struct page *batch[READ_BATCH];
	size_t total = 0;

	while (total < n) {
		size_t batch_bytes = get_pages(inode, pos, n - total, batch);
		u64 first = pos >> PAGE_SHIFT;
		size_t done = 0;

		if (!batch_bytes)
			break;
		while (done < batch_bytes) {
			u64 at = pos + done;
			char *dst = (char *)buf + total + done;
			size_t chunk = chunk_bytes(batch_bytes - done, at, dst);

			if (copy_out(dst, batch[(at >> PAGE_SHIFT) - first], at, chunk, user))
				break;
			done += chunk;
		}
		put_pages(batch, pos, batch_bytes);
		total += done;
		pos += done;
		if (done < batch_bytes)
			return total ? (ssize_t)total : -EFAULT;
		/* Reading gigabytes takes seconds, so a killed thread stops here. */
		if (task_killed(current))
			break;
		cond_resched();
	}
	if (user && n)
		touch_atime(inode);
	return total;
}

static u64 array_bytes(u64 max_pages)
{
	return max_pages * sizeof(struct page *);
}

/* Enlarges the array to include index. */
static int reserve(struct inode *inode, u64 index, bool force)
{
	u64 max_pages = inode->max_pages ? inode->max_pages : 4;
	struct page **pages;

	ASSERT_HELD(&inode->data_lock);
	if (index < inode->max_pages)
		return 0;
	while (max_pages <= index)
		max_pages *= 2;
	if (max_pages * sizeof(*pages) > PAGE_SIZE << MAX_PAGE_ORDER)
		return -EFBIG;
	if (!space_charge(inode, array_bytes(max_pages), force))
		return -ENOSPC;
	pages = kzalloc(max_pages * sizeof(*pages));
	if (!pages) {
		space_uncharge(inode, array_bytes(max_pages));
		/* Memory may only be fragmented: no process must be killed for that. */
		return page_is_scarce() ? -ENOMEM : -ENOSPC;
	}
	space_uncharge(inode, array_bytes(inode->max_pages));
	if (inode->pages)
		memcpy(pages, inode->pages, inode->max_pages * sizeof(*pages));
	kfree(inode->pages);
	inode->pages = pages;
	inode->max_pages = max_pages;
	return 0;
}

/* Allocates a page in a hole. */
static int fill_hole(struct inode *inode, u64 index, bool mapped, bool force)
{
	struct page *page = NULL;

	ASSERT_HELD(&inode->data_lock);
	DEBUG_ASSERT(index < inode->max_pages && !inode->pages[index]);
	if (!space_charge(inode, PAGE_SIZE, force))
		return -ENOSPC;
	if (!(mapped ? page_is_scarce() : page_is_scarce_for_files()))
		page = page_alloc(0, PAGE_ZERO);
	if (!page) {
		space_uncharge(inode, PAGE_SIZE);
		return mapped ? -ENOMEM : -ENOSPC;
	}
	inode->pages[index] = page;
	inode->nr_pages++;
	return 0;
}

/*
 * Returns the page at index with a reference, and fills a hole; ERR_PTR() if that fails. Written
 * pages leave some memory free, because only deleting files frees them. Mapped pages count as
 * memory of the program. Kernel threads (which unpack the initramfs) have no limit.
 */
static struct page *get_page(struct inode *inode, u64 index, bool mapped)
{
	bool force = !current->proc;
	struct page *page;
	int error;

	spin_lock(&inode->data_lock);
	error = reserve(inode, index, force);
	if (!error && !inode->pages[index])
		error = fill_hole(inode, index, mapped, force);
	if (error) {
		page = ERR_PTR(error);
	} else {
		page = inode->pages[index];
		page_get(page);
	}
	spin_unlock(&inode->data_lock);
	return page;
}

struct page *inode_get_page(struct inode *inode, u64 index)
{
	if (index >= DIV_ROUND_UP(READ_ONCE(inode->size_bytes), PAGE_SIZE))
		return ERR_PTR(-ENXIO);
	return get_page(inode, index, true);
}

struct page *file_get_page(struct file *file, u64 index)
{
	return file_is_regular(file) ? inode_get_page(file->inode, index) : ERR_PTR(-ENXIO);
}

bool file_has_page(const struct file *file, u64 index, const struct page *page)
{
	struct inode *inode = file->inode;
	bool ret;

	spin_lock(&inode->data_lock);
	ret = index < inode->max_pages && inode->pages[index] == page;
	spin_unlock(&inode->data_lock);
	return ret;
}

/*
 * Zeros the rest of the page after pos: before the file is truncated there, or before it grows,
 * because a shared mapping may have written there.
 */
static void clear_behind(struct inode *inode, u64 pos)
{
	u64 index = pos >> PAGE_SHIFT;
	struct page *page = index < inode->max_pages ? inode->pages[index] : NULL;

	ASSERT_HELD(&inode->data_lock);
	if (page && in_page(pos))
		memset((char *)page_address(page) + in_page(pos), 0, PAGE_SIZE - in_page(pos));
}

static void extend(struct inode *inode, u64 size_bytes)
{
	spin_lock(&inode->data_lock);
	inode->size_bytes = max(inode->size_bytes, size_bytes);
	spin_unlock(&inode->data_lock);
}

ssize_t inode_write(struct inode *inode, const void *buf, size_t n, u64 pos, bool user)
{
	size_t total = 0;
	int error = 0;

	ASSERT_WRITE_LOCK_HELD(inode);
	if (n && __builtin_add_overflow(pos, (u64)n, &(u64){ 0 }))
		return -EFBIG;
	inode_content_changes(inode);
	spin_lock(&inode->data_lock);
	if (n && pos > inode->size_bytes)
		clear_behind(inode, inode->size_bytes);
	spin_unlock(&inode->data_lock);
	while (total < n) {
		const char *src = (const char *)buf + total;
		size_t chunk = chunk_bytes(n - total, pos, src);
		struct page *page = get_page(inode, pos >> PAGE_SHIFT, false);

		if (IS_ERR(page)) {
			error = PTR_ERR(page);
			break;
		}
		error = copy_in(page, pos, src, chunk, user);
		page_put(page);
		if (error)
			break;
		total += chunk;
		pos += chunk;
		extend(inode, pos);
		if (task_killed(current))
			break;
		cond_resched();
	}
	if (total)
		inode_touch(inode);
	return total ? (ssize_t)total : error;
}

int inode_allocate(struct inode *inode, u64 pos, u64 n)
{
	u64 end = pos + n;

	ASSERT_WRITE_LOCK_HELD(inode);
	inode_content_changes(inode);
	for (u64 i = pos >> PAGE_SHIFT; i < DIV_ROUND_UP(end, PAGE_SIZE); i++) {
		struct page *page = get_page(inode, i, false);

		if (IS_ERR(page))
			return PTR_ERR(page);
		page_put(page);
		if (task_killed(current))
			return -EINTR;
		cond_resched();
	}
	spin_lock(&inode->data_lock);
	if (end > inode->size_bytes)
		clear_behind(inode, inode->size_bytes);
	spin_unlock(&inode->data_lock);
	extend(inode, end);
	inode_touch(inode);
	return 0;
}

int inode_truncate(struct inode *inode, u64 size_bytes)
{
	u64 nr_kept = DIV_ROUND_UP(size_bytes, PAGE_SIZE);
	bool mapped = false;

	ASSERT_WRITE_LOCK_HELD(inode);
	/* Refuse a size for which reserve() could not allocate the array. */
	if (nr_kept * sizeof(*inode->pages) > PAGE_SIZE << MAX_PAGE_ORDER)
		return -EFBIG;

	inode_content_changes(inode);
	spin_lock(&inode->data_lock);
	for (u64 i = nr_kept; i < inode->max_pages; i++) {
		if (!inode->pages[i])
			continue;
		mapped |= atomic_read(&inode->pages[i]->refs) > 1; /* or it is being read */
		page_put(inode->pages[i]);
		inode->pages[i] = NULL;
		DEBUG_ASSERT(inode->nr_pages);
		inode->nr_pages--;
		space_uncharge(inode, PAGE_SIZE);
	}
	clear_behind(inode, min(size_bytes, inode->size_bytes));
	inode->size_bytes = size_bytes;
	spin_unlock(&inode->data_lock);
	if (mapped)
		mm_cut_file(inode, nr_kept << PAGE_SHIFT);
	inode_touch(inode);
	return 0;
}

#define SEEK_BATCH 4096 /* pages to search before the lock is released */

/* Returns the index of the first page in [index, stop) that is, or is not, a hole; else stop. */
static u64 seek_page(struct inode *inode, u64 index, u64 stop, bool hole)
{
	spin_lock(&inode->data_lock);
	while (index < stop && (index >= inode->max_pages || !inode->pages[index]) != hole)
		index++;
	spin_unlock(&inode->data_lock);
	return index;
}

s64 inode_seek(struct inode *inode, s64 pos, bool hole)
{
	s64 size_bytes = READ_ONCE(inode->size_bytes);
	u64 index = (u64)pos >> PAGE_SHIFT, end = DIV_ROUND_UP(size_bytes, PAGE_SIZE), stop;

	if (pos < 0 || pos >= size_bytes)
		return -ENXIO;
	do {
		stop = min(end, index + SEEK_BATCH);
		index = seek_page(inode, index, stop, hole);
		cond_resched();
	} while (index == stop && stop < end && !task_killed(current));
	if (index < stop)
		return max(pos, (s64)(index << PAGE_SHIFT));
	return hole ? size_bytes : -ENXIO;
}

u64 inode_held_bytes(const struct inode *inode)
{
	return sizeof(*inode) + READ_ONCE(inode->nr_pages) * PAGE_SIZE +
	       array_bytes(READ_ONCE(inode->max_pages));
}

/* For an assertion. Returns true if nr_pages is right. */
static __maybe_unused bool pages_are_counted(const struct inode *inode)
{
	u64 nr = 0;

	if (inode->target)
		return true; /* a long target counts as a page */
	for (u64 i = 0; i < inode->max_pages; i++)
		nr += inode->pages[i] != NULL;
	return nr == inode->nr_pages;
}

void inode_free_data(struct inode *inode)
{
	DEBUG_ASSERT(pages_are_counted(inode));
	for (u64 i = 0; i < inode->max_pages; i++) {
		if (inode->pages[i])
			page_put(inode->pages[i]);
	}
	space_uncharge(inode, inode->nr_pages * PAGE_SIZE + array_bytes(inode->max_pages));
	kfree(inode->pages);
}
