/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_DESC_H
#define ASM_DESC_H

/* Segments, the task state segment and interrupt gates (SDM vol. 3, chapters 3, 6 and 8). */

/*
 * SYSCALL loads KERNEL_CS and the selector after it, SYSRET USER_DS and the one after it
 * (MSR_STAR).
 */
#define KERNEL_CS 0x08
#define KERNEL_DS 0x10
#define USER_DS	  0x1b
#define USER_CS	  0x23
#define TSS_SEL	  0x28

/* Slots of the interrupt stack table, for entries that must not trust the stack they interrupt. */
#define IST_NONE	  0
#define IST_DOUBLE_FAULT  1
#define IST_NMI		  2
#define IST_MACHINE_CHECK 3
#define NR_ISTS		  3

#define IST_STACK_SIZE 8192

#ifndef __ASSEMBLY__
#include <lego/kernel.h>

struct tss {
	u32 reserved0;
	u64 rsp[3]; /* rsp[0]: stack of interrupts and exceptions from user mode */
	u64 reserved1;
	u64 ist[7]; /* ist[0] is slot 1 */
	u64 reserved2;
	u16 reserved3;
	u16 io_map_base;
} __packed;

struct desc_ptr {
	u16 limit;
	u64 base;
} __packed;

/* Fills the interrupt table for all CPUs. Boot CPU, once, before interrupts. */
void idt_init(void);

/* Makes the running CPU use the table. */
void idt_load(void);
#endif

#endif
