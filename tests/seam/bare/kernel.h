/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BARE_KERNEL_H
#define BARE_KERNEL_H

/*
 * Declares the part of an imaginary kernel that the glue beside it uses: a small one, as kernels
 * for teaching are. It has tasks, a tick and a console for characters; no printf, no allocator that
 * is fit for interrupts, no names of functions and no clock. tests/boot/test_seam.py compiles it.
 */

#include <batteries/string.h>
#include <batteries/types.h>

#define MAX_CPUS      4
#define TICKS_PER_SEC 100
#define STACK_BYTES   16384

struct trap_frame {
	u64 pc, sp, fp, ra;
	bool from_user, interrupts_off;
};

u32 cpu_number(void);
u32 interrupt_depth(void);
u64 clock_rate(void);
void put_char(char c);
struct task *this_task(void);
const char *call_name(u64 nr);
bool copy_in(void *dst, u64 addr, size_t n);

#endif
