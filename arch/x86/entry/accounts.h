/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ENTRY_ACCOUNTS_H
#define ENTRY_ACCOUNTS_H

/*
 * The accounts of CPU time (<lego/cputime.h>), for entry.S. tests/bench/native_accounts.S measures
 * these macros. READ_CLOCK loads this CPU's clock into rax and changes rdx. If an NMI comes before
 * its last instruction has ended, do_nmi() lets it begin again. The others begin or end the time of
 * an owner at the clock in rax. OWNER_ENDS means the owner that LOAD_OWNER has loaded into ecx, the
 * present one in the kernel. OWNER_BEGINS, whose owner is a value in memory, changes rcx.
 */
/* clang-format off */
#ifdef CONFIG_CPU_ACCOUNTING
#define SUM_OF(owner) %gs:cpu_account + 8 * owner(%rip)

.macro READ_TSC
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
.endm

.macro READ_CLOCK tsc
.Lread_\@:
	READ_TSC
	.ifnb \tsc
	movq	%rax, \tsc
	.endif
.Lsubtract_\@:
	subq	SUM_OF(CPUTIME_NMI), %rax
	.pushsection clock_reads, "a"
	.quad	.Lread_\@, .Lsubtract_\@
	.popsection
.endm

.macro USER_ENDS
	addq	%rax, SUM_OF(CPUTIME_USER)
.endm

/* As long as USER_ENDS: the sampler's lateness is in instructions, and equal for both entries. */
.macro USER_HAS_ENDED
	nop
.endm

.macro USER_BEGINS
	subq	%rax, SUM_OF(CPUTIME_USER)
.endm

.macro LOAD_OWNER
	movl	%gs:cpu_account + ACCOUNT_OWNER(%rip), %ecx
.endm

.macro OWNER_ENDS
	addq	%rax, %gs:cpu_account(, %rcx, 8)
.endm

.macro OWNER_BEGINS owner
	movl	\owner, %ecx
	subq	%rax, %gs:cpu_account(, %rcx, 8)
	movl	%ecx, %gs:cpu_account + ACCOUNT_OWNER(%rip)
.endm

.macro NMI_BEGINS start
	READ_TSC
	movq	%rax, \start
.endm

.macro NMI_ENDS start
	READ_TSC
	subq	\start, %rax
	addq	%rax, SUM_OF(CPUTIME_NMI)
.endm
#else
.macro READ_CLOCK tsc
.endm
.macro USER_ENDS
.endm
.macro USER_HAS_ENDED
.endm
.macro USER_BEGINS
.endm
.macro LOAD_OWNER
.endm
.macro OWNER_ENDS
.endm
.macro OWNER_BEGINS owner
	movl	\owner, %ecx
	movl	%ecx, %gs:cpu_account + ACCOUNT_OWNER(%rip)
.endm
.macro NMI_BEGINS start
.endm
.macro NMI_ENDS start
.endm
#endif
/* clang-format on */

#endif
