/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's first instructions. A PVH loader (Xen's docs/misc/pvh.pandoc; QEMU -kernel) finds
 * its entry in an ELF note, a multiboot2 loader (GRUB; Multiboot2 Specification version 2.0) in a
 * header near the start of the file. Both jump in 32-bit protected mode: flat segments, no paging,
 * interrupts off, no stack. %ebx is the physical address of struct hvm_start_info, or of the
 * multiboot2 information; in the second case %eax is its magic. The code here enters long mode, and
 * then calls start_kernel().
 */
#include <asm/linkage.h>
#include <asm/msr.h>
#include <asm/page.h>
#include <asm/setup.h>
#include <generated/asm-offsets.h>

#define XEN_ELFNOTE_PHYS32_ENTRY 18

#define MULTIBOOT2_HEADER_MAGIC	 0xe85250d6
#define MULTIBOOT2_HEADER_BYTES	 (multiboot2_header_end - multiboot2_header)
#define MULTIBOOT2_I386		 0
#define MULTIBOOT2_END		 0
#define MULTIBOOT2_ENTRY	 3
#define MULTIBOOT2_ALIGN_MODULES 6

#define PHYS(sym) ((sym)-KERNEL_MAP_BASE)

#define CR0_PE_PG  0x80000001
#define CR4_PAE	   0x20
#define PTE_TABLE  0x03 /* present, writable */
#define PTE_LARGE  0x83 /* and a 2 MiB page */
#define NR_PMDS	   4	/* 1 GiB each */
#define PGD_DIRECT (PAGE_OFFSET >> 39 & 511)
#define PGD_KERNEL 511
#define PUD_KERNEL 510
#define PMD_KERNEL (KERNEL_VIRT >> 21 & 511)

#define COM1 0x3f8

/* PVH's struct hvm_start_info, and the first of its modules: see pvh.c. */
#define START_INFO_MAGIC   0x336ec578
#define START_INFO_NR	   12
#define START_INFO_MODULES 16
#define MODULE_START	   0
#define MODULE_BYTES	   8

	.section .note.Xen, "a", @note
	.balign 4
	.long 2f - 1f, 4f - 3f, XEN_ELFNOTE_PHYS32_ENTRY
1:	.asciz "Xen"
2:	.balign 4
3:	.quad PHYS(pvh_entry)
4:

/*
 * A tag of the header: type, flags (0: a loader that does not know the tag must refuse), content.
 */
.macro MULTIBOOT2_TAG type:req, content:vararg
	.balign 8
771:	.word \type, 0
	.long 772f - 771b
	.ifnb \content
	.long \content
	.endif
772:
.endm

	/*
	 * The file begins with its ELF header, one page, and this header, which must be within 32
	 * KiB.
	 */
	.section .head.text, "ax"
	.balign 8
multiboot2_header:
	.long MULTIBOOT2_HEADER_MAGIC, MULTIBOOT2_I386, MULTIBOOT2_HEADER_BYTES
	.long -(MULTIBOOT2_HEADER_MAGIC + MULTIBOOT2_I386 + MULTIBOOT2_HEADER_BYTES)
	MULTIBOOT2_TAG MULTIBOOT2_ENTRY, PHYS(multiboot2_entry)
	MULTIBOOT2_TAG MULTIBOOT2_ALIGN_MODULES
	MULTIBOOT2_TAG MULTIBOOT2_END
multiboot2_header_end:

	.code32
ENTRY(pvh_entry)
	xorl	%eax, %eax
ENTRY(multiboot2_entry)
	cld
	/*
	 * Checks that there is memory up to the end of the image. Without memory, writes get lost.
	 */
	movl	$START_INFO_MAGIC, PHYS(_end) - 4
	cmpl	$START_INFO_MAGIC, PHYS(_end) - 4
	movl	$PHYS(no_memory_text), %esi
	jne	.Lsay

	/* QEMU puts the initramfs at the end of memory, even over the kernel. GRUB avoids that. */
	testl	%eax, %eax
	jnz	1f
	cmpl	$START_INFO_MAGIC, (%ebx)
	jne	1f
	cmpl	$0, START_INFO_NR(%ebx)
	je	1f
	movl	START_INFO_MODULES(%ebx), %esi
	cmpl	$0, MODULE_START + 4(%esi)
	jne	1f
	movl	MODULE_START(%esi), %ecx
	movl	MODULE_BYTES(%esi), %edx
	addl	%ecx, %edx
	movl	$PHYS(overlap_text), %esi
	cmpl	$PHYS(_end), %ecx
	jae	1f
	cmpl	$PHYS(_text), %edx
	ja	.Lsay

