/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_PROFILE_OS_HOOKS_H
#define TESTS_PROFILE_OS_HOOKS_H

/*
 * The part of the OS interface that hooks need (kernel/profile/os_hooks.h), on a host: see
 * profile_os.h.
 */

/* The C library defines it, too. */
#undef __always_inline
#include <lego/kernel.h>

struct task;
struct process;
struct siginfo;
struct pt_regs;
struct vma;
#define PROFILE_PORT_API 1
#define OS_U64_IS_LONG

typedef struct task os_task_t;
typedef struct process os_process_t;
typedef struct pt_regs os_regs_t;
#define os_siginfo_t struct siginfo
typedef struct vma os_area_t;

#ifndef HOST_NR_CPUS
#define HOST_NR_CPUS 4
#endif

/* Per-CPU variables: an area for each CPU, laid out like section "percpu". */
extern char __start_percpu[], __stop_percpu[];
extern __thread unsigned int host_cpu;
char *host_percpu_area(unsigned int cpu);

#ifdef HOST_ARRAYS /* by CPU number, as in a kernel without per-CPU variables */
#define OS_NR_CPUS HOST_NR_CPUS
#else
#define OS_DEFINE_PER_CPU(type, name)  __section("percpu") __typeof__(type) name
#define OS_DECLARE_PER_CPU(type, name) extern __typeof__(type) name
#ifdef HOST_ONE_CPU
#define os_per_cpu(name, cpu) (*((void)(cpu), &(name))) /* as few instructions as in a kernel */
#else
#define os_per_cpu(name, cpu) \
	(*(__typeof__(name) *)(host_percpu_area(cpu) + ((char *)&(name)-__start_percpu)))
#endif
#define os_this_cpu_ptr(ptr) (&os_per_cpu(*(ptr), host_cpu))
#endif
#define os_cpu() host_cpu

/* The clock. Tests move it, by hand or by host_step at each read. */
u64 host_clock(void);
extern u64 host_now;
#define os_clock_begin() host_clock()
#define os_clock_end()	 host_clock()
#define OS_CLOCK_BODY(n) (host_now += (n))
#define os_cycles()	 host_clock()

/* The profiler's part of the current task, and the cycles that each task has been off a CPU. */
extern u64 host_off;
struct profile_task *os_current_profile(void);
#define os_current_profile os_current_profile
#define os_off_cycles(pt)  ((void)(pt), host_off)
extern bool host_dying;
#define os_current_dying() host_dying

/* Keys are variables that are tested. Calls host_on_key, if a test has set it. */
void host_key_is_set(void);
#define os_key_set(key, on_) (pf_write_once((key)->on, on_), host_key_is_set())

#define os_keep_chain(entry, number) (*(entry) = (u16)(number))

#endif
