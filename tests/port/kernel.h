/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_KERNEL_H
#define PORT_KERNEL_H

/* Declarations that the kernel's files share, and on which os.h builds the profiler's seam. */

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

#define TICK_HZ 1000

/* lib.c */
void *memset(void *dst, int c, size_t n);
void *memcpy(void *dst, const void *src, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
#define vsnprintf(...) battery_vsnprintf(__VA_ARGS__)
#define snprintf(...)  battery_snprintf(__VA_ARGS__)
u64 mul_div(u64 a, u64 b, u64 c); /* a * b / c, rounded down */
void *alloc(size_t size);	  /* zeroed; NULL if there is none; never freed */

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

static inline u64 read_cycles(void)
{
	u32 low, high;

	asm volatile("rdtsc" : "=a"(low), "=d"(high));
	return (u64)high << 32 | low;
}

static inline u64 cycles_to_ns(u64 cycles)
{
	return mul_div(cycles, 1000000000, cycles_per_second);
}

static inline void outb(u16 port, u8 value)
{
	asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline u64 irq_save(void)
{
	u64 flags;

	asm volatile("pushfq; popq %0; cli" : "=r"(flags) : : "memory");
	return flags & FLAGS_INTERRUPTS;
}

static inline void irq_restore(u64 flags)
{
	if (flags)
		asm volatile("sti" : : : "memory");
}

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
const char *find_symbol(u64 addr, u64 *start);
bool copy_symbol(u64 addr, u64 *start, char *name, size_t size);

#endif
