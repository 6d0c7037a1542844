// SPDX-License-Identifier: BSD-2-Clause
/*
 * chain MS: burns CPU time for MS milliseconds, in user code and in system calls, always in the
 * same chain of callers: chain_start(), outer(), middle(), inner(). All have frames, and the first
 * has no caller. Then it prints, as far as the files exist, its mappings (`maps <line>`) and one
 * snapshot of the samples: `stacks <line>`, and in the same way the records, the other views and
 * the instructions of one kernel function. chain-nofp is the same program without frame pointers.
 */
#include <sys/syscall.h>

#include "clock.h"
#include "proc_profile.h"

#define ROUNDS 1000

static long end_ms;

/* Makes a system call without a library function in between. */
static inline __attribute__((always_inline)) void call_kernel(void)
{
	long ret;

	asm volatile("syscall" : "=a"(ret) : "0"(SYS_getppid) : "rcx", "r11", "memory");
}

/* volatile keeps the loop from being removed, and each call from becoming a tail call. */
static __attribute__((noinline)) int inner(void)
{
	volatile int nr = 0;

	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < 100; j++)
			nr++;
		call_kernel();
	}
	return nr;
}

static __attribute__((noinline)) int middle(void)
{
	volatile int nr = 0;

	do
		nr += inner();
	while (now_ms() < end_ms);
	return nr;
}

static __attribute__((noinline)) int outer(void)
{
	volatile int nr = middle();

	return nr;
}

int chain_start(int (*fn)(void));

/* The C library makes the first frames of this program, and may keep no frame pointers. */
asm(".pushsection .text\n"
    ".type chain_start, @function\n"
    "chain_start:\n"
    "	push	%rbp\n"
    "	xor	%ebp, %ebp\n"
    "	call	*%rdi\n"
    "	pop	%rbp\n"
    "	ret\n"
    ".size chain_start, . - chain_start\n"
    ".popsection");

int main(int argc, char **argv)
{
	if (argc != 2) {
		puts("usage: chain MS");
		return 2;
	}
	end_ms = now_ms() + atol(argv[1]);
	printf("chain: %d\n", chain_start(outer) != 0);
	control("/proc/profile/heatmap", "off");
	control("/proc/profile/function", "do_syscall_64");
	print_file("maps", "/proc/self/maps");
	print_file("stacks", "/proc/profile/stacks");
	print_file("records", "/proc/profile/samples.json");
	print_file("heatmap", "/proc/profile/heatmap");
	print_file("function", "/proc/profile/function");
	puts("PASS: chain");
	return 0;
}
