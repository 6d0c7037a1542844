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
#include <stdarg.h>
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
#include <lego/stack_walk.h>
#include <lego/string.h>

struct task;
struct process;
struct pt_regs;
struct profile_task;
struct profile_process;

#ifndef HOST_NR_CPUS
#define HOST_NR_CPUS 4
#endif

/* Per-CPU variables: an area for each CPU, laid out like section "percpu". */
extern char __start_percpu[], __stop_percpu[];
extern __thread unsigned int host_cpu;
char *host_percpu_area(unsigned int cpu);

#define DEFINE_PER_CPU(type, name)  __section("percpu") __typeof__(type) name
#define DECLARE_PER_CPU(type, name) extern __typeof__(type) name
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

/* Cycles that every task has been off a CPU; the number of the system call in flight. */
extern u64 host_off;
extern u64 host_nr;
#define os_off_cycles(pt)	((void)(pt), host_off)
#define os_task_exec_cycles(pt) ((void)(pt), READ_ONCE(host_now) - host_off)
#define os_syscall_nr()		host_nr
#define os_saves_registers
#define os_call(fn) fn()

extern int host_nr_fences_dropped;
#define os_drop_fences() ((void)host_nr_fences_dropped++)
extern u64 host_oncpu;
#define os_oncpu_cycles() host_oncpu

#define cpu_relax()	   barrier()
#define os_cpu_online(cpu) ((cpu) != HOST_NR_CPUS - 1)
int printk(const char *fmt, ...) __printf(1, 2);
int vprintk(const char *fmt, va_list args);
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
u64 os_regs_sp(const struct pt_regs *regs);
extern bool host_idle;
extern unsigned int host_irq_depth;
#define os_irq_depth() host_irq_depth
bool os_regs_irqs_off(const struct pt_regs *regs);
extern __thread u32 host_tid;
extern u32 host_pid, host_syscall;
extern char host_comm[16];
extern __thread struct task *host_current;
#define os_current_task()	 host_current
#define os_current_tid()	 host_tid
#define os_current_pid()	 host_pid
#define os_task_idle(task)	 host_idle
#define os_process_program(proc) host_program
extern u8 host_program;
/* Another one for all that differs above. */
u64 host_who(void);
#define os_task_who(task) host_who()
/* One file at 4 MiB. */
bool os_process_mapping(struct process *proc, u64 addr, char *path, size_t size, u64 *offset);
#define os_task_tid(task)	    ((void)(task), host_tid)
#define os_task_pid(task)	    ((void)(task), host_pid)
#define os_task_comm(task, words)   memcpy(words, host_comm, sizeof(host_comm))
#define os_task_syscall(task, regs) host_syscall
#define os_same_words(a, b, nr)	    (!memcmp(a, b, (nr) * sizeof(u64)))
#define OS_NO_SYSCALL		    0xffff
#define os_stack_walk_init()	    ((void)0)
struct stack_walk os_stack_walk(const struct pt_regs *regs, u64 *pcs, u32 max);
/* Those last asked about, which have the user's part, too. */
extern const struct pt_regs *host_user_regs;
#define os_user_regs(task) host_user_regs
bool os_stack_matches_kernel(const struct pt_regs *regs, const u64 *pcs, u32 nr);
#define os_stack_matches_beside(regs, pcs, nr, plain) os_stack_matches_kernel(regs, pcs, nr)
enum stack_cut os_stack_matches_user(const struct pt_regs *regs, const u64 *pcs, u32 nr);
extern u64 host_memory_bytes;
#define os_memory_bytes() host_memory_bytes

/* One timer for all CPUs, as CPU 0 sets it, and one NMI timer, which tests may take away. */
extern u64 host_timer_deadline;
void host_timer_rearm(void);
#define os_timer_deadline() host_timer_deadline
#define os_timer_rearm()    host_timer_rearm()
void os_wait_for_interrupt(bool halt);
extern const char *host_nmi_timer;
extern u32 host_nmi_hz; /* 0: stopped */
extern int host_nr_nmis_sent;
const char *os_nmi_start(u32 hz, bool *jitter, u64 *period, u64 *start);
extern int host_nr_nmis_moved;
#define os_nmi_move(random)    ((void)(random), (void)host_nr_nmis_moved++)
#define os_nmi_stop()	       ((void)(host_nmi_hz = 0))
#define os_nmi_send()	       ((void)host_nr_nmis_sent++)
#define os_cycles_per_second() 1000000000ul
#define os_irq_save()	       0ul
#define os_irq_restore(flags)  ((void)(flags))
void os_run_on_all_cpus(void (*fn)(void *unused));
#define os_run_on_boot_cpu(fn) fn(NULL)

void *os_zalloc(size_t size);
void *os_alloc(size_t size);
void os_free(void *ptr);

typedef pthread_mutex_t os_lock_t;
#define OS_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
unsigned long os_lock(os_lock_t *lock); /* fails the test in a panic */
#define os_unlock(lock, flags) ((void)(flags), (void)pthread_mutex_unlock(lock))
void os_wait_turn(void);
extern bool host_panicking;
#define os_panicking() host_panicking

/*
 * Live lines: the registers of a call, and a user memory of which a part can be read. The rest
 * is on the host's side of the seam, in the test that uses it.
 */
#include <generated/syscalls.h>
bool os_syscall_args(u64 *args);
int os_copy_from_user(void *dst, u64 addr, size_t n);
long os_copy_string_from_user(char *dst, u64 addr, size_t size);
void os_sleep_ms(u32 ms);
#define os_syscall_sp() (0x7000ull)
#define os_may_yield()	((void)0)

/* Files, keys in a section, workers that run when host_run_workers() is called. */
typedef struct {
	char buf[1 << 16];
	size_t len;
} os_text_t;
void os_text_printf(os_text_t *text, const char *fmt, ...) __printf(2, 3);
void os_text_vprintf(os_text_t *text, const char *fmt, va_list args);
int os_add_file(const char *path, int (*show)(os_text_t *text), int (*write)(const char *text));
int os_add_process_file(const char *name, int (*show)(os_text_t *text, struct process *proc),
			int (*write)(const char *text, struct process *proc));

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
