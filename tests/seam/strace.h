/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by strace, besides common.h. */
#define os_task_exec_cycles(pt) (os_cycles() - os_off_cycles(pt))
#define os_syscall_nr()		(this_thread()->call)
#define os_syscall_name(nr)	call_name(nr)
