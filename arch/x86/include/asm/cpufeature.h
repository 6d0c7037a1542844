/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_CPUFEATURE_H
#define ASM_CPUFEATURE_H

/* CPU features by CPUID (SDM vol. 2, CPUID). Any context. */

#include <lego/types.h>

struct cpuid_regs {
	u32 eax, ebx, ecx, edx;
};

static inline struct cpuid_regs cpuid_count(u32 leaf, u32 subleaf)
{
	struct cpuid_regs regs;

	asm volatile("cpuid"
		     : "=a"(regs.eax), "=b"(regs.ebx), "=c"(regs.ecx), "=d"(regs.edx)
		     : "a"(leaf), "c"(subleaf));
	return regs;
}

static inline struct cpuid_regs cpuid(u32 leaf)
{
	return cpuid_count(leaf, 0);
}

/* Returns zeros for a leaf that the CPU does not have. The CPU itself would return another leaf. */
static inline struct cpuid_regs cpuid_checked(u32 leaf, u32 subleaf)
{
	if (cpuid(leaf & 0x80000000).eax < leaf)
		return (struct cpuid_regs){};
	return cpuid_count(leaf, subleaf);
}

static inline bool cpu_has_xsave(void)
{
	return cpuid_checked(1, 0).ecx & 1u << 26;
}

static inline bool cpu_has_smep(void)
{
	return cpuid_checked(7, 0).ebx & 1u << 7;
}

static inline bool cpu_has_smap(void)
{
	return cpuid_checked(7, 0).ebx & 1u << 20;
}

static inline bool cpu_has_umip(void)
{
	return cpuid_checked(7, 0).ecx & 1u << 2;
}

static inline bool cpu_has_nx(void)
{
	return cpuid_checked(0x80000001, 0).edx & 1u << 20;
}

#endif
