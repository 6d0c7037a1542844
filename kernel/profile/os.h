/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_H
#define PROFILE_OS_H

/*
 * The interface to the kernel, part two: the contracts of what the shared files of this folder need
 * besides os_hooks.h. os_stacks.h and os.h of the profilers' folders have the rest. A kernel
 * supplies these names as macros in a header of its own, which PROFILE_OS_HEADER names; a function
 * os_x() needs `#define os_x os_x`, too. What it leaves out gets the default given here. What has
 * no default is an error that says what to define. porting.md is the guide.
 *
 * Everything else is plain C (with memset, memcpy, memcmp, strcmp, strncmp and strlen) or comes
 * from base.h.
 */

#include "os_hooks.h"

#include <profile/profile.h>
#include <profile/stack_walk.h>

#ifndef PROFILE_OS_HEADER
#define PROFILE_OS_HEADER <lego/profile_os.h>
#endif
#include PROFILE_OS_HEADER

#ifdef CONFIG_PROFILE_MEMORY
#include <profile/memory.h>
/* Allocations in this folder are the profilers' memory, not the kernel's. */
#undef PROFILE_MEMORY_OBJECTS_OF
#define PROFILE_MEMORY_OBJECTS_OF PROFILE_MEMORY_OF_PROFILERS
#endif

PF_BUILD_BUG_ON(sizeof(u64) != 8 || sizeof(s64) != 8 || sizeof(u32) != 4 || (bool)2 != 1);

/* Options that need others, as in Kconfig. Unit tests compile parts of profilers. */
#ifndef UNIT_TEST
#if defined(CONFIG_PROFILE_STRACE_DETAIL) && !defined(CONFIG_PROFILE_STRACE)
#error "profile: CONFIG_PROFILE_STRACE_DETAIL needs CONFIG_PROFILE_STRACE"
#endif
#if defined(CONFIG_PROFILE_STRACE_LIVE) && !defined(CONFIG_PROFILE_STRACE)
#error "profile: CONFIG_PROFILE_STRACE_LIVE needs CONFIG_PROFILE_STRACE"
#endif
#if defined(CONFIG_PROFILE_FILES) && !defined(CONFIG_PROFILE_STRACE)
#error "profile: CONFIG_PROFILE_FILES needs CONFIG_PROFILE_STRACE"
#endif
#if defined(CONFIG_PROFILE_FILES) && !defined(CONFIG_PROFILE_HEATMAP)
#error "profile: CONFIG_PROFILE_FILES needs CONFIG_PROFILE_HEATMAP"
#endif
#if defined(CONFIG_PROFILE_CALLCHAIN) && !defined(CONFIG_PROFILE_HEATMAP)
#error "profile: CONFIG_PROFILE_CALLCHAIN needs CONFIG_PROFILE_HEATMAP"
#endif
#if defined(CONFIG_PROFILE_WAITS) && !defined(CONFIG_PROFILE_CALLCHAIN)
#error "profile: CONFIG_PROFILE_WAITS needs CONFIG_PROFILE_CALLCHAIN"
#endif
#if defined(CONFIG_PROFILE_PATH) && !defined(CONFIG_PROFILE_TRACE)
#error "profile: CONFIG_PROFILE_PATH needs CONFIG_PROFILE_TRACE"
#endif
#if defined(CONFIG_PROFILE_FUNCTIONS) && !defined(CONFIG_PROFILE_CALLCHAIN)
#error "profile: CONFIG_PROFILE_FUNCTIONS needs CONFIG_PROFILE_CALLCHAIN"
#endif
#if defined(CONFIG_PROFILE_EXPORT) && !defined(CONFIG_PROFILE_STRACE) &&       \
	!defined(CONFIG_PROFILE_HEATMAP) && !defined(CONFIG_PROFILE_POINTS) && \
	!defined(CONFIG_PROFILE_TRACE)
