/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STRACE_LIVE_OS_H
#define PROFILE_STRACE_LIVE_OS_H

/*
 * What the trace of calls needs from the kernel besides ../os.h. The copies from user memory are
 * checked and may sleep. They return 0 or -EFAULT. The copy of a string returns its length,
 * -EFAULT, or -OS_ENAMETOOLONG if there is no NUL in `size` bytes.
 */

#include "../os.h"

#ifndef os_copy_from_user
#error "profile: define os_copy_from_user(dst, addr, n): copies user memory; 0 or an error"
#endif
#ifndef os_copy_string_from_user
#error "profile: define os_copy_string_from_user(dst, addr, size): copies a user's string"
#endif
/*
 * The list of calls that have a name: X(number, name, classes, type of the result, types of
 * arguments...); live.h defines the types. scripts/syscalltbl.py generates the list of this kernel,
 * with the calls of x86-64 Linux.
 */
#ifndef OS_SYSCALL_DECODE_LIST
#error "profile: define OS_SYSCALL_DECODE_LIST(X): the list of system calls"
#endif
/* Returns the user's stack pointer in the current call. */
#ifndef os_syscall_sp
#define os_syscall_sp() ((u64)0)
#endif
/* Returns the time since 1970. */
#ifndef os_realtime_ns
#define os_realtime_ns() ((u64)0)
#endif
/* Sleeps, even if signals come. Process context. */
#ifndef os_sleep_ms
#define os_sleep_ms(ms) ((void)(ms), os_relax_and_yield())
#endif

#endif
