/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_FPU_H
#define ASM_FPU_H

/* x87, SSE and AVX registers of user threads; the kernel itself never uses them. */

struct task;

/* Enable the FPU of the running CPU; the boot CPU first finds out what it can save. Interrupts off.
 */
void fpu_init_cpu(unsigned int cpu);

/* Save prev's registers, load next's. Interrupts off, from switch_to(). */
void fpu_switch(struct task *prev, struct task *next);

/* The current task starts a program: registers as after reset. */
void fpu_reset(void);

#endif
