/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATIVE_OS_H
#define NATIVE_OS_H

/*
 * What <lego/profile.h> needs (PROFILE_OS_HEADER), in a program of this machine. All of it is the
 * kernel's own but where the per-CPU areas are: a thread that is tied to a CPU has its own copy of
 * section "percpu", and GS, which the C library leaves alone, holds the distance to it.
 */

#include <lego/kernel.h>

#include <asm/percpu.h>
#include <asm/point_clock.h>
#include <asm/static_key.h>
#include <asm/tsc.h>

#define DEFINE_PER_CPU(type, name) __section("percpu") __typeof__(type) name

extern unsigned int cpu_number;

#define smp_processor_id() this_cpu_read(cpu_number)
#define smp_left_cpu(cpu)  this_cpu_differs(cpu_number, cpu)

#endif
