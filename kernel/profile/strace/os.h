/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STRACE_OS_H
#define PROFILE_STRACE_OS_H

/* What strace needs from the kernel besides ../os.h, which explains how it is supplied. */

#include "../os.h"

/*
 * Returns the memory that a new process has as a copy of the current one's; 0: it shares that, or
 * there is none. Only this process and its creator use it.
 */
#ifndef os_process_copied_bytes
#define os_process_copied_bytes(proc) ((void)(proc), (u64)0)
#endif

#endif
