/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_PROFILE_OS_H
#define TESTS_PROFILE_OS_H

/*
 * The seam of kernel/profile/ (see kernel/profile/os.h) on a host: CPUs are a thread-local
 * number, the clock is a counter that tests move, printk() goes to a buffer, and memory can be
 * made to run out.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library has one of its own. */
#undef __always_inline
#include <lego/atomic.h>
#include <lego/kernel.h>
#include <lego/math64.h>
#include <lego/params.h>
#include <lego/sort.h>
#include <lego/string.h>

struct task;
struct process;
struct pt_regs;
struct profile_task;
struct profile_process;

#define HOST_NR_CPUS 4

/* Per-CPU variables: an area for each CPU, laid out like section "percpu". */
extern char __start_percpu[], __stop_percpu[];
extern __thread unsigned int host_cpu;
char *host_percpu_area(unsigned int cpu);

#define DEFINE_PER_CPU(type, name) __section("percpu") __typeof__(type) name
#define per_cpu(name, cpu) \
	(*(__typeof__(name) *)(host_percpu_area(cpu) + ((char *)&(name)-__start_percpu)))
#define this_cpu_ptr(ptr)	   (&per_cpu(*(ptr), host_cpu))
#define this_cpu_add(var, n)	   (per_cpu(var, host_cpu) += (n))
#define this_cpu_inc(var)	   this_cpu_add(var, 1)
#define this_cpu_read(var)	   per_cpu(var, host_cpu)
#define this_cpu_write(var, value) (per_cpu(var, host_cpu) = (value))
#define this_cpu_above(var, value) (per_cpu(var, host_cpu) > (value))
#define this_cpu_below(var, value) (per_cpu(var, host_cpu) < (value))
#define this_cpu_lower(var, value) (per_cpu(var, host_cpu) = min(per_cpu(var, host_cpu), value))
#define this_cpu_raise(var, value) (per_cpu(var, host_cpu) = max(per_cpu(var, host_cpu), value))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < HOST_NR_CPUS; (cpu)++)
#define smp_processor_id()	   host_cpu
#define smp_left_cpu(cpu)	   (host_cpu != (cpu))

/* A key that is looked at, not patched. */
struct static_key {
	bool on;
};
#define static_key_on(key)	 READ_ONCE((key)->on)
#define static_key_is_set(key)	 READ_ONCE((key)->on)
#define static_key_set(key, on_) WRITE_ONCE((key)->on, on_)

/* One cycle is one nanosecond. Each read moves the clock on by host_step. */
extern u64 host_now;
extern u64 host_step;
u64 host_clock(void);
#define point_clock_begin()	host_clock()
#define POINT_CLOCK_BODY(n)	(host_now += (n))
#define point_clock_end()	host_clock()
#define os_cycles()		host_clock()
#define os_cycles_to_ns(cycles) (cycles)

extern int host_nr_fences_dropped;
#define os_drop_fences() ((void)host_nr_fences_dropped++)
extern u64 host_oncpu;
#define os_oncpu_cycles() host_oncpu

#define cpu_relax()	   barrier()
#define os_cpu_online(cpu) ((cpu) != HOST_NR_CPUS - 1)
int printk(const char *fmt, ...) __printf(1, 2);
#define strscpy(dst, src, size) snprintf(dst, size, "%s", src)

struct profile_task *os_current_profile(void);
extern bool host_dying;
#define os_current_dying() host_dying
struct profile_task *os_task_profile(struct task *task);
struct process *os_task_process(struct task *task);
struct profile_process *os_process_profile(struct process *proc);
struct process *os_process_of(const struct profile_process *pp);
int os_process_pid(const struct process *proc);
const char *os_process_name(const struct process *proc);

u64 os_regs_pc(const struct pt_regs *regs);
bool os_regs_user(const struct pt_regs *regs);
extern bool host_idle;
extern unsigned int host_irq_depth;
#define os_in_idle_task() host_idle
#define os_irq_depth()	  host_irq_depth
#define os_tick_hz()	  1000

void *os_zalloc(size_t size);
void os_free(void *ptr);

typedef pthread_mutex_t os_lock_t;
#define OS_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
unsigned long os_lock(os_lock_t *lock); /* fails the test in a panic */
#define os_unlock(lock, flags) ((void)(flags), (void)pthread_mutex_unlock(lock))
void os_wait_turn(void);
extern bool host_panicking;
#define os_panicking() host_panicking

/* One file, keys in a section, workers that run when host_run_workers() is called. */
int os_add_file(const char *directory, const char *name, ssize_t (*read)(char *buf, size_t size),
		ssize_t (*write)(const char *text));

struct host_key {
	char letter;
	void (*run)(void);
};
#define OS_SYSRQ_KEY(ident, letter_, help, run_)                                        \
	static const struct host_key host_key_##ident __used __section("host_keys") = { \
		.letter = letter_,                                                      \
		.run = run_,                                                            \
	}

struct host_worker {
	void (*fn)(void);
};
#define OS_WORKER(name_, fn_) struct host_worker name_ = { .fn = fn_ }
int os_worker_start(struct host_worker *worker, const char *name);
void os_worker_wake(struct host_worker *worker);

const char *os_syscall_name(u64 nr);
const char *os_symbol_lookup(u64 addr, u64 *start);

#endif
