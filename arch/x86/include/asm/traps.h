/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TRAPS_H
#define ASM_TRAPS_H

/* Exceptions (SDM vol. 3, 6.15), interrupts and system calls: where assembly and C meet. */

#define TRAP_DIVIDE	    0
#define TRAP_DEBUG	    1
#define TRAP_NMI	    2
#define TRAP_BREAKPOINT	    3
#define TRAP_OVERFLOW	    4
#define TRAP_INVALID_OPCODE 6
#define TRAP_DOUBLE_FAULT   8
#define TRAP_PAGE_FAULT	    14
#define TRAP_X87	    16
#define TRAP_ALIGNMENT	    17
#define TRAP_MACHINE_CHECK  18
#define TRAP_SIMD	    19
#define NR_EXCEPTIONS	    32
#define NR_VECTORS	    256

/* The size of each vector's entry in entry_stubs[]. */
#define ENTRY_STUB_SIZE 16

#ifndef __ASSEMBLY__
#include <lego/kernel.h>

struct pt_regs;

extern char entry_stubs[];
void syscall_entry(void);
void double_fault_entry(void);
void nmi_entry(void);
void machine_check_entry(void);
extern char user_iretq[], bad_iret[];

/*
 * Called by entry.S, with interrupts off at call and return. From user mode, they do the exit work
 * too.
 *
 * do_syscall_64() handles a system call. As in Linux, the number is in eax; the upper half of rax
 * is ignored. Returns true if SYSRET can return: only rax has changed.
 */
bool do_syscall_64(struct pt_regs *regs);
/*
 * Handles an exception or an interrupt. now_cycles is this CPU's clock at the entry. Returns the
 * owner of the interrupted time: see <lego/cputime.h>.
 */
u32 do_vector(struct pt_regs *regs, unsigned int vector, u64 now_cycles);
void do_bad_iret(struct pt_regs *regs);

/* For vectors without an IST: below NR_EXCEPTIONS, and the others. */
void do_exception(struct pt_regs *regs, unsigned int vector);
void do_irq(struct pt_regs *regs, unsigned int vector);

/* These run on stacks of their own. */
void do_nmi(struct pt_regs *regs);
void do_double_fault(struct pt_regs *regs, u64 addr) __noreturn;
void do_machine_check(struct pt_regs *regs) __noreturn;

/*
 * Handles a page fault. addr is CR2. Interrupts are as in the interrupted code, and either state
 * may be left. When it returns, the instruction may be repeated, or regs->rip is a fixup, or the
 * process is dying.
 */
void trap_page_fault(struct pt_regs *regs, u64 error_code, u64 addr);

/*
 * Records the exception for which the current thread gets a signal; the handler's frame has these
 * numbers.
 */
void trap_note_signal(unsigned int vector, u64 error_code, u64 addr);

/* Panics over an exception in the kernel; panic() prints the registers by dump_panic(). */
void die(const struct pt_regs *regs, const char *why) __noreturn;

/* Prints what this CPU runs, given what an interrupt has interrupted. */
void dump_cpu(const struct pt_regs *regs);

/*
 * Called by panic(). Prints registers and stack of the exception that led to it; without an
 * exception, panic()'s caller and the stack from frame on.
 */
void dump_panic(u64 caller, u64 frame);
#endif

#endif
