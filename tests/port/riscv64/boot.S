/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts that C cannot express: the entry of harts and of traps, switching stacks. */

#define PT_REGS_BYTES 160
#define FRAME_BYTES   16

	.section .text.start, "ax"
	/* OpenSBI starts one hart here. a0: its number; a1: the device tree. */
	.globl	_start
_start:
	la	sp, boot_stack_end
	li	s0, 0
	li	ra, 0
	tail	boot

	/* start_cpus() starts the others here. a0: the hart's number; a1: its stack. */
	.globl	hart_entry
hart_entry:
	mv	sp, a1
	li	s0, 0
	li	ra, 0
	tail	start_cpu

	/* Interrupts and exceptions. tp stays: a task may return on another hart. */
	.balign	4
	.globl	trap_entry
trap_entry:
	addi	sp, sp, -(PT_REGS_BYTES + FRAME_BYTES)
	sd	ra, 0(sp)
	sd	s0, 16(sp)
	sd	t0, 24(sp)
	sd	t1, 32(sp)
	sd	t2, 40(sp)
	sd	t3, 48(sp)
	sd	t4, 56(sp)
	sd	t5, 64(sp)
	sd	t6, 72(sp)
	sd	a0, 80(sp)
	sd	a1, 88(sp)
	sd	a2, 96(sp)
	sd	a3, 104(sp)
	sd	a4, 112(sp)
	sd	a5, 120(sp)
	sd	a6, 128(sp)
	sd	a7, 136(sp)
	addi	t0, sp, PT_REGS_BYTES + FRAME_BYTES
	csrr	t1, sepc
	csrr	t2, sstatus
	sd	t0, 8(sp)
	sd	t1, 144(sp)
	sd	t2, 152(sp)
	/* A frame, so that call chains go on with the interrupted function. */
	sd	s0, 160(sp)
	sd	t1, 168(sp)
	mv	s0, t0
	mv	a0, sp
	csrr	a1, scause
	call	trap
	ld	t1, 144(sp)
	ld	t2, 152(sp)
	csrw	sepc, t1
	csrw	sstatus, t2
	ld	ra, 0(sp)
	ld	s0, 16(sp)
	ld	t0, 24(sp)
	ld	t1, 32(sp)
	ld	t2, 40(sp)
	ld	t3, 48(sp)
	ld	t4, 56(sp)
	ld	t5, 64(sp)
	ld	t6, 72(sp)
	ld	a0, 80(sp)
	ld	a1, 88(sp)
	ld	a2, 96(sp)
	ld	a3, 104(sp)
	ld	a4, 112(sp)
	ld	a5, 120(sp)
	ld	a6, 128(sp)
	ld	a7, 136(sp)
	addi	sp, sp, PT_REGS_BYTES + FRAME_BYTES
	sret

	/* switch_stacks(u64 *save, u64 load): saves the callee-saved registers of C. */
	.text
	.globl	switch_stacks
	.type	switch_stacks, @function
switch_stacks:
	addi	sp, sp, -112
	sd	s0, 0(sp)
	sd	s1, 8(sp)
	sd	s2, 16(sp)
	sd	s3, 24(sp)
	sd	s4, 32(sp)
	sd	s5, 40(sp)
	sd	s6, 48(sp)
	sd	s7, 56(sp)
	sd	s8, 64(sp)
	sd	s9, 72(sp)
	sd	s10, 80(sp)
	sd	s11, 88(sp)
	sd	ra, 96(sp)
	sd	sp, (a0)
	mv	sp, a1
	ld	s0, 0(sp)
	ld	s1, 8(sp)
	ld	s2, 16(sp)
	ld	s3, 24(sp)
	ld	s4, 32(sp)
	ld	s5, 40(sp)
	ld	s6, 48(sp)
	ld	s7, 56(sp)
	ld	s8, 64(sp)
	ld	s9, 72(sp)
	ld	s10, 80(sp)
	ld	s11, 88(sp)
	ld	t0, 96(sp)
	li	ra, 0		/* of a task that begins; C functions have saved theirs */
	addi	sp, sp, 112
	jr	t0

	.bss
	.balign	16
	.skip	16384
boot_stack_end:

	.section .note.GNU-stack, "", @progbits
