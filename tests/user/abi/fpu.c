// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each thread has its own floating-point state. Many threads keep different values in all vector
 * registers (AVX where the CPU has it), in MXCSR and in the x87 control word while the tick and
 * sched_yield switch between them. A new thread starts with its creator's control words.
 */
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "check.h"

#define NR_THREADS 12
#define NR_ROUNDS  60

static int have_avx;

static uint32_t get_mxcsr(void)
{
	uint32_t value;

	asm volatile("stmxcsr %0" : "=m"(value));
	return value;
}

static void set_mxcsr(uint32_t value)
{
	asm volatile("ldmxcsr %0" : : "m"(value));
}

/* Loads all 16 registers from @in, does something for a while, stores them to @out. */
#define ALL(op)                                                                                 \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) \
		op(14) op(15)
#define LOAD_SSE(n)  "movups 32*" #n "(%[in]), %%xmm" #n "\n\t"
#define STORE_SSE(n) "movups %%xmm" #n ", 32*" #n "(%[out])\n\t"
#define LOAD_AVX(n)  "vmovups 32*" #n "(%[in]), %%ymm" #n "\n\t"
#define STORE_AVX(n) "vmovups %%ymm" #n ", 32*" #n "(%[out])\n\t"
#define SPIN	     "1: pause\n\tdec %[n]\n\tjnz 1b\n\t"
/* sched_yield is system call 24; it clobbers rax, rcx and r11 only. */
#define YIELD "mov $24, %%eax\n\tsyscall\n\t"

static void hold_sse(const void *in, void *out, long n)
{
	asm volatile(ALL(LOAD_SSE) SPIN YIELD ALL(STORE_SSE)
		     : [n] "+r"(n)
		     : [in] "r"(in), [out] "r"(out)
		     : "rax", "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
		       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
		       "xmm14", "xmm15");
}

static void hold_avx(const void *in, void *out, long n)
{
	asm volatile(ALL(LOAD_AVX) SPIN YIELD ALL(STORE_AVX) "vzeroupper"
		     : [n] "+r"(n)
		     : [in] "r"(in), [out] "r"(out)
		     : "rax", "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
		       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
		       "xmm14", "xmm15");
}

static void *keep(void *arg)
{
	uint32_t me = (uintptr_t)arg;
	uint32_t in[16][8], out[16][8];
	uint32_t rounding = me % 4 << 13;
	uint16_t control = 0x37f & ~0xc00, got;
	double sum = 0;

	CHECK(get_mxcsr() == (0x1f80 | 1 << 13)); /* inherited from main */
	set_mxcsr(0x1f80 | rounding);
	control |= me % 4 << 10;
	asm volatile("fldcw %0" : : "m"(control));
	for (int round = 0; round < NR_ROUNDS; round++) {
		for (int i = 0; i < 16; i++) {
			for (int j = 0; j < 8; j++)
				in[i][j] = me << 24 | round << 12 | i << 4 | j;
		}
		memset(out, 0, sizeof(out));
		if (have_avx)
			hold_avx(in, out, 2000);
		else
			hold_sse(in, out, 2000);
		for (int i = 0; i < 16; i++)
			CHECK(!memcmp(in[i], out[i], have_avx ? 32 : 16));
		CHECK((get_mxcsr() & ~0x3f) == (0x1f80 | rounding));
		asm volatile("fnstcw %0" : "=m"(got));
		CHECK(got == control);
		sum += 0.5;
	}
	CHECK(sum == NR_ROUNDS * 0.5);
	return NULL;
}

int main(void)
{
	unsigned int a, b, c, d;
	pthread_t threads[NR_THREADS];

	__cpuid(1, a, b, c, d);
	have_avx = (c >> 27 & 1) && (c >> 28 & 1); /* OSXSAVE and AVX */
	if (have_avx) {
		uint32_t low, high;

		asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
		have_avx = (low & 6) == 6;
	}
	printf("fpu: %s\n", have_avx ? "AVX" : "SSE only");
	CHECK((get_mxcsr() & ~0x3f) == 0x1f80);
	set_mxcsr(0x1f80 | 1 << 13);
	for (long i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, keep, (void *)i));
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	return check_finish("fpu");
}
