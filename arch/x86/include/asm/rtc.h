/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_RTC_H
#define ASM_RTC_H

#include <lego/types.h>

/*
 * Reads the battery clock as seconds since 1970, taken as UTC; 0: the time is invalid. Process
 * context.
 */
u64 rtc_read_seconds(void);

#endif
