/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_KERNEL_H
#define PORT_KERNEL_H

/* Declarations that the kernel's files share, and on which os.h builds the profiler's seam. */

#include <batteries/cpu.h>
#include <batteries/heap.h>
#include <batteries/printf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int s32;
typedef long s64;

#define EBADF  9
#define ENOSYS 38

#define NR_CPUS	    4
#define TICK_HZ	    1000
#define STACK_BYTES 16384 /* of a task, and of a CPU's idle task */

/* lib.c */
void *memset(void *dst, int c, size_t n);
void *memcpy(void *dst, const void *src, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
#define vsnprintf(...) battery_vsnprintf(__VA_ARGS__)
#define snprintf(...)  battery_snprintf(__VA_ARGS__)

/* lib.c: each call prints one line. */
int vprintk(const char *fmt, va_list args);
int printk(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define read_cycles()	     battery_cycles()
#define cycles_to_ns(cycles) battery_cycles_to_ns(cycles, cycles_per_second)

/* task.c: what each CPU has of its own. read_this_cpu() of arch.h returns it. */
struct cpu {
	u32 id; /* 0: the CPU that has booted */
	struct task *task;
	u32 irq_depth;
	u64 nr_ticks;
	u64 switch_cycles; /* when it last switched to another task */
};

extern struct cpu cpus[NR_CPUS];
extern u32 nr_cpus_up; /* that are online */
extern pf_flag_t panicking;

/*
 * The architecture, in <arch>/arch.h and cpu.c. arch.h also has struct pt_regs, regs_pc(),
 * regs_sp(), regs_fp(), regs_link() and regs_irqs_off() of it; read_this_cpu() and this CPU's
 * set_this_cpu(); wait_for_interrupt(), which is called with interrupts off and turns them on;
 * FLAGS_IRQS_ON and FLAGS_IRQS_OFF for battery_irq_restore(); and the stack of a task that has been
 * switched out: it has SWITCH_WORDS words, of which SWITCH_PC is where the task goes on.
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
/* Interrupts a CPU that waits for an interrupt. */
void kick_cpu(u32 cpu);

/*
 * task.c: returns when this CPU's next tick is due. CPUs have their ticks at different times, so
 * that they do not all ask for the lock at once. Ticks that are late do not delay later ones.
 */
u64 next_tick(void);

/*
 * Called by the architecture, with interrupts off: on the boot CPU; on another one; in the timer's
 * interrupt, with the time when it came; after each interrupt; for any other exception.
 */
void start_kernel(const char *boot_line);
void start_cpu(void);
void tick(const struct pt_regs *regs, u64 cycles);
void end_interrupt(void);
void panic(const struct pt_regs *regs, const char *why, u64 number) __attribute__((noreturn));

#define this_cpu read_this_cpu()
#define current	 (this_cpu->task)

#endif
