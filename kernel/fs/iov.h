/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_IOV_H
#define FS_IOV_H

/* Buffers of read and write calls, in user memory, or one in the kernel's. */

#include <lego/fs.h>

struct iovec {
	void __user *base;
	size_t len;
};

/* Linux's limit for one call: whole pages below 2 GiB. */
#define MAX_RW_BYTES 0x7ffff000UL

/*
 * The remaining part of a transfer: `left` bytes, from offset in *iov on; or, if iov is NULL, at an
 * address that is not in user memory.
 */
struct iov_iter {
	const struct iovec *iov;
	union {
		size_t offset;
		char *kernel;
	};
	size_t left;   /* at most MAX_RW_BYTES */
	bool nonblock; /* with iov NULL: a read of a stream socket does not wait */
};

/* Copies and checks a vector; kfree() it. ERR_PTR on failure. */
struct iovec *iovec_from_user(const struct iovec __user *user_iov, unsigned long nr);
void iov_iter_init(struct iov_iter *iter, const struct iovec *iov, unsigned int nr);
/*
 * Copy at most n bytes and advance the iterator. Return the bytes copied; fewer than n only at a
 * bad address or at the end.
 */
size_t iov_copy_from(void *dst, struct iov_iter *iter, size_t n);
size_t iov_copy_to(struct iov_iter *iter, const void *src, size_t n);
size_t iov_clear(struct iov_iter *iter, size_t n); /* zeros */
/*
 * Return 0 if n bytes can be written to now, or -EFAULT: the next ones of the iterator, or those at
 * an address that access_ok() has accepted.
 */
int iov_make_writable(const struct iov_iter *iter, size_t n);
int user_make_writable(void __user *addr, size_t n);

/* bounce.c: read and write with file->ops. Return the bytes done, or a negative errno. */
ssize_t bounce_read(struct file *file, struct iov_iter *iter, u64 pos);
ssize_t bounce_write(struct file *file, struct iov_iter *iter, u64 pos);

#endif