#error "profile: CONFIG_PROFILE_EXPORT needs a profiler: STRACE, HEATMAP, POINTS or TRACE"
#endif
#if defined(CONFIG_PROFILE_MEMORY) && !defined(CONFIG_PROFILE_STRACE) &&       \
	!defined(CONFIG_PROFILE_HEATMAP) && !defined(CONFIG_PROFILE_POINTS) && \
	!defined(CONFIG_PROFILE_TRACE)
#error "profile: CONFIG_PROFILE_MEMORY needs a profiler: STRACE, HEATMAP, POINTS or TRACE"
#endif
#if defined(CONFIG_PROFILE_SELFTEST) && !defined(CONFIG_PROFILE_STRACE) &&     \
	!defined(CONFIG_PROFILE_HEATMAP) && !defined(CONFIG_PROFILE_POINTS) && \
	!defined(CONFIG_PROFILE_TRACE)
#error "profile: CONFIG_PROFILE_SELFTEST needs a profiler: STRACE, HEATMAP, POINTS or TRACE"
#endif
#if defined(CONFIG_PROFILE_WORKING_SET) && !defined(CONFIG_PROFILE_STRACE) &&  \
	!defined(CONFIG_PROFILE_HEATMAP) && !defined(CONFIG_PROFILE_POINTS) && \
	!defined(CONFIG_PROFILE_TRACE)
#error "profile: CONFIG_PROFILE_WORKING_SET needs a profiler: STRACE, HEATMAP, POINTS or TRACE"
#endif
#if defined(CONFIG_PROFILE_MEMORY_CHAINS) && !defined(CONFIG_PROFILE_MEMORY)
#error "profile: CONFIG_PROFILE_MEMORY_CHAINS needs CONFIG_PROFILE_MEMORY"
#endif
#if defined(CONFIG_PROFILE_MEMORY_CHAINS) && !defined(CONFIG_PROFILE_CALLCHAIN)
#error "profile: CONFIG_PROFILE_MEMORY_CHAINS needs CONFIG_PROFILE_CALLCHAIN"
#endif
#if defined(CONFIG_PROFILE_IMAGES) && !defined(CONFIG_PROFILE_EXPORT)
#error "profile: CONFIG_PROFILE_IMAGES needs CONFIG_PROFILE_EXPORT"
#endif
#if defined(CONFIG_PROFILE_IMAGES) && !defined(CONFIG_PROFILE_HEATMAP)
#error "profile: CONFIG_PROFILE_IMAGES needs CONFIG_PROFILE_HEATMAP"
#endif
#endif

/* The points that a report has room for. A point takes 624 bytes of bss. */
#ifndef OS_MAX_POINTS
#define OS_MAX_POINTS 256
#endif

/* Errors, returned as negative numbers: invalid words, no memory, in use, a string too long. */
#ifndef OS_EINVAL
#define OS_EINVAL 22
#endif
#ifndef OS_ENOMEM
#define OS_ENOMEM 12
#endif
#ifndef OS_EBUSY
#define OS_EBUSY 16
#endif
#ifndef OS_ENAMETOOLONG
#define OS_ENAMETOOLONG 36
#endif

/* Prints one line to the log. Any context. */
#ifndef os_vprintk
#error "profile: define os_vprintk(fmt, args): prints one line"
#endif
/* As in C11, with the conversions %c %d %o %s %u %x, flags, width, precision, `l` and `ll`. */
#ifndef os_vsnprintf
#error "profile: define os_vsnprintf(buf, size, fmt, args): C11's vsnprintf()"
#endif
#ifndef os_strscpy
#define os_strscpy(dst, src, size) os_snprintf(dst, size, "%s", src)
#endif

/* print.c: variants with `...` of these, and of os_text_vprintf(). */
int os_printk(const char *fmt, ...) pf_printf(1, 2);
int os_snprintf(char *buf, size_t size, const char *fmt, ...) pf_printf(3, 4);

