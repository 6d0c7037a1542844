/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SYSCALL_H
#define LEGO_SYSCALL_H

/*
 * System calls. arch/x86/entry/syscalls.tbl is the one list of numbers, names and implementations;
 * scripts/syscalltbl.py makes <generated/syscalls.h> from it. A call we lack returns -ENOSYS.
 */

#include <asm/ptrace.h>
#include <lego/kernel.h>

/* Numbers are 0 .. NR_SYSCALLS - 1 (from the table). */
#include <generated/syscalls.h>

typedef long (*syscall_fn_t)(const struct pt_regs *regs);
extern const syscall_fn_t syscall_table[NR_SYSCALLS];

/*
 * Returns the parameters of a call that there is, as Linux's trace events have them:
 * "(unsigned int fd, char *buf, size_t count)", or "newstat(const char *filename, ...)" if the
 * event has another name than the call; else NULL. Any context.
 */
const char *syscall_params(unsigned long nr);

/* Returns the name, such as "sys_futex", or NULL for a number without a name. Any context. */
const char *syscall_name(unsigned long nr);

/*
 * SYSCALL_DEFINE3(read, int, fd, char __user *, buf, size_t, count) { ... } defines
 * long sys_read(const struct pt_regs *regs) that casts the registers of the System V convention
 * (rdi rsi rdx r10 r8 r9) to the types named.
 */
#define SYSCALL_DEFINE0(name)                        \
	long sys_##name(const struct pt_regs *regs); \
	static long do_sys_##name(void);             \
	long sys_##name(const struct pt_regs *regs)  \
	{                                            \
		return do_sys_##name();              \
	}                                            \
	static long do_sys_##name(void)

#define SYSCALL_DEFINE_BODY(name, params, args)      \
	long sys_##name(const struct pt_regs *regs); \
	static long do_sys_##name params;            \
	long sys_##name(const struct pt_regs *regs)  \
	{                                            \
		return do_sys_##name args;           \
	}                                            \
	static long do_sys_##name params

#define SYSCALL_DEFINE1(name, t1, a1) SYSCALL_DEFINE_BODY(name, (t1 a1), ((t1)regs->rdi))
#define SYSCALL_DEFINE2(name, t1, a1, t2, a2) \
	SYSCALL_DEFINE_BODY(name, (t1 a1, t2 a2), ((t1)regs->rdi, (t2)regs->rsi))
#define SYSCALL_DEFINE3(name, t1, a1, t2, a2, t3, a3)    \
	SYSCALL_DEFINE_BODY(name, (t1 a1, t2 a2, t3 a3), \
			    ((t1)regs->rdi, (t2)regs->rsi, (t3)regs->rdx))
#define SYSCALL_DEFINE4(name, t1, a1, t2, a2, t3, a3, t4, a4)   \
	SYSCALL_DEFINE_BODY(name, (t1 a1, t2 a2, t3 a3, t4 a4), \
			    ((t1)regs->rdi, (t2)regs->rsi, (t3)regs->rdx, (t4)regs->r10))
#define SYSCALL_DEFINE5(name, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5)                    \
	SYSCALL_DEFINE_BODY(name, (t1 a1, t2 a2, t3 a3, t4 a4, t5 a5),                   \
			    ((t1)regs->rdi, (t2)regs->rsi, (t3)regs->rdx, (t4)regs->r10, \
			     (t5)regs->r8))
#define SYSCALL_DEFINE6(name, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6)            \
	SYSCALL_DEFINE_BODY(name, (t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6),            \
			    ((t1)regs->rdi, (t2)regs->rsi, (t3)regs->rdx, (t4)regs->r10, \
			     (t5)regs->r8, (t6)regs->r9))

#endif
