/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by strace, besides common.h. */
#define os_task_exec_cycles(pt) time_on(pf_container_of(pt, struct thread, profile))
#define os_syscall_name(nr)	call_name(nr)
