/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_ACCOUNTS_H
#define PROFILE_ACCOUNTS_H

/* The owners of the time of all CPUs since boot, for the report and for /proc/profile. */

#include "os.h"

#define NR_ACCOUNTS 10

struct account {
	const char *owner;
	u64 cycles;
};

/*
 * Reads the accounts. Their sum is the time of all CPUs. Returns the number of CPUs. The kernel has
 * OS_HAS_CPU_TIMES. Any context but NMI, also in a panic.
 */
u32 accounts_read(struct account accounts[NR_ACCOUNTS]);

#endif
