/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts that C cannot express: the entry of CPUs and of exceptions, switching stacks. */

#define PT_REGS_BYTES 192
#define FRAME_BYTES   16

	.section .text.start, "ax"
	.globl	_start
_start:
	adrp	x0, boot_stack_end
	add	x0, x0, :lo12:boot_stack_end
	mov	sp, x0
	mov	x29, xzr
	mov	x30, xzr
	b	boot

	/* start_cpus() starts the others here. x0: the CPU's stack. */
	.globl	cpu_entry
cpu_entry:
	mov	sp, x0
	mov	x29, xzr
	mov	x30, xzr
	b	start_cpu

	/* Exceptions of this level: handled is 1 for an interrupt, 0 for others. */
	.macro	vector handled
	.balign	128
	sub	sp, sp, #(PT_REGS_BYTES + FRAME_BYTES)
	stp	x0, x1, [sp, #0]
	mov	x1, #\handled
	b	exception_entry
	.endm

	.balign	2048
	.globl	vectors
vectors:
	.rept	4
	vector	0
	vector	1
	vector	1
	vector	0
	.endr

exception_entry:
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x9, [sp, #64]
	stp	x10, x11, [sp, #80]
	stp	x12, x13, [sp, #96]
	stp	x14, x15, [sp, #112]
	stp	x16, x17, [sp, #128]
	stp	x18, x29, [sp, #144]
	add	x2, sp, #(PT_REGS_BYTES + FRAME_BYTES)
	stp	x30, x2, [sp, #160]
	mrs	x2, elr_el1
	mrs	x3, spsr_el1
	stp	x2, x3, [sp, #176]
	/* A frame, so that call chains go on with the interrupted function. */
	stp	x29, x2, [sp, #PT_REGS_BYTES]
	add	x29, sp, #PT_REGS_BYTES
	mov	x0, sp
	bl	exception
	ldp	x2, x3, [sp, #176]
	msr	elr_el1, x2
	msr	spsr_el1, x3
	ldr	x30, [sp, #160]
	ldp	x18, x29, [sp, #144]
	ldp	x16, x17, [sp, #128]
	ldp	x14, x15, [sp, #112]
	ldp	x12, x13, [sp, #96]
	ldp	x10, x11, [sp, #80]
	ldp	x8, x9, [sp, #64]
	ldp	x6, x7, [sp, #48]
	ldp	x4, x5, [sp, #32]
	ldp	x2, x3, [sp, #16]
	ldp	x0, x1, [sp, #0]
	add	sp, sp, #(PT_REGS_BYTES + FRAME_BYTES)
	eret

	/* switch_stacks(u64 *save, u64 load): saves the callee-saved registers of C. */
	.text
	.globl	switch_stacks
	.type	switch_stacks, %function
switch_stacks:
	sub	sp, sp, #96
	stp	x19, x20, [sp, #0]
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	stp	x29, x30, [sp, #80]
	mov	x2, sp
	str	x2, [x0]
	mov	sp, x1
	ldp	x19, x20, [sp, #0]
	ldp	x21, x22, [sp, #16]
	ldp	x23, x24, [sp, #32]
	ldp	x25, x26, [sp, #48]
	ldp	x27, x28, [sp, #64]
	ldp	x29, x2, [sp, #80]
	mov	x30, xzr	/* of a task that begins; C functions have saved theirs */
	add	sp, sp, #96
	br	x2

	.bss
	.balign	16
	.skip	16384
boot_stack_end:

	.section .note.GNU-stack, "", %progbits
