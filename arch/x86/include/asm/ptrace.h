/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PTRACE_H
#define ASM_PTRACE_H

#include <lego/types.h>

/* The registers that every entry saves, lowest address first. */
struct pt_regs {
	u64 r15, r14, r13, r12, rbp, rbx;
	u64 r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	u64 orig_rax; /* system call number, or ~0; an exception's error code until it is read */
	u64 rip, cs, rflags, rsp, ss;
};

static inline bool user_mode(const struct pt_regs *regs)
{
	return (regs->cs & 3) != 0; /* 0 or 3 */
}

static inline u64 instruction_pointer(const struct pt_regs *regs)
{
	return regs->rip;
}

#endif
