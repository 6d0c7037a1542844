/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_RTC_H
#define ASM_RTC_H

#include <lego/types.h>

/*
 * The battery clock as seconds since 1970, taken as UTC; 0 when it makes no sense. Process
 * context.
 */
u64 rtc_read_seconds(void);

#endif
