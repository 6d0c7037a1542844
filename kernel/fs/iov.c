// SPDX-License-Identifier: BSD-2-Clause
/*
 * Treats the buffers of a call, or one of the kernel, as one sequence of bytes. Copies are split at
 * page boundaries of user memory, so that if one fails, the number of bytes done is the same as in
 * Linux.
 */

#include "iov.h"

#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/uaccess.h>

#define IOV_MAX 1024

struct iovec *iovec_from_user(const struct iovec __user *user_iov, unsigned long nr)
{
	struct iovec *iov;
	int error;

	if (nr > IOV_MAX)
		return ERR_PTR(-EINVAL);
	iov = kmalloc(nr * sizeof(*iov));
	if (!iov)
		return ERR_PTR(-ENOMEM);
	error = copy_from_user(iov, user_iov, nr * sizeof(*iov));
	for (unsigned long i = 0; !error && i < nr; i++)
		error = (ssize_t)iov[i].len < 0 ? -EINVAL : 0;
	for (unsigned long i = 0; !error && i < nr; i++)
		error = access_ok(iov[i].base, iov[i].len) ? 0 : -EFAULT;
	if (error) {
		kfree(iov);
		return ERR_PTR(error);
	}
	return iov;
}

void iov_iter_init(struct iov_iter *iter, const struct iovec *iov, unsigned int nr)
{
	iter->iov = iov;
	iter->offset = 0;
	iter->left = 0;
	for (unsigned int i = 0; i < nr; i++)
		iter->left += min(iov[i].len, MAX_RW_BYTES - iter->left);
}

/*
 * Returns how many of the next n bytes are in the same page and buffer. n and iter->left are not 0.
 */
static size_t next_piece(struct iov_iter *iter, size_t n, char __user **addr)
{
	while (iter->offset == iter->iov->len) {
		iter->iov++;
		iter->offset = 0;
	}
	*addr = (char __user *)iter->iov->base + iter->offset;
	n = min(n, iter->iov->len - iter->offset);
	return min(n, PAGE_SIZE - ((u64)*addr & (PAGE_SIZE - 1)));
}

static void advance(struct iov_iter *iter, size_t n)
{
	iter->offset += n;
	iter->left -= n;
}

static void *next_in_kernel(struct iov_iter *iter, size_t n)
{
	char *at = iter->kernel;

	advance(iter, n);
	return at;
}

size_t iov_copy_from(void *dst, struct iov_iter *iter, size_t n)
{
	size_t done = 0;

	n = min(n, iter->left);
	if (unlikely(!iter->iov)) {
		memcpy(dst, next_in_kernel(iter, n), n);
		return n;
	}
	while (done < n) {
		char __user *addr;
		size_t piece = next_piece(iter, n - done, &addr);

		if (copy_from_user((char *)dst + done, addr, piece))
			break;
		advance(iter, piece);
		done += piece;
	}
	return done;
}

size_t iov_copy_to(struct iov_iter *iter, const void *src, size_t n)
{
	size_t done = 0;

	n = min(n, iter->left);
	if (unlikely(!iter->iov)) {
		memcpy(next_in_kernel(iter, n), src, n);
		return n;
	}
	while (done < n) {
		char __user *addr;
		size_t piece = next_piece(iter, n - done, &addr);

		if (copy_to_user(addr, (const char *)src + done, piece))
			break;
		advance(iter, piece);
		done += piece;
	}
	return done;
}

size_t iov_clear(struct iov_iter *iter, size_t n)
{
	size_t done = 0;

	n = min(n, iter->left);
	if (unlikely(!iter->iov)) {
		memset(next_in_kernel(iter, n), 0, n);
		return n;
	}
	while (done < n) {
		char __user *addr;
		size_t piece = next_piece(iter, n - done, &addr);

		if (clear_user(addr, piece))
			break;
		advance(iter, piece);
		done += piece;
	}
	return done;
}

/*
 * Writes to each page by a cmpxchg of 0 with 0, which changes nothing even if others write there.
 */
int user_make_writable(void __user *addr, size_t n)
{
	u64 at = ALIGN_DOWN((u64)addr, 4), end = (u64)addr + n;
	u32 old;

	for (; at < end; at = ALIGN_DOWN(at, PAGE_SIZE) + PAGE_SIZE) {
		if (user_cmpxchg_u32((u32 __user *)at, 0, 0, &old))
			return -EFAULT;
	}
	return 0;
}

static noinline int make_parts_writable(const struct iovec *iov, size_t offset, size_t n)
{
	for (; n; iov++, offset = 0) {
		size_t piece = min(n, iov->len - offset);

		if (piece && user_make_writable((char __user *)iov->base + offset, piece))
			return -EFAULT;
		n -= piece;
	}
	return 0;
}

int iov_make_writable(const struct iov_iter *iter, size_t n)
{
	const struct iovec *iov = iter->iov;

	if (unlikely(!iov))
		return 0;
	n = min(n, iter->left);
	if (likely(n && n <= iov->len - iter->offset))
		return user_make_writable((char __user *)iov->base + iter->offset, n);
	return make_parts_writable(iov, iter->offset, n);
}
