/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries into the kernel and returns from it (SDM vol. 3, 6.14; vol. 2, SYSCALL). Each entry
 * builds a struct pt_regs on the stack and calls C with interrupts off. C also does the work before
 * the return to user mode (exit_to_user_mode()).
 *
 * %gs is the per-CPU area in the kernel and the user's own in user mode; swapgs changes between
 * them. Usually the saved CS tells which of them an entry has. NMI, double fault and machine check
 * may come between an entry and its swapgs, so they check the GS base itself. Only the kernel's has
 * the sign bit, because arch_prctl() refuses such addresses and CR4.FSGSBASE is off.
 */
#include <asm/desc.h>
#include <asm/linkage.h>
#include <asm/msr.h>
#include <asm/page.h>
#include <asm/smap.h>
#include <asm/traps.h>
#include <generated/asm-offsets.h>
#include <lego/cputime.h>

#include "accounts.h" /* needs the two above */

#define RFLAGS_TF 0x00000100
#define RFLAGS_RF 0x00010000

/*
 * Save the registers down to rax, and those below. The top of struct pt_regs, down to orig_rax, is
 * already there.
 */
.macro SAVE_REGS_TO_RAX
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%rax
.endm

.macro SAVE_REGS_BELOW_RAX
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
.endm

/*
 * Restore all registers except those in the CPU's own frame.
 * The second macro leaves orig_rax at (%rsp).
 */
.macro RESTORE_REGS_BELOW_RAX
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
.endm

.macro RESTORE_REGS_FROM_RAX
	popq	%rax
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
.endm

/* The place of a register in the frame, while rsp points at its rax. */
#define ABOVE_RAX(reg) (PT_##reg - PT_RAX)(%rsp)

/*
 * Calls fn(regs, ...). The ABI wants an alignment at calls from which a frame is 8 bytes off. The
 * label returns, if given, is the return address, for entry_marks.
 */
.macro CALL_WITH_REGS fn, returns
	movq	%rsp, %rdi
	subq	$8, %rsp
	call	\fn
	.ifnb \returns
\returns:
	.endif
	addq	$8, %rsp
.endm

	.section .entry.text, "ax"

/* rcx is the user's rip, r11 its rflags; rsp is still the user's. */
ENTRY(syscall_entry)
	swapgs
	movq	%rsp, %gs:user_rsp(%rip)
	movq	%gs:kernel_stack_top(%rip), %rsp
	pushq	$USER_DS
	pushq	%gs:user_rsp(%rip)
	pushq	%r11
	pushq	$USER_CS
	pushq	%rcx
	pushq	%rax
	SAVE_REGS_TO_RAX
	READ_CLOCK tsc=%gs:cpu_account+ACCOUNT_ENTRY(%rip)
	USER_ENDS
	SAVE_REGS_BELOW_RAX
	xorl	%ebp, %ebp
	CALL_WITH_REGS do_syscall_64, .Lsyscall_return

	/*
	 * SYSRET is only for frames it can return to: it cannot set RF or single-step. The rip of a
	 * frame that has not changed is canonical, because no code is in the last page of user
	 * memory. rcx and r11 have the same values as rip and rflags.
	 */
	testb	%al, %al
	jz	return_to_user
	testl	$(RFLAGS_RF | RFLAGS_TF), PT_R11(%rsp)
	jnz	return_to_user
	RESTORE_REGS_BELOW_RAX
	movq	ABOVE_RAX(RCX), %rcx
	movq	ABOVE_RAX(RSI), %rsi
	movq	ABOVE_RAX(RDI), %rdi
	READ_CLOCK
	USER_BEGINS
	movq	ABOVE_RAX(RDX), %rdx
	movq	ABOVE_RAX(RAX), %rax
	movq	ABOVE_RAX(RSP), %rsp
	swapgs
	sysretq
END(syscall_entry)

/*
 * Returns to user mode with the frame at rsp. Interrupts are off. Does as little as it can after
 * the read of the clock. The sums are right although the owner changes before: nobody reads it
 * until the next entry.
 */
ENTRY(return_to_user)
	RESTORE_REGS_BELOW_RAX
	movq	ABOVE_RAX(RSI), %rsi
	movq	ABOVE_RAX(RDI), %rdi
	LOAD_OWNER
	movl	$CPUTIME_SYSTEM, %gs:cpu_account + ACCOUNT_OWNER(%rip)
	READ_CLOCK
	OWNER_ENDS
	USER_BEGINS
	popq	%rax
	popq	%rcx
	popq	%rdx
	addq	$(PT_RIP - PT_RSI), %rsp
	swapgs
	.globl user_iretq
user_iretq:
	iretq
END(return_to_user)

/* do_exception() resumes here if iretq refused the user frame at rsp. */
ENTRY(bad_iret)
	pushq	$-1
	SAVE_REGS_TO_RAX
	SAVE_REGS_BELOW_RAX
	CALL_WITH_REGS do_bad_iret
	jmp	return_to_user
END(bad_iret)

/*
 * The first instructions of a task: rbx is fn or 0, r12 its argument, the user's frame is at rsp.
 */
ENTRY(thread_entry)
	subq	$8, %rsp
	call	schedule_tail
	testq	%rbx, %rbx
	jz	1f
	movq	%r12, %rdi
	call	*%rbx
1:	cli
	addq	$8, %rsp
	CALL_WITH_REGS exit_to_user_mode
	jmp	return_to_user
END(thread_entry)

