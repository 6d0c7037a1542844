/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by waits, besides samples.h and chains.h. */
#define os_task_of(pt) pf_container_of(pt, struct thread, profile)
