/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_TYPES_H
#define PROFILE_BATTERIES_TYPES_H

/* The types that os_hooks.h asks for, for a kernel that has none by these names. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int s32;
typedef long s64;
#define OS_U64_IS_LONG

#endif