/* Sorts in place, without allocating. */
#ifndef os_sort
/* Insertion sort. */
static inline void os_sort(void *base, size_t nr, size_t size,
			   int (*compare)(const void *a, const void *b))
{
	char *begin = base, *end = begin + nr * size, *at, *here, *byte, c;

	for (at = begin; at < end; at += size) {
		for (here = at; here > begin && compare(here - size, here) > 0; here -= size) {
			for (byte = here; byte < here + size; byte++) {
				c = *byte;
				*byte = byte[-(long)size];
				byte[-(long)size] = c;
			}
		}
	}
}
#endif
/* Returns a * b / c, rounded down, with a product of 128 bits; ~0 if the result does not fit. */
#ifndef os_mul_div_u64
/* Long division in base 2: needs no library function for 128 bits. */
static inline u64 os_mul_div_u64(u64 a, u64 b, u64 c)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	u64 high = product >> 64, low = product;
	int i;

	if (high >= c)
		return ~0ull;
	for (i = 0; i < 64; i++) {
		bool carry = high >> 63;

		high = high << 1 | low >> 63;
		low <<= 1;
		if (carry || high >= c) {
			high -= c;
			low++;
		}
	}
	return low;
}
#endif
/* Parses a number. Returns 0 if the whole text is a number. */
#ifndef os_parse_u64
/* Decimal. */
static inline int os_parse_u64(const char *text, u64 *value)
{
	*value = 0;
	if (!*text)
		return -OS_EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || *value > (~0ull - 9) / 10)
			return -OS_EINVAL;
		*value = *value * 10 + (*text - '0');
	}
	return 0;
}
#endif
/* Returns whether text matches one of the shell patterns, which commas separate. */
#ifndef os_glob_match_list
/* Matches whole names, and prefixes followed by `*`. */
static inline bool os_glob_match_list(const char *globs, const char *text)
{
	size_t len;

	for (;; globs++) {
		for (len = 0; *globs && *globs != ',' && *globs == text[len]; globs++)
			len++;
		if (*globs == '*' || (!text[len] && (!*globs || *globs == ',')))
			return true;
		while (*globs && *globs != ',')
			globs++;
		if (!*globs)
			return false;
	}
}
#endif
/* Returns whether two arrays of u64 are equal. */
#ifndef os_same_words
#define os_same_words(a, b, nr) (!memcmp(a, b, (nr) * sizeof(u64)))
#endif

/*
 * Allocates zeroed memory. Returns NULL if there is none. Any context but NMI, also with locks
 * held; never sleeps.
 */
#ifndef os_zalloc
#error "profile: define os_zalloc(size): allocates zeroed memory, without sleeping"
#endif
/* Does the same without zeroing. */
#ifndef os_alloc
#define os_alloc(size) os_zalloc(size)
#endif
/* Frees such memory. Same contexts. os_free(NULL) does nothing. */
#ifndef os_free
#error "profile: define os_free(ptr): frees it"
#endif
/* Returns the size of the machine's memory. Without it, stores may be as large as asked for. */
#ifndef os_memory_bytes
#define os_memory_bytes() (~0ull) /* stores may be as large as asked for */
#endif

/* Takes a lock and turns interrupts off. Returns the flags for os_unlock(). Any context but NMI. */
#ifndef os_lock
#error "profile: define os_lock(lock): takes an os_lock_t, turns interrupts off, returns flags"
#endif
#ifndef os_unlock
#error "profile: define os_unlock(lock, flags): undoes os_lock()"
#endif
#ifndef OS_LOCK_INIT
#error "profile: define OS_LOCK_INIT: initial value of an os_lock_t"
#endif
/* Without them, interrupts stay on: stores of records need the kernel's own. */
#ifndef os_irq_save
#ifdef CONFIG_PROFILE_HEATMAP
#error "profile: define os_irq_save(): turns interrupts off, returns flags"
#endif
#define os_irq_save() 0ul
#endif
#ifndef os_irq_restore
#ifdef CONFIG_PROFILE_HEATMAP
#error "profile: define os_irq_restore(flags): undoes os_irq_save()"
#endif
#define os_irq_restore(flags) ((void)(flags))
#endif
/* Lets other threads run, in a loop that waits for one. Process context, no lock held. */
#ifndef os_relax_and_yield
#define os_relax_and_yield() ((void)0)
#endif
/* Lets other threads run. Process context. */
#ifndef os_may_yield
#define os_may_yield() ((void)0)
#endif
#ifndef os_cpu_relax
#define os_cpu_relax() pf_barrier()
#endif
/* Returns true in a panic: other CPUs are stopped, so locks must not be taken. */
#ifndef os_panicking
#define os_panicking() 0
#endif

