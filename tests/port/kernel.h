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

#define TICK_HZ	    1000
#define STACK_BYTES 16384 /* of a task */

/* lib.c */
void *memset(void *dst, int c, size_t n);
void *memcpy(void *dst, const void *src, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
#define vsnprintf(...) battery_vsnprintf(__VA_ARGS__)
#define snprintf(...)  battery_snprintf(__VA_ARGS__)

/* cpu.c: each call prints one line. */
int vprintk(const char *fmt, va_list args);
int printk(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* cpu.c: the timer, interrupts, boot parameters, symbols, and the end of QEMU. */
struct pt_regs {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
	u64 vector, error, rip, cs, rflags, rsp, ss;
};

#define FLAGS_INTERRUPTS (1ul << 9)

extern volatile u64 nr_ticks;
extern u64 cycles_per_second;
extern bool panicking;

#define read_cycles()	     battery_cycles()
#define cycles_to_ns(cycles) battery_cycles_to_ns(cycles, cycles_per_second)

static inline void outb(u16 port, u8 value)
{
	asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

#define irq_save()	   battery_irq_save()
#define irq_restore(flags) battery_irq_restore(flags)

static inline void wait_for_interrupt(void)
{
	asm volatile("hlt" : : : "memory");
}

struct boot_param {
	const char *name;
	int (*set)(const char *value);
};

void cpu_init(void);
void parse_boot_params(void);
__attribute__((noreturn)) void exit_qemu(u32 status);

#endif
