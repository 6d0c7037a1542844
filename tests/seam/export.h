/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by exports, besides common.h. */
#define os_physical_address(ptr) ((u64)(unsigned long)(ptr))
#define os_random()		 random_number()