/*
 * Assertions: of a condition, of a lock that the caller holds, and of the context. They must not
 * fail in a panic, when the holders of locks are stopped and counters may be half updated.
 */
#ifndef os_assert
#define os_assert(cond) ((void)sizeof(!(cond)))
#endif
#ifndef os_assert_held
#define os_assert_held(lock) ((void)sizeof(lock))
#endif
#ifndef os_assert_irqs_off
#define os_assert_irqs_off() ((void)0)
#endif
#ifndef os_assert_process_context
#define os_assert_process_context() ((void)0)
#endif

/* CPUs. By default, all are online. */
#ifndef os_for_each_cpu
#if !defined(OS_NR_CPUS)
#error "profile: define os_for_each_cpu(cpu): loop over all CPU numbers"
#endif
#define os_for_each_cpu(cpu) for ((cpu) = 0; (cpu) < OS_NR_CPUS; (cpu)++)
#endif
#ifndef os_cpu_online
#define os_cpu_online(cpu) ((void)(cpu), 1)
#endif
/* Call fn(NULL) on these CPUs, with interrupts off, and wait until it has run. Process context. */
#ifndef os_run_on_all_cpus
#if OS_NR_CPUS != 1 && (defined(CONFIG_PROFILE_POINTS) || defined(CONFIG_PROFILE_HEATMAP) || \
			defined(CONFIG_PROFILE_TRACE))
#error "profile: define os_run_on_all_cpus(fn): calls fn(NULL) on each CPU and waits"
#endif
#define os_run_on_all_cpus(fn) fn(NULL)
#endif
#ifndef os_run_on_boot_cpu
#if OS_NR_CPUS != 1 && (defined(CONFIG_PROFILE_POINTS) || defined(CONFIG_PROFILE_HEATMAP) || \
			defined(CONFIG_PROFILE_TRACE))
#error "profile: define os_run_on_boot_cpu(fn): calls fn(NULL) on CPU 0 and waits"
#endif
#define os_run_on_boot_cpu(fn) fn(NULL)
#endif

/* Converts cycles to nanoseconds, rounded to nearest. */
#ifndef os_cycles_to_ns
#error "profile: define os_cycles_to_ns(cycles): converts cycles of os_cycles() to nanoseconds"
#endif
#ifndef os_cycles_per_second
#ifdef CONFIG_PROFILE_HEATMAP
#error "profile: define os_cycles_per_second(): rate of os_cycles()"
#endif
#endif
/* Returns whether the clock counts the instructions of all CPUs together (QEMU's -icount). */
#ifndef os_clock_counts_instructions
#define os_clock_counts_instructions() 0
#endif
/* Removes the fences from os_clock_begin() and _end(). No point is on. Process context. */
#ifndef os_drop_fences
#define os_drop_fences() ((void)0)
#endif

