/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loops for native_accounts.c: void name(long nr). A round saves and restores registers as
 * syscall_entry does, and calls a function, or the system of this machine, in between. The loops
 * differ in what is around that: nothing, two reads of the clock, or the kernel's accounts of a
 * system call. GS is 0 in a program, so %gs:cpu_account is the program's own variable.
 */
#define __ASSEMBLY__
#define CONFIG_CPU_ACCOUNTING

#include <asm/linkage.h>
#include <lego/cputime.h>

#define ACCOUNT_ENTRY (8 * NR_CPUTIMES) /* of entry_cycles in struct cpu_account */
#define ACCOUNT_OWNER (ACCOUNT_ENTRY + 8)
#define SYS_getppid   110

#include "../../arch/x86/entry/accounts.h"

.macro NOTHING
.endm

.macro ACCOUNT_ENTRY_OF_CALL
	READ_CLOCK tsc=%gs:cpu_account+ACCOUNT_ENTRY(%rip)
	USER_ENDS
.endm

.macro ACCOUNT_RETURN_OF_CALL
	READ_CLOCK
	USER_BEGINS
.endm

/* strace reads the clock at the end of a call. At its begin, it has the accounts' reading. */
.macro ACCOUNT_RETURN_OF_STRACED_CALL
	READ_TSC
	ACCOUNT_RETURN_OF_CALL
.endm

.macro CALL_NOTHING
	call	.Lnothing
.endm

.macro CALL_SYSTEM
	movl	$SYS_getppid, %eax
	syscall
.endm

/* The loop's count is in rbx, which is also saved in each round. */
.macro LOOP name, before, work, after
ENTRY(\name)
	pushq	%rbx
	movq	%rdi, %rbx
1:	.irp reg, rdi, rsi, rdx, rcx, rax
	pushq	%\reg
	.endr
	\before
	.irp reg, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15
	pushq	%\reg
	.endr
	\work
	.irp reg, r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8
	popq	%\reg
	.endr
	\after
	.irp reg, rax, rcx, rdx, rsi, rdi
	popq	%\reg
	.endr
	decq	%rbx
	jnz	1b
	popq	%rbx
	ret
END(\name)
.endm

	.text
.Lnothing:
	ret
	LOOP calls, NOTHING, CALL_NOTHING, NOTHING
	LOOP calls_with_reads, READ_TSC, CALL_NOTHING, READ_TSC
	LOOP calls_with_accounts, ACCOUNT_ENTRY_OF_CALL, CALL_NOTHING, ACCOUNT_RETURN_OF_CALL
	LOOP system_calls, NOTHING, CALL_SYSTEM, NOTHING
	LOOP system_calls_with_accounts, ACCOUNT_ENTRY_OF_CALL, CALL_SYSTEM, ACCOUNT_RETURN_OF_CALL
	LOOP straced_calls, READ_TSC, CALL_SYSTEM, READ_TSC
	LOOP straced_calls_with_accounts, ACCOUNT_ENTRY_OF_CALL, CALL_SYSTEM, \
		ACCOUNT_RETURN_OF_STRACED_CALL

	.section .note.GNU-stack, "", @progbits
