/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SAVING_CALL_H
#define ASM_SAVING_CALL_H

/*
 * Calls from a slow path that the compiler does not see. The function saves all registers
 * (__saves_registers). If the compiler saw the call, it would assume that the call changes
 * registers, and the fast path would have to keep them free, too. Such functions are notrace,
 * because function_call() does not keep all registers.
 *
 * clang 14 has two faults. It restores the registers before a call in tail position, and so loses
 * that call's arguments. And it does not save the registers of the function's own arguments, so
 * they are saved at the call.
 */
#include <lego/compiler.h>

#ifdef __clang__
#define __saves_registers __attribute__((no_caller_saved_registers, disable_tail_calls)) notrace
#define SAVING_CALL                                                                           \
	"push %%rdi\n\tpush %%rsi\n\tpush %%rdx\n\tpush %%rcx\n\tcall %P[f]\n\tpop %%rcx\n\t" \
	"pop %%rdx\n\tpop %%rsi\n\tpop %%rdi"
#else
#define __saves_registers __attribute__((no_caller_saved_registers)) notrace
#define SAVING_CALL	  "call %P[f]"
#endif

/*
 * Calls fn. The other arguments are inputs of the asm statement: "D"(first), "S"(second), "d", "c".
 */
#define saving_call(fn, ...)                              \
	do {                                              \
		register u64 _sp asm("rsp");              \
                                                          \
		asm volatile(SAVING_CALL                  \
			     : "+r"(_sp)                  \
			     : [f] "i"(fn), ##__VA_ARGS__ \
			     : "memory", "cc");           \
	} while (0)

/*
 * The same for any function without arguments, where no other register that calls change is in use
 * than that of the caller's first argument.
 */
#define entry_call(fn)                                                                        \
	do {                                                                                  \
		register u64 _sp asm("rsp");                                                  \
                                                                                              \
		asm volatile("push %%rdi\n\tcall %P[f]\n\tpop %%rdi"                          \
			     : "+r"(_sp)                                                      \
			     : [f] "i"(fn)                                                    \
			     : "memory", "cc", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", \
			       "r11");                                                        \
	} while (0)

#endif