/* Tasks and processes, as the hooks get them. os_task_process() returns NULL for kernel threads. */
#ifndef os_current_task
#error "profile: define os_current_task(): the running task"
#endif
#ifndef os_task_profile
#error "profile: define os_task_profile(task): a task's struct profile_task"
#endif
#ifndef os_task_process
#error "profile: define os_task_process(task): a task's process, or NULL"
#endif
#ifndef os_process_profile
#error "profile: define os_process_profile(proc): a process's struct profile_process"
#endif
/* Whether these structs of a new task and of a new process are zeroed, up to `not_zeroed`. */
#ifndef OS_ZEROES_PROFILES
#define OS_ZEROES_PROFILES 0
#endif
#ifndef os_process_of
#error "profile: define os_process_of(pp): the process that has a struct profile_process"
#endif
#ifndef os_process_pid
#error "profile: define os_process_pid(proc): a process's number"
#endif
#ifndef os_process_name
#error "profile: define os_process_name(proc): a process's name"
#endif
/*
 * Copies the first 16 bytes of that name to two words. Bytes behind the NUL should be 0: names that
 * differ there are compared once more.
 */
#ifndef os_process_comm
#define os_process_comm(proc, words)              \
	((void)memset(words, 0, 2 * sizeof(u64)), \
	 (void)os_strscpy((char *)(words), os_process_name(proc), 2 * sizeof(u64)))
#endif
#ifndef os_task_tid
#if defined(CONFIG_PROFILE_STRACE_LIVE) || defined(CONFIG_PROFILE_HEATMAP) || \
	defined(CONFIG_PROFILE_TRACE)
#error "profile: define os_task_tid(task): a thread's number"
#endif
#endif
/* Returns the pid of a task's process. 0: the task has none, or has left it. */
#ifndef os_task_pid
#define os_task_pid(task) (os_task_process(task) ? (u32)os_process_pid(os_task_process(task)) : 0)
#endif
#ifndef os_current_tid
#define os_current_tid() os_task_tid(os_current_task())
#endif
#ifndef os_current_pid
#define os_current_pid() os_task_pid(os_current_task())
#endif
/* Copies the task's name: 16 bytes, including a NUL. */
#ifndef os_task_comm
#define os_task_comm(task, words) ((void)(task), (void)memset(words, 0, 2 * sizeof(u64)))
#endif
#ifndef os_task_idle
#if defined(CONFIG_PROFILE_HEATMAP) || defined(CONFIG_PROFILE_TRACE)
#error "profile: define os_task_idle(task): whether it is an idle task"
#endif
#endif

/*
 * Return the age of a process since it was created, in ns or OS_NO_AGE, in any context; and the
 * wait status of one that ends, as in wait(2) or OS_NO_STATUS: bits 0 to 6 are the signal that
 * killed it; if they are 0, the exit code begins at bit 8.
 */
#define OS_NO_AGE    (~0ull)
#define OS_NO_STATUS (~0u)
#ifndef os_process_age_ns
#define os_process_age_ns(proc) ((void)(proc), OS_NO_AGE)
#endif
#ifndef os_process_wait_status
#define os_process_wait_status(proc) ((void)(proc), OS_NO_STATUS)
#endif
/*
 * Kinds of a program's memory, and their names. os_process_peak() fills in an array of
 * OS_NR_MEMORY_KINDS: the bytes that the process had when it had most. Any context but NMI.
 */
#ifndef OS_NR_MEMORY_KINDS
#ifdef os_process_peak
#error "profile: define OS_NR_MEMORY_KINDS: number of kinds of a program's memory"
#endif
#define OS_NR_MEMORY_KINDS 1
#endif
#ifndef OS_MEMORY_KINDS
#ifdef os_process_peak
#error "profile: define OS_MEMORY_KINDS: names of the kinds"
#endif
#define OS_MEMORY_KINDS ""
#endif
#ifndef os_process_peak
#define os_process_peak(proc, bytes) ((void)(proc), memset(bytes, 0, sizeof(bytes)))
#endif
/*
 * Page faults by kind, and the names of the kinds: those of the threads of a process that have
 * ended, and those of a thread. An array of OS_NR_FAULT_KINDS.
 */
