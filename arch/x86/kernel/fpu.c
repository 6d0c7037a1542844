// SPDX-License-Identifier: BSD-2-Clause
/*
 * x87, SSE and AVX state of user threads, by XSAVE in standard form (SDM vol. 1, chapter 13) or
 * FXSAVE on CPUs without it. A thread's registers are saved when it is switched out and loaded when
 * it is switched in, never lazily, so no thread ever sees another's. The registers in a signal
 * frame go directly between the CPU and user memory.
 */
#include <asm/fpu.h>

#include <asm/cpufeature.h>
#include <asm/irqflags.h>
#include <asm/smap.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/signal.h>
#include <lego/string.h>
#include <lego/uaccess.h>

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

#define FCW_OFFSET	  0
#define FSW_OFFSET	  2
#define MXCSR_OFFSET	  24
#define MXCSR_MASK_OFFSET 28
#define SW_OFFSET	  464 /* free for software; 48 bytes */
#define XHEADER_OFFSET	  512
#define FCW_DEFAULT	  0x37f
#define MXCSR_DEFAULT	  0x1f80
#define MXCSR_MASK_OLD	  0xffbf /* of a CPU that gives none */

/* In the frame of a signal handler: at SW_OFFSET, and a second mark behind the area. */
#define FRAME_MAGIC1 0x46505853
#define FRAME_MAGIC2 0x46505845

struct frame_sw {
	u32 magic1;
	u32 frame_bytes; /* with the second mark */
	u64 xfeatures;
	u32 area_bytes;
	u32 zero[7];
};

BUILD_BUG_ON(sizeof(struct frame_sw) != XHEADER_OFFSET - SW_OFFSET);

static u64 xfeatures; /* XCR0; 0: FXSAVE only */
static bool have_xsaveopt;
static size_t area_bytes = FXSAVE_SIZE;
static u32 mxcsr_mask; /* bits that MXCSR has */

/* The registers after a reset. With a header of zero, XRSTOR reads no more than this. */
static u8 initial[XSAVE_MIN_SIZE] __aligned(FPU_ALIGN);

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

/* An XSAVE header of zero means reset values, MXCSR excepted; FXRSTOR takes FCW from here too. */
static void clean(void *area, size_t bytes)
{
	memset(area, 0, bytes);
	*(u16 *)((char *)area + FCW_OFFSET) = FCW_DEFAULT;
	*(u32 *)((char *)area + MXCSR_OFFSET) = MXCSR_DEFAULT;
}

static void find_initial(void)
{
	asm volatile("fxsave64 (%0)" ::"r"(initial) : "memory");
	mxcsr_mask = *(u32 *)(initial + MXCSR_MASK_OFFSET) ?: MXCSR_MASK_OLD;
	clean(initial, sizeof(initial));
}

/* CPUID returns the size of the enabled features, so they must be enabled first. */
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
	if (cpu == 0)
		find_initial();
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

void fpu_switch(struct task *prev, struct task *next)
{
	if (prev->thread.fpu)
		save_optimized(prev->thread.fpu);
	if (next->thread.fpu)
		load(next->thread.fpu);
}

void fpu_reset(void)
{
	load(initial);
}

