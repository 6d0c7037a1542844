/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_UACCESS_H
#define LEGO_UACCESS_H

/*
 * The only ways to user memory. Process context, interrupts on, may sleep in a page fault; hold no
 * spinlock and not mm->lock. Return 0 or -EFAULT; after -EFAULT part of the bytes may have been
 * copied.
 */

#include <asm/uaccess.h>
#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/lock_check.h>

int copy_from_user(void *dst, const void __user *src, size_t n) __must_check;

/*
 * May be called with interrupts off and spinlocks held. Also returns -EFAULT if the page is not
 * present now.
 */
int copy_from_user_nofault(void *dst, const void __user *src, size_t n) __must_check;

int copy_to_user(void __user *dst, const void *src, size_t n) __must_check;
int clear_user(void __user *dst, size_t n) __must_check;

/*
 * Copies a string. Returns its length without the NUL, -EFAULT, or -ENAMETOOLONG if there is no NUL
 * in the first size bytes.
 */
ssize_t strncpy_from_user(char *dst, const char __user *src, size_t size) __must_check;

#define get_user(x, ptr)	 copy_from_user(&(x), ptr, sizeof(*(ptr)))
#define get_user_nofault(x, ptr) copy_from_user_nofault(&(x), ptr, sizeof(*(ptr)))
/* Stores a value of 1, 2, 4 or 8 bytes. For put_user(). */
int put_user_u8(void __user *dst, u64 value) __must_check;
int put_user_u16(void __user *dst, u64 value) __must_check;
int put_user_u32(void __user *dst, u64 value) __must_check;
int put_user_u64(void __user *dst, u64 value) __must_check;

static __always_inline int put_user_bytes(void __user *dst, const void *src, size_t n)
{
	u64 value = 0;

	if (n > sizeof(value) || n & (n - 1))
		return copy_to_user(dst, src, n);
	__builtin_memcpy(&value, src, n);
	return n == 1 ? put_user_u8(dst, value) :
	       n == 2 ? put_user_u16(dst, value) :
	       n == 4 ? put_user_u32(dst, value) :
			put_user_u64(dst, value);
}

#define put_user(x, ptr)                                      \
	({                                                    \
		__typeof__(*(ptr)) _value = (x);              \
		put_user_bytes(ptr, &_value, sizeof(_value)); \
	})

/*
 * Does an atomic cmpxchg on a user word, and stores the old value in *old. addr is 4-byte aligned.
 * Returns 0 or -EFAULT. With interrupts off, also returns -EFAULT if the page is not present and
 * writable now.
 */
int user_cmpxchg_u32(u32 __user *addr, u32 expected, u32 desired, u32 *old) __must_check;

/* Returns true if [addr, addr + n) is in user space. */
static inline bool access_ok(const void __user *addr, size_t n)
{
	return n <= TASK_SIZE && (unsigned long)addr <= TASK_SIZE - n;
}

#endif