#ifndef OS_NR_FAULT_KINDS
#ifdef os_process_faults
#error "profile: define OS_NR_FAULT_KINDS: number of kinds of page faults"
#endif
#define OS_NR_FAULT_KINDS 1
#endif
#ifndef OS_FAULT_KINDS
#ifdef os_process_faults
#error "profile: define OS_FAULT_KINDS: names of the kinds"
#endif
#define OS_FAULT_KINDS ""
#endif
#ifndef os_task_faults
#ifdef os_process_faults
#error "profile: define os_task_faults(task): page faults of a thread, by kind"
#endif
#define os_task_faults(task) ((void)(task), &os_no_faults)
static const u64 os_no_faults pf_unused;
#endif
#ifndef os_process_faults
#define os_process_faults(proc) ((void)(proc), &os_no_faults)
#endif

/*
 * Returns how long any thread has been on a CPU, in cycles, since the moment of os_off_cycles(): of
 * a running thread, both sum up to os_cycles(). Unlike os_off_cycles(), it is also right while the
 * thread is off its CPU. Only if OS_HAS_EXEC_CYCLES. Any context but NMI, also in a panic.
 */
#ifndef os_task_exec_cycles
#if OS_HAS_EXEC_CYCLES && (defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_WAITS))
#error "profile: define os_task_exec_cycles(pt): a thread's CPU time; goes with os_off_cycles()"
#endif
#define os_task_exec_cycles(pt) ((void)(pt), os_cycles())
#endif
/*
 * Adds the CPU times so far of all threads of a process, including ended ones. Any context but NMI,
 * with a lock of the profilers held: if it takes a lock, no hook is called with that lock held. A
 * kernel without such accounts has OS_HAS_CPU_TIMES 0; then reports do not divide CPU time.
 */
#ifndef OS_HAS_CPU_TIMES
#define OS_HAS_CPU_TIMES 0
#endif
#ifndef os_process_cpu_times
#if OS_HAS_CPU_TIMES
#error "profile: define os_process_cpu_times(proc, times): adds a process's CPU times, by owner"
#endif
#define os_process_cpu_times(proc, times) ((void)(proc), (void)(times))
#endif
/* Stores who had the time of all CPUs since boot. Any context but NMI, also in a panic. */
#ifndef os_machine_times
#if OS_HAS_CPU_TIMES
#error "profile: define os_machine_times(times): who had the time of all CPUs"
#endif
#define os_machine_times(times) ((void)(times))
#endif
/* Enclose the printing of a report on the console, which is no time of the thread that prints. */
#ifndef os_begin_report
#define os_begin_report() 0
#endif
#ifndef os_end_report
#define os_end_report(owner) ((void)(owner))
#endif

/* Returns the name of a system call, which is never freed, or NULL. */
#ifndef os_syscall_name
#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_HEATMAP)
#error "profile: define os_syscall_name(nr): name of a system call, or NULL"
#endif
#define os_syscall_name(nr) ((void)(nr), (const char *)NULL)
#endif
/* Copies the six arguments of the current thread's system call. Returns false if it is in none. */
#ifndef os_syscall_args
#if defined(CONFIG_PROFILE_STRACE_LIVE) || defined(CONFIG_PROFILE_TRACE)
#error "profile: define os_syscall_args(args): copies the six arguments of the current call"
#endif
#endif

/*
 * Finds the function that contains addr. Stores its address in *start and, unless name is NULL,
 * copies its name, truncated to size. Returns false if there is none. Any context, also a panic.
 */
#ifndef os_symbol_lookup
static inline bool os_symbol_lookup(u64 addr, u64 *start, char *name, size_t size)
{
	return false;
}
#endif
/*
 * Finds the function of this name. Stores its address and its size in bytes. Returns false if there
 * is none. Process context.
 */
#ifndef os_symbol_range
static inline bool os_symbol_range(const char *name, u64 *start, u64 *bytes)
{
	return false;
}
#endif
/* Size of a buffer for a function name. A longer name is truncated. */
#define OS_SYMBOL_BYTES 128
/*
 * Finds the file that an address of a process is mapped from: copies its path and the offset in it.
 * Returns false if there is none. May sleep.
 */