int thread_fpu_alloc(struct task *task)
{
	task->thread.fpu = kmalloc(max(area_bytes, SLAB_LARGE_SIZE));
	if (!task->thread.fpu)
		return -ENOMEM;
	BUG_ON(!IS_ALIGNED((unsigned long)task->thread.fpu, FPU_ALIGN));
	clean(task->thread.fpu, area_bytes);
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

bool fpu_has_xsave(void)
{
	return xfeatures;
}

size_t fpu_frame_bytes(void)
{
	return area_bytes + (xfeatures ? sizeof(u32) : 0);
}

/*
 * Saves the CPU's registers in the task's area. If the task is switched out meanwhile, the same
 * values are written. Does not use XSAVEOPT, which would omit parts in their initial state.
 */
static u8 *save_current(void)
{
	unsigned long flags = local_irq_save();

	save(current->thread.fpu);
	local_irq_restore(flags);
	return current->thread.fpu;
}

/*
 * Saves to user memory. The header always marks x87 and SSE as present, because programs that
 * change these registers in a frame may not know the header.
 */
static int save_to_user(void __user *area)
{
	int error = -EFAULT;

	if (xfeatures)
		asm volatile(ASM_STAC "1:	xsave64 (%[area])\n"
				      "2:	orq	%[always], %c[header](%[area])\n"
				      "	xorl	%[error], %[error]\n"
				      "3:\n" ASM_CLAC ASM_EXCEPTION("1b", "3b")
					      ASM_EXCEPTION("2b", "3b")
			     : [error] "+r"(error)
			     : [area] "r"(area), "a"(~0), "d"(~0), [header] "i"(XHEADER_OFFSET),
			       [always] "i"(XFEATURE_X87 | XFEATURE_SSE)
			     : "memory", "cc");
	else
		asm volatile(ASM_STAC "1:	fxsave64 (%[area])\n"
				      "	xorl	%[error], %[error]\n"
				      "2:\n" ASM_CLAC ASM_EXCEPTION("1b", "2b")
			     : [error] "+r"(error)
			     : [area] "r"(area)
			     : "memory", "cc");
	return error;
}

/*
 * Loads from user memory. features says which ones; 0: an FXSAVE area. The CPU refuses invalid
 * values.
 */
static int load_from_user(const void __user *area, u64 features)
{
	int error = -EFAULT;

	if (features)
		asm volatile(ASM_STAC "1:	xrstor64 (%[area])\n"
				      "	xorl	%[error], %[error]\n"
				      "2:\n" ASM_CLAC ASM_EXCEPTION("1b", "2b")
			     : [error] "+r"(error)
			     : [area] "r"(area), "a"((u32)features), "d"((u32)(features >> 32))
			     : "memory", "cc");
	else
		asm volatile(ASM_STAC "1:	fxrstor64 (%[area])\n"
				      "	xorl	%[error], %[error]\n"
				      "2:\n" ASM_CLAC ASM_EXCEPTION("1b", "2b")
			     : [error] "+r"(error)
			     : [area] "r"(area)
			     : "memory", "cc");
	return error;
}

int fpu_save_frame(void __user *frame)
{
	/* XSAVE leaves both out, but for the header's first word. */
	const struct {
		struct frame_sw sw;
		u64 header[8];
	} rest = {
		.sw.magic1 = FRAME_MAGIC1,
		.sw.frame_bytes = fpu_frame_bytes(),
		.sw.xfeatures = xfeatures,
		.sw.area_bytes = area_bytes,
	};
	u8 __user *user = frame;

	BUILD_BUG_ON(SW_OFFSET + sizeof(rest) != XSAVE_MIN_SIZE);
	if (!access_ok(user, fpu_frame_bytes()))
		return -EFAULT;
	if (!xfeatures)
		return save_to_user(user);
	if (copy_to_user(user + SW_OFFSET, &rest, sizeof(rest)) || save_to_user(user))
		return -EFAULT;
	return put_user(FRAME_MAGIC2, (u32 __user *)(user + area_bytes));
}

/* Returns the features, as in XCR0, that a frame has besides the FXSAVE area, or 0. */
static u64 frame_features(const u8 __user *frame)
{
	struct frame_sw sw;
	u32 magic2;

	if (!xfeatures || get_user(sw, (const struct frame_sw __user *)(frame + SW_OFFSET)) ||
	    sw.magic1 != FRAME_MAGIC1 || sw.area_bytes < XSAVE_MIN_SIZE ||
	    sw.area_bytes > area_bytes || sw.area_bytes > sw.frame_bytes)
		return 0;
	if (get_user(magic2, (const u32 __user *)(frame + sw.area_bytes)) || magic2 != FRAME_MAGIC2)
		return 0;
	return sw.xfeatures & xfeatures;
}

int fpu_restore_frame(const void __user *frame)
{
	const u8 __user *user = frame;
	u64 features;
	u32 mxcsr;
	int error;

	if (!frame) {
		fpu_reset();
		return 0;
	}
	if (!access_ok(frame, area_bytes) || get_user(mxcsr, (u32 __user *)(user + MXCSR_OFFSET)))
		return -EFAULT;
	/* TCG would load it. */
	if (mxcsr & ~mxcsr_mask)
		return -EINVAL;
	features = frame_features(frame);
	if (features != xfeatures)
		fpu_reset(); /* what the frame leaves out */
	error = load_from_user(frame, features);
	if (error)
		fpu_reset(); /* a part may be loaded */
	return error;
}

int fpu_exception_code(bool x87)
{
	const u8 *area = save_current();
	u32 mxcsr, raised;
	u16 fcw, fsw;

	memcpy(&fcw, area + FCW_OFFSET, sizeof(fcw));
	memcpy(&fsw, area + FSW_OFFSET, sizeof(fsw));
	memcpy(&mxcsr, area + MXCSR_OFFSET, sizeof(mxcsr));
	raised = x87 ? fsw & ~fcw : mxcsr & ~(mxcsr >> 7);
	if (raised & BIT(0))
		return FPE_FLTINV;
	if (raised & BIT(2))
		return FPE_FLTDIV;
	if (raised & BIT(3))
		return FPE_FLTOVF;
	if (raised & (BIT(1) | BIT(4))) /* denormal, underflow */
		return FPE_FLTUND;
	return raised & BIT(5) ? FPE_FLTRES : 0;
}