1:	movl	%eax, PHYS(boot_loader_magic)
	movl	%ebx, PHYS(boot_start_info)
	/*
	 * QEMU has cleared the bss, but firmware runs later and may use the end of a small memory.
	 */
	movl	$PHYS(__bss_start), %edi
	movl	$PHYS(__bss_stop), %ecx
	subl	%edi, %ecx
	shrl	$2, %ecx
	xorl	%eax, %eax
	rep stosl
	movl	$PHYS(no_long_mode_text), %esi
	movl	$0x80000000, %eax
	cpuid
	cmpl	$0x80000001, %eax
	jb	.Lsay
	movl	$0x80000001, %eax
	cpuid
	btl	$29, %edx
	jnc	.Lsay

	/*
	 * The four page directories are adjacent, so one loop fills them with large pages from
	 * physical 0.
	 */
	movl	$PHYS(boot_pmds), %edi
	movl	$PTE_LARGE, %eax
	xorl	%edx, %edx
1:	movl	%eax, (%edi)
	movl	%edx, 4(%edi)
	addl	$8, %edi
	addl	$LARGE_PAGE_SIZE, %eax
	jnc	1b

	movl	$(PHYS(boot_pmd_kernel) + PMD_KERNEL * 8), %edi
	movl	$(KERNEL_PHYS + PTE_LARGE), %eax
1:	movl	%eax, (%edi)
	movl	%edx, 4(%edi)
	addl	$8, %edi
	addl	$LARGE_PAGE_SIZE, %eax
	cmpl	$PHYS(_end), %eax
	jb	1b

	movl	$(PHYS(boot_pmd_kernel) + PTE_TABLE), PHYS(boot_pud_kernel) + PUD_KERNEL * 8
	movl	$PHYS(boot_pud), %edi
	movl	$(PHYS(boot_pmds) + PTE_TABLE), %eax
	movl	$NR_PMDS, %ecx
2:	movl	%eax, (%edi)
	addl	$8, %edi
	addl	$PAGE_SIZE, %eax
	loop	2b

	movl	$(PHYS(boot_pud) + PTE_TABLE), PHYS(boot_pgd)
	movl	$(PHYS(boot_pud) + PTE_TABLE), PHYS(boot_pgd) + PGD_DIRECT * 8
	movl	$(PHYS(boot_pud_kernel) + PTE_TABLE), PHYS(boot_pgd) + PGD_KERNEL * 8

	movl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	$PHYS(boot_pgd), %eax
	movl	%eax, %cr3
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$CR0_PE_PG, %eax
	movl	%eax, %cr0
	lgdt	PHYS(boot_gdt_ptr)
	ljmp	$8, $PHYS(.Llong_mode)

	/* Prints the text at %esi and halts. */
.Lsay:
	movw	$COM1, %dx
3:	lodsb
	testb	%al, %al
	jz	4f
	outb	%al, %dx
	jmp	3b
4:	hlt
	jmp	4b
END(multiboot2_entry)
END(pvh_entry)

	.code64
.Llong_mode:
	movq	$.Lhigh, %rax
	jmp	*%rax
.Lhigh:
	xorl	%eax, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	%eax, %fs
	movl	%eax, %gs
	movl	$MSR_GS_BASE, %ecx
	movabsq	$PERCPU_BOOT_OFFSET, %rdx
	movl	%edx, %eax
	shrq	$32, %rdx
	wrmsr
	/* Call chains end here, as below an entry: see outermost_frame(). */
	movq	$boot_stack + KERNEL_STACK_SIZE - PT_BYTES - 8, %rsp
	xorl	%ebp, %ebp
	call	start_kernel
	ud2

	.section .rodata, "a"
	.balign 8
boot_gdt:
	.quad 0
	.quad 0x00af9b000000ffff /* 64-bit code */
boot_gdt_ptr:
	.word . - boot_gdt - 1
	.long PHYS(boot_gdt)
no_long_mode_text:
	.asciz "Kernel panic: this CPU has no 64-bit mode\r\n"
no_memory_text:
	.asciz "Kernel panic: not enough memory: it ends before the kernel's image does\r\n"
overlap_text:
	.asciz "Kernel panic: not enough memory: the initramfs was loaded over the kernel\r\n"

	.data
	.balign 4
	.globl boot_loader_magic
boot_loader_magic:
	.long 0
	.globl boot_start_info
boot_start_info:
	.long 0

	/*
	 * First in .data, so that an overflow reaches only the constants below, which are
	 * read-only.
	 */
	.section .data.boot_stack, "aw"
	.balign PAGE_SIZE
	.globl boot_stack
boot_stack:
	.skip KERNEL_STACK_SIZE

	.bss
	.balign PAGE_SIZE
	.globl boot_pgd
boot_pgd:
	.skip PAGE_SIZE
boot_pud:
	.skip PAGE_SIZE
boot_pud_kernel:
	.skip PAGE_SIZE
boot_pmd_kernel:
	.skip PAGE_SIZE
boot_pmds:
	.skip PAGE_SIZE * NR_PMDS
