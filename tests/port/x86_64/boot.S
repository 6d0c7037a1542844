/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts that C cannot express: switching to 64-bit mode, the entry of interrupts, switching stacks.
 *
 * QEMU's -kernel option loads the ELF file and jumps to the address in its PVH note (Xen's
 * docs/misc/pvh.pandoc), in 32-bit mode without paging. %ebx holds the physical address of the
 * boot information. Here physical and virtual addresses are the same.
 */
#define NR_CPUS		4
#define TRAMPOLINE	0x8000
#define PHYS32_ENTRY	18
#define STACK_BYTES	16384
#define CODE_SELECTOR	8
#define CR4_PAE		0x20
#define CR0_PE_PG	0x80000001
#define MSR_EFER	0xc0000080
#define EFER_LME	0x100
#define PAGE_TABLE	0x003	/* present, writable */
#define PAGE_LARGE	0x083	/* and 2 MiB long */

	.section .note.Xen, "a", @note
	.long	2f - 1f, 4f - 3f, PHYS32_ENTRY
1:	.asciz	"Xen"
2:	.balign	4
3:	.quad	_start
4:

/* Loads the page tables, and allows 64-bit mode, which begins with paging. */
	.macro	set_up_long_mode
	movl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	$pgd, %eax
	movl	%eax, %cr3
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	.endm

	.text
	.code32
	.globl	_start
_start:
	cld
	movl	%ebx, boot_info

	/* Map the first 4 GiB. */
	movl	$(pud + PAGE_TABLE), pgd
	movl	$(pmd + PAGE_TABLE), pud
	movl	$(pmd + 0x1000 + PAGE_TABLE), pud + 8
	movl	$(pmd + 0x2000 + PAGE_TABLE), pud + 16
	movl	$(pmd + 0x3000 + PAGE_TABLE), pud + 24
	movl	$pmd, %edi
	movl	$PAGE_LARGE, %eax
	movl	$2048, %ecx
1:	movl	%eax, (%edi)
	addl	$8, %edi
	addl	$0x200000, %eax
	loop	1b

	set_up_long_mode
	movl	%cr0, %eax
	orl	$CR0_PE_PG, %eax
	movl	%eax, %cr0
	lgdt	gdt_pointer
	ljmp	$CODE_SELECTOR, $long_mode

	.code64
long_mode:
	xorl	%eax, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$boot_stack_end, %esp
	xorl	%ebp, %ebp
	call	boot
	ud2

	/*
	 * start_cpus() copies this to TRAMPOLINE, where the other CPUs start, in real mode. They
	 * go on in long mode at once.
	 */
	.code16
	.globl	trampoline, trampoline_end
trampoline:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	set_up_long_mode
	lgdtl	TRAMPOLINE + (trampoline_gdt - trampoline)
	movl	%cr0, %eax
	orl	$CR0_PE_PG, %eax
	movl	%eax, %cr0
	ljmpl	$CODE_SELECTOR, $cpu_entry
trampoline_gdt:
	.word	15
	.long	gdt
trampoline_end:

	/* Each CPU takes a number, from 1 on, and with it a stack. */
	.code64
cpu_entry:
	xorl	%eax, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$1, %edi
	lock xaddl %edi, next_number
	movl	%edi, %esp
	shll	$14, %esp
	addl	$boot_stack_end, %esp
	xorl	%ebp, %ebp
	call	start_numbered_cpu
	ud2

	/* 34 entries of 16 bytes each: the exceptions, the timer and spurious interrupts. */
	.balign	16
	.globl	vectors
vectors:
	vector = 0
	.rept	34
	.balign	16
	.if	vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21
	.else
	pushq	$0	/* in place of an error code */
	.endif
	pushq	$vector
	jmp	interrupt_entry
	vector = vector + 1
	.endr

interrupt_entry:
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rbx
	pushq	%rbp
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	cld
	movq	%rsp, %rdi
	/* A frame, so that call chains go on with the interrupted function. */
	pushq	136(%rdi)
	pushq	%rbp
	movq	%rsp, %rbp
	call	interrupt
	addq	$16, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rbp
	popq	%rbx
	popq	%rdx
	popq	%rcx
	popq	%rax
	addq	$16, %rsp
	iretq

	/* switch_stacks(u64 *save, u64 load): saves the callee-saved registers of C. */
	.globl	switch_stacks
switch_stacks:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret

	.section .rodata, "a"
	.balign	8
gdt:	.quad	0
	.quad	0x00af9b000000ffff	/* CODE_SELECTOR: 64-bit code */
gdt_pointer:
	.word	. - gdt - 1
	.long	gdt

	.bss
	.balign	4096
pgd:	.skip	4096
pud:	.skip	4096
pmd:	.skip	4 * 4096
boot_stack:
	.skip	STACK_BYTES
boot_stack_end:
	.skip	(NR_CPUS - 1) * STACK_BYTES
	.globl	boot_info
boot_info:
	.skip	8

	.data
next_number:
	.long	1

	.section .note.GNU-stack, "", @progbits
