// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies to and from user memory, 8 bytes at a time, then the rest byte by byte. After a fault that
 * mm_fault() cannot resolve, execution continues after the copy, and rcx has what is left of that
 * part.
 */

#include <lego/uaccess.h>

#include <lego/fail_alloc.h>

#include <asm/smap.h>

static u64 copy_user(void *dst, const void *src, size_t n)
{
	u64 left = n / 8;

	asm volatile(ASM_STAC "1:	rep movsq\n"
			      "	mov	%[rest], %%rcx\n"
			      "2:	rep movsb\n"
			      "3:\n" ASM_CLAC ASM_EXCEPTION("1b", "3b") ASM_EXCEPTION("2b", "3b")
		     : "+&c"(left), "+&D"(dst), "+&S"(src)
		     : [rest] "r"(n % 8)
		     : "memory");
	return left;
}

int copy_from_user(void *dst, const void __user *src, size_t n)
{
	might_sleep();
	return fail_usercopy() ? -EFAULT : copy_from_user_nofault(dst, src, n);
}

int copy_from_user_nofault(void *dst, const void __user *src, size_t n)
{
	return access_ok(src, n) && !copy_user(dst, src, n) ? 0 : -EFAULT;
}

int copy_to_user(void __user *dst, const void *src, size_t n)
{
	might_sleep();
	return !fail_usercopy() && access_ok(dst, n) && !copy_user(dst, src, n) ? 0 : -EFAULT;
}

#define DEFINE_PUT_USER(type)                                                   \
	int put_user_##type(void __user *dst, u64 value)                        \
	{                                                                       \
		int error = -EFAULT;                                            \
                                                                                \
		might_sleep();                                                  \
		if (fail_usercopy() || !access_ok(dst, sizeof(type)))           \
			return -EFAULT;                                         \
		asm volatile(ASM_STAC "1:	mov	%[value], (%[dst])\n"             \
				      "	xorl	%[error], %[error]\n"              \
				      "2:\n" ASM_CLAC ASM_EXCEPTION("1b", "2b") \
			     : [error] "+r"(error)                              \
			     : [dst] "r"(dst), [value] "r"((type)value)         \
			     : "memory", "cc");                                 \
		return error;                                                   \
	}

DEFINE_PUT_USER(u8)
DEFINE_PUT_USER(u16)
DEFINE_PUT_USER(u32)
DEFINE_PUT_USER(u64)

int clear_user(void __user *dst, size_t n)
{
	u64 left = n / 8;

	might_sleep();
	if (fail_usercopy() || !access_ok(dst, n))
		return -EFAULT;
	asm volatile(ASM_STAC "1:	rep stosq\n"
			      "	mov	%[rest], %%rcx\n"
			      "2:	rep stosb\n"
			      "3:\n" ASM_CLAC ASM_EXCEPTION("1b", "3b") ASM_EXCEPTION("2b", "3b")
		     : "+&c"(left), "+&D"(dst)
		     : [rest] "r"(n % 8), "a"(0)
		     : "memory");
	return left ? -EFAULT : 0;
}

/*
 * Copies in chunks that end at multiples of 64 bytes, so no chunk extends into a page that the
 * string does not reach.
 */
ssize_t strncpy_from_user(char *dst, const char __user *src, size_t size)
{
	size_t done = 0;

	while (done < size) {
		size_t piece = 64 - (unsigned long)(src + done) % 64;

		piece = min(piece, size - done);
		if (copy_from_user(dst + done, src + done, piece))
			return -EFAULT;
		for (size_t end = done + piece; done < end; done++)
			if (!dst[done])
				return done;
	}
	return -ENAMETOOLONG;
}

int user_cmpxchg_u32(u32 __user *addr, u32 expected, u32 desired, u32 *old)
{
	int error = -EFAULT;

	if (fail_usercopy() || !access_ok(addr, sizeof(*addr)))
		return -EFAULT;
	asm volatile(ASM_STAC "1:	lock cmpxchgl %[desired], (%[addr])\n"
			      "	xorl	%[error], %[error]\n"
			      "2:\n" ASM_CLAC ASM_EXCEPTION("1b", "2b")
		     : [error] "+r"(error), "+a"(expected)
		     : [addr] "r"(addr), [desired] "r"(desired)
		     : "memory", "cc");
	*old = expected;
	return error;
}
