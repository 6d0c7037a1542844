/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_RANDOM_H
#define ASM_RANDOM_H

#include <asm/cpufeature.h>

#define RDRAND_TRIES 10 /* SDM vol. 1, 7.3.17.1 */

/* Returns a number from RDRAND; 0 if the CPU has none or it failed. Any context. */
static inline u64 arch_random_u64(void)
{
	u64 value = 0;
	bool ok = false;

	if (!(cpuid_checked(1, 0).ecx & 1u << 30))
		return 0;
	for (int i = 0; i < RDRAND_TRIES && !ok; i++)
		asm volatile("rdrand %0" : "=r"(value), "=@ccc"(ok));
	return ok ? value : 0;
}

#endif