/*
 * void switch_stack(u64 *prev_sp, u64 next_sp, struct task *next): see struct switch_frame. The
 * stack and `current` change in adjacent instructions, so that a sample finds a matching pair.
 */
ENTRY(switch_stack)
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	movq	%rdx, %gs:current_task(%rip)
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
END(switch_stack)

/*
 * A stub for each vector. It pushes orig_rax (the error code, else ~0), then the vector in the
 * place of rdi. Only some exceptions push an error code (SDM vol. 3, table 6-1).
 */
ENTRY(entry_stubs)
	.Lvector = 0
	.rept NR_VECTORS
	.balign ENTRY_STUB_SIZE
	.if .Lvector != 8 && (.Lvector < 10 || .Lvector > 14) && .Lvector != 17 && \
	    .Lvector != 21 && .Lvector != 29 && .Lvector != 30
	pushq	$-1
	.endif
	pushq	$.Lvector
	jmp	vector_entry
	.Lvector = .Lvector + 1
	.endr
END(entry_stubs)

ENTRY(vector_entry)
	cld
	ASM_CLAC
	pushq	%rsi
	movq	8(%rsp), %rsi
	movq	%rdi, 8(%rsp)
	pushq	%rdx
	pushq	%rcx
	pushq	%rax
	testb	$3, ABOVE_RAX(CS)
	jz	1f
	swapgs
	READ_CLOCK
	USER_ENDS
	movq	%rax, %rdx
	SAVE_REGS_BELOW_RAX
	xorl	%ebp, %ebp
	CALL_WITH_REGS do_vector
	jmp	return_to_user

	/* From the kernel. But at user_iretq the GS base and the time are already the user's. */
1:	cmpq	$user_iretq, ABOVE_RAX(RIP)
	jne	2f
	swapgs
	READ_CLOCK
	USER_ENDS
	jmp	3f
2:	READ_CLOCK
	USER_HAS_ENDED
3:	movq	%rax, %rdx
	SAVE_REGS_BELOW_RAX
	CALL_WITH_REGS do_vector, .Lvector_return
	cmpl	$NMI_OFFSET, %gs:irq_context(%rip)
	jae	return_in_nmi
	movl	%eax, PT_ORIG_RAX(%rsp)
	RESTORE_REGS_BELOW_RAX
	LOAD_OWNER
	READ_CLOCK
	OWNER_ENDS
	OWNER_BEGINS ABOVE_RAX(ORIG_RAX)
	RESTORE_REGS_FROM_RAX
	addq	$8, %rsp
	iretq
END(vector_entry)

/*
 * Returns from an exception (a breakpoint that is being patched) in the NMI handler. IRET would
 * allow the next NMI, which would overwrite this one's stack (SDM vol. 3, 6.7.1). So this returns
 * by POPF and RET, from words put below the interrupted stack pointer. They overwrite this frame no
 * deeper than its rsp, which is read before.
 */
ENTRY(return_in_nmi)
	movq	PT_RSP(%rsp), %rdi
	movq	PT_RIP(%rsp), %rax
	movq	PT_RFLAGS(%rsp), %rcx
	movq	%rax, -8(%rdi)
	movq	%rcx, -16(%rdi)
	subq	$16, %rdi
	movq	%rdi, PT_ORIG_RAX(%rsp)
	RESTORE_REGS_BELOW_RAX
	RESTORE_REGS_FROM_RAX
	popq	%rsp
	popfq
	ret
END(return_in_nmi)

/* ebx: nonzero if the GS base was the user's. Callees preserve it. */
.macro SWAPGS_IF_USER
	movl	$MSR_GS_BASE, %ecx
	rdmsr
	xorl	%ebx, %ebx
	testl	%edx, %edx
	js	.Lkernel_gs_\@
	swapgs
	incl	%ebx
.Lkernel_gs_\@:
.endm

/* The time of the NMI begins early, so it is in the place of orig_rax. */
ENTRY(nmi_entry)
	pushq	$-1
	cld
	ASM_CLAC
	SAVE_REGS_TO_RAX
	NMI_BEGINS ABOVE_RAX(ORIG_RAX)
	SAVE_REGS_BELOW_RAX
	SWAPGS_IF_USER
	CALL_WITH_REGS do_nmi
	movl	%ebx, %esi
	RESTORE_REGS_BELOW_RAX
	NMI_ENDS ABOVE_RAX(ORIG_RAX)
	testl	%esi, %esi
	jz	1f
	swapgs
1:	RESTORE_REGS_FROM_RAX
	addq	$8, %rsp
	iretq
END(nmi_entry)

.macro FATAL_ENTRY
	cld
	ASM_CLAC
	SAVE_REGS_TO_RAX
	SAVE_REGS_BELOW_RAX
	SWAPGS_IF_USER
.endm

/*
 * These two do not return. CR2 still has the address of the fault that led to a double fault.
 */
ENTRY(double_fault_entry)
	FATAL_ENTRY
	movq	%cr2, %rsi
	CALL_WITH_REGS do_double_fault
END(double_fault_entry)

ENTRY(machine_check_entry)
	pushq	$-1
	FATAL_ENTRY
	CALL_WITH_REGS do_machine_check
END(machine_check_entry)
.Lentry_end:

/* struct entry_marks of <asm/stacktrace.h> */
	.section .rodata
	.balign 8
	.globl entry_marks
entry_marks:
#ifdef CONFIG_PROFILE_FUNCTIONS
	.quad	function_calls_end, .Lsyscall_return, .Lvector_return, .Lentry_end
#else
	.quad	.Lentry_end, .Lsyscall_return, .Lvector_return
#endif