#ifndef os_process_mapping
#define os_process_mapping(proc, addr, path, size, offset) ((void)(proc), (void)(offset), 0)
#endif

/*
 * Controls: text files; sysrq keys, whose function runs in process context and may sleep; and
 * worker threads, which call a function when they are woken. show() of a file prints to a text;
 * `accepts` is for error messages: the words that can be written. Files show kernel addresses and
 * switch profilers, so only root may open one; the process's user may open those of
 * os_add_process_file(), too. A file of os_add_exclusive_file() can be open once at a time; close()
 * is called when it is closed, also when its process dies.
 */
/*
 * Calls set(value), which copies what it keeps, for a parameter name=value of the command line,
 * before profile_init(). By default, the kernel gives its command line to profile_set().
 */
#ifndef OS_BOOT_PARAM
struct profile_param {
	const char *name, *form; /* form: what is accepted, for messages */
	int (*set)(const char *value);
	const char *control; /* see PROFILE_CONTROL; NULL: before profile_init() */
};
#define OS_BOOT_PARAM(ident, name, form, set)                                       \
	static const struct profile_param profile_param_##ident pf_used pf_section( \
		"profile_params") pf_aligned(8) = { name, form, set, NULL }
/*
 * Lets profile_set() change the parameter after profile_init(), too: write() gets what users of the
 * control file write there, the words `before` and the value. Process context.
 */
#define PROFILE_CONTROL(ident, name, form, before, write)                             \
	static const struct profile_param profile_control_##ident pf_used pf_section( \
		"profile_params") pf_aligned(8) = { name, form, write, before }
#define OS_HAS_PROFILE_SET
#else
#define PROFILE_CONTROL(ident, name, form, before, write) struct profile_param
#endif
#ifndef os_text_vprintf
#ifdef os_add_file
#error "profile: define os_text_vprintf(text, fmt, args): prints to the text of a file, os_text_t"
#endif
typedef struct {
	char none;
} os_text_t;
#define os_text_vprintf(text, fmt, args) ((void)(text))
#endif
void os_text_printf(os_text_t *text, const char *fmt, ...) pf_printf(2, 3);
/* Prints as the file is read: more() prints a part, and returns false at the end. */
#ifndef os_text_stream
#ifdef os_add_file
#error "profile: define os_text_stream(text, more, end, data): prints as the file is read"
#endif
#define os_text_stream(text, more, end, data) ((void)(more), (end)(data))
#endif
#if defined(os_add_file) || defined(os_add_process_file) || defined(os_add_exclusive_file)
#define OS_HAS_FILES 1
#else
#define OS_HAS_FILES 0
#endif
#ifndef os_add_file
#define os_add_file(path, accepts, show, arg, write) ((void)(show), (void)(write), 0)
#endif
#ifndef os_add_process_file
#define os_add_process_file(name, accepts, show, write) ((void)(show), (void)(write), 0)
#endif
#ifndef os_add_exclusive_file
#define os_add_exclusive_file(path, accepts, show, arg, write, close) \
	((void)(show), (void)(write), (void)(close), 0)
#endif
#ifndef OS_SYSRQ_KEY
#define OS_SYSRQ_KEY(ident, letter, help, run) \
	static void (*const profile_key_##ident)(void) pf_unused = run
#endif
#ifndef os_worker_start
#ifdef OS_WORKER
#error "profile: define os_worker_start(worker, name): starts the thread of a worker"
#endif
#define os_worker_start(worker, name) ((void)(worker), 0)
#endif
#ifndef os_worker_wake
#ifdef OS_WORKER
#error "profile: define os_worker_wake(worker): lets it call its function"
#endif
#define os_worker_wake(worker) ((void)(worker))
#endif
#ifndef OS_WORKER
#define OS_WORKER(ident, fn) void (*ident)(void) = fn
#endif

#endif
