/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first instructions of a secondary CPU, in real mode. smp.c copies this code to the start of a
 * page below 1 MiB and fills in trampoline_data. The code enters long mode in one step, because SDM
 * vol. 3, 9.8.5 allows setting PE and PG together. It loads the boot CPU's control registers, and
 * then calls the kernel's C. Code refers to the copy only by offsets from trampoline_start. The
 * page stays as it is, for CPUs that are late and for CPUs that are not used.
 */
#include <asm/desc.h>
#include <asm/msr.h>
#include <asm/setup.h>

#define OFFSET(label) ((label) - trampoline_start)

	.section .rodata.trampoline, "a"
	.balign 16
	.globl	trampoline_start, trampoline_long_mode, trampoline_gdt, trampoline_data
	.globl	trampoline_park, trampoline_end

	.code16
trampoline_start:
	cli
	cld
	movw	%cs, %ax
	movw	%ax, %ds

	/*
	 * Takes the number that smp.c has put there for this CPU. If the boot CPU has given up on
	 * this CPU, the number is gone, and the stack may be that of another one.
	 */
	movl	$1, %eax
	cpuid
	shrl	$24, %ebx
	movl	%ebx, %eax
	movl	$TRAMPOLINE_NO_CPU, %edx
	lock cmpxchgl %edx, OFFSET(data_apic_id)
	jne	trampoline_park

	lgdtl	OFFSET(data_gdt_pointer)
	movl	OFFSET(data_cr4), %eax
	movl	%eax, %cr4
	movl	OFFSET(data_cr3), %eax
	movl	%eax, %cr3
	movl	$MSR_EFER, %ecx
	movl	OFFSET(data_efer), %eax
	xorl	%edx, %edx
	wrmsr
	movl	OFFSET(data_cr0), %eax
	movl	%eax, %cr0
	ljmpl	*OFFSET(data_long_mode)

/* Halts for good. Also the NMI handler of a CPU in real mode: NMIs stay blocked, without IRET. */
trampoline_park:
	cli
	hlt
	jmp	trampoline_park

	.code64
trampoline_long_mode:
	movl	$KERNEL_DS, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	xorl	%eax, %eax
	movl	%eax, %fs
	movl	%eax, %gs

	movl	$MSR_GS_BASE, %ecx
	movl	data_gs_base(%rip), %eax
	movl	data_gs_base + 4(%rip), %edx
	wrmsr
	movq	data_stack(%rip), %rsp
	movl	data_cpu(%rip), %edi
	movq	data_entry(%rip), %rax
	xorl	%ebp, %ebp
	call	*%rax

	.balign 8
trampoline_gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* KERNEL_CS: 64-bit code */
	.quad	0x00cf93000000ffff	/* KERNEL_DS */

	/* struct trampoline_data of smp.c */
	.balign 8
trampoline_data:
data_cr3:	.long	0
data_cr4:	.long	0
data_cr0:	.long	0
data_efer:	.long	0
data_long_mode:	.long	0, KERNEL_CS
		.word	0
data_gdt_pointer:
		.word	trampoline_data - trampoline_gdt - 1
		.long	0
data_gs_base:	.quad	0
data_stack:	.quad	0
data_entry:	.quad	0
data_cpu:	.long	0
data_apic_id:	.long	TRAMPOLINE_NO_CPU
trampoline_end:

	.section .note.GNU-stack, "", @progbits
