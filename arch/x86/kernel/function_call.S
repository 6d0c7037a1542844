/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls at the start and the end of functions: see <asm/function_call.h>. Arguments and return
 * values stay in their registers (x86-64 psABI, 3.2.3); what else a function may clobber is not
 * kept. So callers must not know which registers a function leaves alone (-fno-ipa-ra).
 *
 * Between entry code and text, so that a walk of the stack notices addresses from here as unusual,
 * without a comparison of its own (stacktrace.c).
 */
#include <asm/linkage.h>

/* The next instruction runs without a complete frame: a struct function_frameless. */
.macro FRAMELESS word, nr
	.pushsection function_frameless, "a"
	.balign	8
	.quad	.Lframeless_\@
	.long	\word, \nr
	.popsection
.Lframeless_\@:
.endm

	.section .entry.calls, "ax"

/*
 * From a place: on the stack are the address behind it and, above, the function's return address.
 * Two frames, one for the function and one for its caller, make the chain whole.
 */
ENTRY(function_call)
	FRAMELESS 0, 2
	pushq	8(%rsp)
	FRAMELESS 1, 2
	pushq	%rbp
	FRAMELESS 2, 2
	movq	%rsp, %rbp
	FRAMELESS 2, 2
	pushq	16(%rbp)
	FRAMELESS 3, 2
	pushq	%rbp
	FRAMELESS 4, 2
	movq	%rsp, %rbp
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	leaq	40(%rbp), %rdi
	movq	8(%rbp), %rsi
	call	function_enter
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rbp
	FRAMELESS 3, 2
	leaq	8(%rsp), %rsp
	FRAMELESS 2, 2
	popq	%rbp
	FRAMELESS 1, 2
	leaq	8(%rsp), %rsp
	FRAMELESS 0, 2
	ret
END(function_call)

/*
 * A function has returned to here. This puts its own address back where the return address was, so
 * that the stack is as before the return; what it calls replaces it by the true one.
 */
.macro RETURN name, exit
ENTRY(\name)
	FRAMELESS -1, 1
	pushq	$\name
	FRAMELESS 0, 1
	pushq	%rbp
	FRAMELESS 1, 1
	movq	%rsp, %rbp
	pushq	%rax
	pushq	%rdx
	leaq	8(%rbp), %rdi
	call	\exit
	popq	%rdx
	popq	%rax
	popq	%rbp
	FRAMELESS 0, 1
	ret
END(\name)
.endm

	RETURN function_return, function_exit
#ifdef CONFIG_PROFILE_TRACE
	RETURN function_graph_return, profile_function_graph_exit
#endif

	.section .note.GNU-stack, "", @progbits
