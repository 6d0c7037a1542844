/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_KERNEL_H
#define PORT_KERNEL_H

/* Declarations that the kernel's files share, apart from tasks: os_hooks.h needs them. */

#include <batteries/cpu.h>
#include <batteries/heap.h>
#include <batteries/string.h>
#include <batteries/types.h>

#define NR_CPUS	    4
#define TICK_HZ	    1000
#define STACK_BYTES 16384 /* of a task, and of a CPU's idle task */

/* task.c: what each CPU has of its own. read_this_cpu() of arch.h returns it. */
struct cpu {
	u32 id, irq_depth; /* CPU 0 has booted */
	struct task *task;
	u64 switch_cycles; /* when it last switched to another task */
};

extern u32 nr_cpus_up; /* that are online */
extern pf_flag_t panicking;

/*
 * The architecture, in <arch>/arch.h and cpu.c. arch.h also has struct pt_regs, with os_regs_pc()
 * and the other contracts about registers; read_this_cpu() and this CPU's set_this_cpu();
 * wait_for_interrupt(), which is called with interrupts off and turns them on; FLAGS_IRQS_ON and
 * FLAGS_IRQS_OFF for battery_irq_restore(); and the stack of a task that has been switched out: it
 * has SWITCH_WORDS words, of which SWITCH_PC is where the task goes on.
 */
#include <arch.h>

extern u64 cycles_per_second;
void console_put(char c);
void exit_qemu(u32 status) __attribute__((noreturn));
void switch_stacks(u64 *save, u64 load);
/* Sets up this CPU's interrupts and its tick. Interrupts stay off. */
void cpu_init(void);
/* Starts the other CPUs, which call start_cpu() on stacks of their own. */
void start_cpus(void);

/*
 * task.c: returns when this CPU's next tick is due. CPUs have their ticks at different times, so
 * that they do not all ask for the lock at once. Ticks that are late do not delay later ones.
 */
u64 next_tick(void);

/*
 * Called by the architecture, with interrupts off: on the boot CPU; on another one; in the timer's
 * interrupt, with the time when it came; for any other exception.
 */
void start_kernel(const char *boot_line);
void start_cpu(void);
void tick(const struct pt_regs *regs, u64 cycles);
void panic(const struct pt_regs *regs, u64 number) __attribute__((noreturn));

#define this_cpu read_this_cpu()
#define current	 (this_cpu->task)

#endif
