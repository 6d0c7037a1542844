/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FAIL_ALLOC_H
#define LEGO_FAIL_ALLOC_H

#include <lego/types.h>

#ifdef CONFIG_DEBUG_FAIL_ALLOC

/*
 * Called by each allocator before anything else. Returns true if this allocation must fail. Any
 * context but NMI.
 */
bool fail_alloc(void);

/*
 * Called by each copy to or from user memory. Returns true if it must fail, as if the page were
 * gone. Process context.
 */
bool fail_usercopy(void);

void fail_alloc_init(void); /* /proc/fail_alloc and /proc/fail_usercopy */

#else

static inline bool fail_alloc(void)
{
	return false;
}

static inline bool fail_usercopy(void)
{
	return false;
}

static inline void fail_alloc_init(void)
{
}

#endif

#endif
