/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_FPU_H
#define ASM_FPU_H

/* x87, SSE and AVX registers of user threads; the kernel itself never uses them. */

#include <lego/kernel.h>

struct task;

/* Enable the FPU of the running CPU; the boot CPU first finds out what it can save. Interrupts off.
 */
void fpu_init_cpu(unsigned int cpu);

/* Save prev's registers, load next's. Interrupts off, from switch_to(). */
void fpu_switch(struct task *prev, struct task *next);

/* The current task starts a program or a signal handler: registers as after reset. */
void fpu_reset(void);

/*
 * The current task's registers in the frame of a signal handler, as Linux lays them out there: an
 * XSAVE area with words in it and behind it that say so, or an FXSAVE area. 64-byte aligned.
 * Restoring takes registers that are not there as after reset, all of them for NULL. 0, -EFAULT,
 * or -EINVAL for what a CPU would not load. Process context, interrupts on.
 */
bool fpu_has_xsave(void);
size_t fpu_frame_bytes(void);
int fpu_save_frame(void __user *frame);
int fpu_restore_frame(const void __user *frame);

/* si_code of the x87 (else SIMD) exception that the current task has pending; 0: none. */
int fpu_exception_code(bool x87);

#endif
