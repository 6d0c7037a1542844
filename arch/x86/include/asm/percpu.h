/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_PERCPU_H
#define ASM_PERCPU_H

/* %gs holds the distance from a variable in the image to this CPU's copy (see <lego/percpu.h>). */

#define this_cpu_read(var)                                                \
	({                                                                \
		__typeof__(var) _read;                                    \
		asm volatile("mov %%gs:%1, %0" : "=r"(_read) : "m"(var)); \
		_read;                                                    \
	})

#define this_cpu_write(var, value)                                         \
	do {                                                               \
		__typeof__(var) _write = (value);                          \
		asm volatile("mov %1, %%gs:%0" : "=m"(var) : "r"(_write)); \
	} while (0)

#define this_cpu_add(var, value)                                                \
	do {                                                                    \
		__typeof__(var) _add = (value);                                 \
		asm volatile("add %1, %%gs:%0" : "+m"(var) : "r"(_add) : "cc"); \
	} while (0)

#define this_cpu_inc(var) this_cpu_add(var, 1)
#define this_cpu_dec(var) this_cpu_add(var, -1)

#endif
