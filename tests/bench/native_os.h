/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATIVE_OS_H
#define NATIVE_OS_H

/*
 * The interface of points to the kernel (PROFILE_OS_HOOKS_HEADER), for a program on this machine.
 * It is the kernel's own, except for the per-CPU areas: a thread that is tied to a CPU has its own
 * copy of section "percpu", and GS, which the C library does not use, holds the distance to it.
 */

#include <lego/kernel.h>

#include <asm/percpu.h>
#include <asm/point_clock.h>
#include <asm/static_key.h>
#include <asm/tsc.h>

#define PROFILE_PORT_API 1

typedef struct task os_task_t;
typedef struct process os_process_t;
typedef struct pt_regs os_regs_t;

#define DEFINE_PER_CPU(type, name) __section("percpu") __typeof__(type) name

#define OS_DEFINE_PER_CPU(type, name)  DEFINE_PER_CPU(type, name)
#define OS_DECLARE_PER_CPU(type, name) extern DEFINE_PER_CPU(type, name)
#define OS_PER_CPU(type)	       __typeof__(type)
#define OS_EACH_CPU(...)	       __VA_ARGS__
#define os_local(name)		       (name)
/* Points here are of one thread for each CPU, and nobody reads the counts of another one. */
#define os_per_cpu(name, cpu)	      (name)
#define os_this_cpu_ptr(ptr)	      this_cpu_ptr(ptr)
#define os_cpu()		      0
#define os_this_cpu_read(var)	      this_cpu_read(var)
#define os_this_cpu_write(var, value) this_cpu_write(var, value)
#define os_this_cpu_add(var, n)	      this_cpu_add(var, n)
#define os_this_cpu_inc(var)	      this_cpu_inc(var)
#define os_this_cpu_plus(var, value)  this_cpu_plus(var, value)
#define os_this_cpu_above(var, value) this_cpu_above(var, value)
#define os_this_cpu_below(var, value) this_cpu_below(var, value)

typedef struct static_key os_key_t;
#define os_key_on(key) static_key_on(key)

#define os_cycles()		     rdtsc()
#define os_current_profile()	     ((struct profile_task *)NULL)
#define os_clock_begin()	     point_clock_begin()
#define os_clock_end()		     point_clock_end()
#define os_add(var, n)		     point_add(var, n)
#define os_saves_registers	     __saves_registers
#define os_call_with(fn, a, b, c, d) point_call(fn, a, b, c, d)

#endif
