/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_FPU_H
#define ASM_FPU_H

/* The x87, SSE and AVX registers of user threads. The kernel itself never uses them. */

#include <lego/kernel.h>

struct task;

/*
 * Enables the FPU of the running CPU. The boot CPU first finds the features to save. Interrupts
 * off.
 */
void fpu_init_cpu(unsigned int cpu);

/* Saves prev's registers and loads next's. Interrupts off, from switch_to(). */
void fpu_switch(struct task *prev, struct task *next);

/* Resets the registers for a program or signal handler that the current task starts. */
void fpu_reset(void);

/*
 * The current task's registers in a signal frame, in Linux's layout: an XSAVE area with marker
 * words in it and after it, or an FXSAVE area. The frame is 64-byte aligned. Restoring resets the
 * registers that the frame does not contain; NULL resets all. Returns 0, -EFAULT, or -EINVAL for
 * values that a CPU would refuse. Process context, interrupts on.
 */
bool fpu_has_xsave(void);
size_t fpu_frame_bytes(void);
int fpu_save_frame(void __user *frame);
int fpu_restore_frame(const void __user *frame);

/* Returns the si_code of the current task's pending x87 (else SIMD) exception; 0: none. */
int fpu_exception_code(bool x87);

#endif
