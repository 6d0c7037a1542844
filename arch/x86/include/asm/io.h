/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_IO_H
#define ASM_IO_H

/* I/O ports, and device registers in uncached memory (ioremap()). */

#include <lego/types.h>

static inline u8 inb(u16 port)
{
	u8 value;

	asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline void outb(u8 value, u16 port)
{
	asm volatile("outb %0, %1" ::"a"(value), "Nd"(port) : "memory");
}

static inline u16 inw(u16 port)
{
	u16 value;

	asm volatile("inw %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline void outw(u16 value, u16 port)
{
	asm volatile("outw %0, %1" ::"a"(value), "Nd"(port) : "memory");
}

static inline u32 inl(u16 port)
{
	u32 value;

	asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline void outl(u32 value, u16 port)
{
	asm volatile("outl %0, %1" ::"a"(value), "Nd"(port) : "memory");
}

/*
 * Makes one access of exactly this width; the compiler does not move other memory accesses across
 * it.
 */
static inline u32 readl(const volatile void *addr)
{
	u32 value;

	asm volatile("movl %1, %0" : "=r"(value) : "m"(*(const volatile u32 *)addr) : "memory");
	return value;
}

static inline void writel(u32 value, volatile void *addr)
{
	asm volatile("movl %1, %0" : "=m"(*(volatile u32 *)addr) : "r"(value) : "memory");
}

#endif
