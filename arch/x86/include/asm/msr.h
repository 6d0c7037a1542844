/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_MSR_H
#define ASM_MSR_H

/*
 * Model-specific registers (SDM vol. 4). Writing a reserved value faults, which is fatal, so check
 * CPUID first.
 */

#define MSR_APIC_BASE	   0x0000001b
#define MSR_EFER	   0xc0000080
#define MSR_STAR	   0xc0000081
#define MSR_LSTAR	   0xc0000082
#define MSR_SFMASK	   0xc0000084
#define MSR_FS_BASE	   0xc0000100
#define MSR_GS_BASE	   0xc0000101
#define MSR_KERNEL_GS_BASE 0xc0000102 /* in the kernel: the user's GS base */

#define EFER_SCE (1 << 0)
#define EFER_LME (1 << 8)
#define EFER_NXE (1 << 11)

#ifndef __ASSEMBLY__
#include <lego/types.h>

static inline u64 rdmsr(u32 msr)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr) : "memory");
	return (u64)high << 32 | low;
}

static inline void wrmsr(u32 msr, u64 value)
{
	asm volatile("wrmsr" ::"c"(msr), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
}
#endif

#endif
