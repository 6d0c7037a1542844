/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_ERRNO_H
#define LEGO_ERRNO_H

/* Linux's numbers (asm-generic/errno-base.h, asm-generic/errno.h); functions return them negative.
 */

#define EPERM		1
#define ENOENT		2
#define ESRCH		3
#define EINTR		4
#define EIO		5
#define ENXIO		6
#define E2BIG		7
#define ENOEXEC		8
#define EBADF		9
#define ECHILD		10
#define EAGAIN		11
#define ENOMEM		12
#define EACCES		13
#define EFAULT		14
#define EBUSY		16
#define EEXIST		17
#define EXDEV		18
#define ENODEV		19
#define ENOTDIR		20
#define EISDIR		21
#define EINVAL		22
#define ENFILE		23
#define EMFILE		24
#define ENOTTY		25
#define ETXTBSY		26
#define EFBIG		27
#define ENOSPC		28
#define ESPIPE		29
#define EROFS		30
#define EMLINK		31
#define EPIPE		32
#define EDOM		33
#define ERANGE		34
#define EDEADLK		35
#define ENAMETOOLONG	36
#define ENOLCK		37
#define ENOSYS		38
#define ENOTEMPTY	39
#define ELOOP		40
#define EOVERFLOW	75
#define ENOTSOCK	88
#define EMSGSIZE	90
#define EPROTOTYPE	91
#define ENOPROTOOPT	92
#define EPROTONOSUPPORT 93
#define ESOCKTNOSUPPORT 94
#define ELIBBAD		80
#define EOPNOTSUPP	95
#define EAFNOSUPPORT	97
#define EADDRINUSE	98
#define ECONNRESET	104
#define ENOBUFS		105
#define EISCONN		106
#define ENOTCONN	107
#define ETOOMANYREFS	109
#define ETIMEDOUT	110
#define ECONNREFUSED	111

/*
 * Return values of calls that a signal has interrupted. Only inside the kernel: signal.c restarts
 * the call, or turns the value into EINTR, before user code sees it.
 */
#define ERESTARTSYS	      512 /* again, if the handler has SA_RESTART or there is none */
#define ERESTARTNOINTR	      513 /* again, always */
#define ERESTARTNOHAND	      514 /* again, if no handler runs */
#define ERESTART_RESTARTBLOCK 516 /* as NOHAND, by restart_syscall(): current->restart */

/* The largest errno: a system call's return in -MAX_ERRNO..-1 is an error, nothing else is. */
#define MAX_ERRNO 4095

#define IS_ERR_VALUE(x) ((unsigned long)(x) >= (unsigned long)-MAX_ERRNO)

static inline void *ERR_PTR(long error)
{
	return (void *)error;
}

static inline long PTR_ERR(const void *ptr)
{
	return (long)ptr;
}

static inline int IS_ERR(const void *ptr)
{
	return IS_ERR_VALUE(ptr);
}

#endif
