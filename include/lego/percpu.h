/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PERCPU_H
#define LEGO_PERCPU_H

/*
 * Per-CPU variables. The image holds one initialized copy of section .data..percpu; percpu_init()
 * makes a copy for every possible CPU. A this_cpu_*() operation is a single instruction, so it
 * cannot be torn by an interrupt, an NMI or a migration; it needs no lock prefix because only its
 * CPU writes. Works from the first C instruction on the boot CPU, where it reaches the image's own
 * copy.
 */

#include <asm/percpu.h>
#include <lego/compiler.h>
#include <lego/types.h>

#define DEFINE_PER_CPU(type, name)  __section(".data..percpu") __typeof__(type) name
#define DECLARE_PER_CPU(type, name) extern __section(".data..percpu") __typeof__(type) name

extern u64 percpu_offset[CONFIG_NR_CPUS];

/* Lvalue: another CPU's copy. The address of it may be kept; areas never move. */
#define per_cpu(name, cpu) (*(__typeof__(name) *)((unsigned long)&(name) + percpu_offset[cpu]))

/* This CPU's copy by address; the caller must not migrate while it uses it. */
#define this_cpu_ptr(ptr) ((__typeof__(ptr))((unsigned long)(ptr) + this_cpu_read(this_cpu_offset)))

DECLARE_PER_CPU(u64, this_cpu_offset);
DECLARE_PER_CPU(unsigned int, cpu_number);

/* Index of the running CPU, 0 = boot CPU. Stable only while the caller cannot migrate. */
#define smp_processor_id() this_cpu_read(cpu_number)

#endif
