// SPDX-License-Identifier: BSD-2-Clause
/*
 * x87, SSE and AVX state of user threads, by XSAVE in standard form (SDM vol. 1, chapter 13) or
 * FXSAVE on CPUs without it. A thread's registers are saved when it is switched out and loaded when
 * it is switched in: no lazy tricks, so no thread ever sees another's.
 */
#include <asm/fpu.h>

#include <asm/cpufeature.h>
#include <asm/irqflags.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>

#define CR4_OSFXSR     BIT(9)
#define CR4_OSXMMEXCPT BIT(10)
#define CR4_OSXSAVE    BIT(18)

#define XFEATURE_X87	BIT(0)
#define XFEATURE_SSE	BIT(1)
#define XFEATURE_AVX	BIT(2)
#define XFEATURE_AVX512 (BIT(5) | BIT(6) | BIT(7)) /* all three or none */

#define CPUID_XSAVE    0xd
#define FXSAVE_SIZE    512
#define XSAVE_MIN_SIZE 576 /* with the header */
#define FPU_ALIGN      64

#define FCW_OFFSET    0
#define MXCSR_OFFSET  24
#define FCW_DEFAULT   0x37f
#define MXCSR_DEFAULT 0x1f80

static u64 xfeatures; /* XCR0; 0: FXSAVE only */
static bool have_xsaveopt;
static size_t area_bytes = FXSAVE_SIZE;

static void find_features(void)
{
	struct cpuid_regs supported;

	if (!cpu_has_xsave())
		return;
	supported = cpuid_count(CPUID_XSAVE, 0);
	xfeatures = XFEATURE_X87 | XFEATURE_SSE;
	xfeatures |= supported.eax & XFEATURE_AVX;
	if ((xfeatures & XFEATURE_AVX) && (supported.eax & XFEATURE_AVX512) == XFEATURE_AVX512)
		xfeatures |= XFEATURE_AVX512;
	have_xsaveopt = cpuid_count(CPUID_XSAVE, 1).eax & 1;
}

/* The size of the enabled features can be asked only once they are enabled. */
void fpu_init_cpu(unsigned int cpu)
{
	u64 cr4;

	if (cpu == 0)
		find_features();
	asm volatile("mov %%cr4, %0" : "=r"(cr4));
	cr4 |= CR4_OSFXSR | CR4_OSXMMEXCPT | (xfeatures ? CR4_OSXSAVE : 0);
	asm volatile("mov %0, %%cr4" ::"r"(cr4) : "memory");
	if (xfeatures) {
		asm volatile("xsetbv" ::"c"(0), "a"((u32)xfeatures), "d"((u32)(xfeatures >> 32)));
		if (cpu == 0)
			area_bytes = max((size_t)cpuid_count(CPUID_XSAVE, 0).ebx,
					 (size_t)XSAVE_MIN_SIZE);
	}
	asm volatile("fninit");
}

/* XSAVEOPT leaves out what the area already has from the last XRSTOR: only right for that area. */
static void save_optimized(void *area)
{
	if (have_xsaveopt)
		asm volatile("xsaveopt64 (%0)" ::"r"(area), "a"(~0), "d"(~0) : "memory");
	else if (xfeatures)
		asm volatile("xsave64 (%0)" ::"r"(area), "a"(~0), "d"(~0) : "memory");
	else
		asm volatile("fxsave64 (%0)" ::"r"(area) : "memory");
}

static void save(void *area)
{
	if (xfeatures)
		asm volatile("xsave64 (%0)" ::"r"(area), "a"(~0), "d"(~0) : "memory");
	else
		asm volatile("fxsave64 (%0)" ::"r"(area) : "memory");
}

static void load(const void *area)
{
	if (xfeatures)
		asm volatile("xrstor64 (%0)" ::"r"(area), "a"(~0), "d"(~0) : "memory");
	else
		asm volatile("fxrstor64 (%0)" ::"r"(area) : "memory");
}

/* An XSAVE header of zero means reset values, MXCSR excepted; FXRSTOR takes FCW from here too. */
static void clean(void *area)
{
	memset(area, 0, area_bytes);
	*(u16 *)((char *)area + FCW_OFFSET) = FCW_DEFAULT;
	*(u32 *)((char *)area + MXCSR_OFFSET) = MXCSR_DEFAULT;
}

void fpu_switch(struct task *prev, struct task *next)
{
	if (prev->thread.fpu)
		save_optimized(prev->thread.fpu);
	if (next->thread.fpu)
		load(next->thread.fpu);
}

void fpu_reset(void)
{
	unsigned long flags = local_irq_save();

	clean(current->thread.fpu);
	load(current->thread.fpu);
	local_irq_restore(flags);
}

/* kmalloc() aligns powers of two to their size, and more than a page to pages. */
int thread_fpu_alloc(struct task *task)
{
	size_t size = FXSAVE_SIZE;

	while (size < area_bytes)
		size *= 2;
	task->thread.fpu = kmalloc(size);
	if (!task->thread.fpu)
		return -ENOMEM;
	BUG_ON(!IS_ALIGNED((unsigned long)task->thread.fpu, FPU_ALIGN));
	clean(task->thread.fpu);
	return 0;
}

int thread_fpu_copy(struct task *task)
{
	int error = thread_fpu_alloc(task);

	if (!error && current->thread.fpu)
		save(task->thread.fpu);
	return error;
}

void thread_fpu_free(struct task *task)
{
	kfree(task->thread.fpu);
	task->thread.fpu = NULL;
}
