/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TYPES_H
#define LEGO_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

typedef long ssize_t;
typedef long loff_t;
typedef int pid_t;
typedef u64 phys_addr_t;

/* One bit per CPU; CONFIG_NR_CPUS is at most 64. */
typedef u64 cpumask_t;

#endif
