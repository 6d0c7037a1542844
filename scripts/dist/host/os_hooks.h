/* SPDX-License-Identifier: BSD-2-Clause */
/* Glue, part one: types, the clock, and what the hooks around a system call need of a task. */
#ifndef HOST_OS_HOOKS_H
#define HOST_OS_HOOKS_H

#define PROFILE_PORT_API 1

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

typedef struct task os_task_t;
typedef struct process os_process_t;
typedef struct registers os_regs_t;

u64 clock_ns(void); /* a cycle is a nanosecond here */
#define OS_U64_IS_LONG
#define os_cycles()	     clock_ns()
#define os_current_profile() (&current->profile)

#endif
