/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_NONE_H
#define PROFILE_OS_NONE_H

/*
 * Defaults for os.h, for names that the including header has not defined. They suit a kernel
 * without files, sysrq, worker threads, NMIs, call chains, boot parameters, user mode, and so on.
 * None makes a report say something false: what the kernel does not know is not printed. os_check.h
 * names what a kernel must supply.
 */

#ifdef PROFILE_OS_H
#include "os_check.h"
#endif

#ifndef OS_EINVAL
#define OS_EINVAL 22
#endif
#ifndef OS_ENOMEM
#define OS_ENOMEM 12
#endif
#ifndef OS_ENAMETOOLONG
#define OS_ENAMETOOLONG 36
#endif

#ifndef OS_EBUSY
#define OS_EBUSY 16
#endif

/* Controls. */
#ifndef OS_BOOT_PARAM
#define OS_BOOT_PARAM(ident, name, form, set) \
	static int (*const profile_param_##ident)(const char *value) pf_unused = set
#endif
#ifndef os_text_vprintf
typedef struct {
	char none;
} os_text_t;
#define os_text_vprintf(text, fmt, args) ((void)(text))
#endif
#ifndef os_text_stream
#define os_text_stream(text, more, end, data) ((void)(more), (end)(data))
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
#ifndef os_add_trace_file
typedef struct {
	const char *path, *accepts;
	int (*show)(os_text_t *text, const void *arg);
	int (*write)(const char *text, const void *arg);
	int (*truncate)(const void *arg);
	void (*release)(const void *arg);
	bool (*next)(os_text_t *text, const void *arg);
	const void *arg;
} os_trace_file_t;
#define os_add_trace_file(file) ((void)(file), 0)
#endif
#ifndef OS_SYSRQ_KEY
#define OS_SYSRQ_KEY(ident, letter, help, run) \
	static void (*const profile_key_##ident)(void) pf_unused = run
#endif
#ifndef OS_WORKER
#define OS_WORKER(ident, fn) void (*ident)(void) = fn
#endif
#ifndef os_worker_start
#define os_worker_start(worker, name) ((void)(worker), 0)
#endif
#ifndef os_worker_wake
#define os_worker_wake(worker) ((void)(worker))
#endif

#ifndef os_build_id
#define os_build_id(text, size) ((void)(size), (void)((text)[0] = '\0'))
#endif

/* Events. */
#ifndef os_trace_flags
#define os_trace_flags() 0
#endif
#ifndef os_task_priority
#define os_task_priority(task) ((void)(task), 120)
#endif
#ifndef os_syscall_args
#define os_syscall_args(args) ((void)memset(args, 0, 6 * sizeof(u64)))
#endif
#ifndef os_signal_code
#define os_signal_code(info) ((void)(info), 0)
#endif
#ifndef os_visit_tasks
#define os_visit_tasks(fn) ((void)(fn))
#endif

/* Waits. */
#ifndef os_wait_name
#define os_wait_name(task) NULL
#endif
#ifndef os_wait_addr
#define os_wait_addr(task) ((u64)0)
#endif
#ifndef os_task_of
#define os_task_of(pt) ((void)(pt), (os_task_t *)NULL)
#endif
#ifndef os_task_is_off_cpu
#define os_task_is_off_cpu(task, asleep) ((void)(task), *(asleep) = false)
#endif
#ifndef os_task_cpu
#define os_task_cpu(task) ((void)(task), 0u)
#endif
#ifndef os_sleeper_syscall
#define os_sleeper_syscall(task) OS_NO_SYSCALL
#endif
#ifndef os_sleeper_stack
#define os_sleeper_stack(task, pcs, max) ((void)(pcs), 0)
#endif
#ifndef OS_CHILD_WAIT
#define OS_CHILD_WAIT ""
#endif
#ifndef os_is_end_wait
#define os_is_end_wait(name) ((void)(name), false)
#endif
#ifndef os_in_scheduler
#define os_in_scheduler(pc) ((void)(pc), false)
#endif
#ifndef os_in_lock
#define os_in_lock(pc) ((void)(pc), false)
#endif
#ifndef OS_NR_FAULT_KINDS
#define OS_NR_FAULT_KINDS 1
#endif
#ifndef OS_FAULT_KINDS
#define OS_FAULT_KINDS ""
#endif
#ifndef os_process_faults
#define os_process_faults(proc) ((void)(proc), &os_no_faults)
#endif
#ifndef os_task_faults
#define os_task_faults(task) ((void)(task), &os_no_faults)
static const u64 os_no_faults pf_unused;
#endif
#ifndef os_process_peak_bytes
#define os_process_peak_bytes(proc) ((void)(proc), (u64)0)
#endif
#ifndef os_process_copied_bytes
#define os_process_copied_bytes(proc) ((void)(proc), (u64)0)
#endif

/* Text and numbers in plain C. */
#ifndef os_strscpy
#define os_strscpy(dst, src, size) os_snprintf(dst, size, "%s", src)
#endif

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

#ifndef os_glob_match
/* Matches a whole name, or a prefix followed by `*`. */
static inline bool os_glob_match(const char *glob, const char *text)
{
	for (; *glob && *glob != '*'; glob++) {
		if (*glob != *text++)
			return false;
	}
	return *glob || !*text;
}
#endif

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

/* All CPUs are online. */
#ifndef os_for_each_cpu
#define os_for_each_cpu(cpu) for ((cpu) = 0; (cpu) < OS_NR_CPUS; (cpu)++)
#endif
#ifndef os_cpu_online
#define os_cpu_online(cpu) ((void)(cpu), 1)
#endif
/* One CPU, on which threads do not wait for each other. */
#ifndef os_run_on_all_cpus
#define os_run_on_all_cpus(fn) fn(NULL)
#endif
#ifndef os_run_on_boot_cpu
#define os_run_on_boot_cpu(fn) fn(NULL)
#endif
#ifndef os_wait_turn
#define os_wait_turn() ((void)0)
#endif
/* For stores, which need the kernel's own. */
#ifndef os_irq_save
#define os_irq_save() 0ul
#endif
#ifndef os_irq_restore
#define os_irq_restore(flags) ((void)(flags))
#endif
#ifndef os_may_yield
#define os_may_yield() ((void)0)
#endif
#ifndef os_sleep_ms
#define os_sleep_ms(ms) ((void)(ms), os_wait_turn())
#endif
#ifndef os_alloc
#define os_alloc(size) os_zalloc(size)
#endif
#ifndef os_memory_bytes
#define os_memory_bytes() (~0ull) /* stores may be as large as asked for */
#endif
#ifndef os_cpu_relax
#define os_cpu_relax() pf_barrier()
#endif
#ifndef os_panicking
#define os_panicking() 0
#endif

/* No assertions. */
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

/* The clock has no fences to drop. */
#ifndef os_drop_fences
#define os_drop_fences() ((void)0)
#endif
#ifndef os_clock_counts_instructions
#define os_clock_counts_instructions() 0
#endif

/* No NMIs, no call chains, no registers of user mode, no names of functions. */
#ifndef OS_HAS_NMIS
#define OS_HAS_NMIS 0
#endif
#ifndef os_nmi_start
static inline const char *os_nmi_start(u32 hz, bool *jitter, bool *moves)
{
	return NULL;
}
#endif
#ifndef os_nmi_slots
#define os_nmi_slots() ((u64)0)
#endif
#ifndef os_nmi_move
#define os_nmi_move(random) ((void)(random))
#endif
#ifndef os_nmi_stop
#define os_nmi_stop() ((void)0)
#endif
#ifndef os_nmi_send
#define os_nmi_send() ((void)0)
#endif
/* A kernel with a periodic tick does not set its timer. */
#ifdef OS_TICK_HZ
#define os_timer_deadline()	       os_cycles()
#define os_timer_rearm()	       ((void)0)
#define os_wait_for_interrupt(is_idle) os_cpu_relax()
#endif
#ifndef os_stack_walk
#define os_stack_walk(regs, pcs, max) ((struct stack_walk){ 0 })
#endif
#ifndef os_stack_walk_init
#define os_stack_walk_init() ((void)0)
#endif
/* No walk is replayable, so none of these is called. */
#ifndef os_stack_matches_kernel
#define os_stack_matches_kernel(regs, pcs, nr) 0
#endif
#ifndef os_stack_matches_frameless
#define os_stack_matches_frameless(regs, pcs, nr, replay) 0
#endif
#ifndef os_stack_matches_user
#define os_stack_matches_user(regs, pcs, nr) STACK_WHOLE
#endif
#ifndef os_user_regs
#define os_user_regs(task) NULL
#endif
#ifndef os_stack_matches_path
#define os_stack_matches_path(regs, pcs, nr) NR_STACK_TRUNCATIONS
#endif
#ifndef os_symbol_lookup
static inline bool os_symbol_lookup(u64 addr, u64 *start, char *name, size_t size)
{
	return false;
}
#endif
#ifndef os_symbol_exists
#define os_symbol_exists(name) 0
#endif
#ifndef os_same_words
#define os_same_words(a, b, nr) (!memcmp(a, b, (nr) * sizeof(u64)))
#endif

/* Tasks and processes. */
#ifndef os_current_dying
#define os_current_dying() 0
#endif
#ifndef os_process_age_ns
#define os_process_age_ns(proc) ((void)(proc), OS_NO_AGE)
#endif
#ifndef os_process_wait_status
#define os_process_wait_status(proc) ((void)(proc), OS_NO_STATUS)
#endif
#ifndef os_process_program
#define os_process_program(proc) ((void)(proc), 0u)
#endif
#ifndef os_task_key
#define os_task_key(task) (os_task_profile(task)->task_key)
#endif
/* Without it, records of processes that have ended keep their numbers. */
#ifndef os_live_key_floor
#define os_live_key_floor(pid) ((void)(pid), 0ul)
#endif
#ifndef os_task_pid
#define os_task_pid(task) (os_task_process(task) ? (u32)os_process_pid(os_task_process(task)) : 0)
#endif
#ifndef os_task_comm
#define os_task_comm(task, words) ((void)(task), (void)memset(words, 0, 2 * sizeof(u64)))
#endif
#ifndef os_task_code_map
#define os_task_code_map(task) ((void)(task), 0u)
#endif
#ifndef os_process_code_map
#define os_process_code_map(proc) ((void)(proc), 0u)
#endif
/* A kernel that supplies os_off_cycles() must supply this, too. */
#ifndef os_task_exec_cycles
#define os_task_exec_cycles(pt) ((void)(pt), os_cycles())
#endif
#ifndef OS_HAS_CPU_TIMES
#define OS_HAS_CPU_TIMES 0
#endif
#ifndef os_task_cpu_times
#define os_task_cpu_times(pt, times) ((void)(pt), (void)(times))
#endif
#ifndef os_machine_times
#define os_machine_times(times) ((void)(times))
#endif
#ifndef os_begin_report
#define os_begin_report() 0
#endif
#ifndef os_end_report
#define os_end_report(owner) ((void)(owner))
#endif
#ifndef OS_NO_SYSCALL
#define OS_NO_SYSCALL 0xffff
#endif
#ifndef os_task_syscall
#define os_task_syscall(task, regs) OS_NO_SYSCALL
#endif
#ifndef os_current_tid
#define os_current_tid() os_task_tid(os_current_task())
#endif
#ifndef os_current_pid
#define os_current_pid() os_task_pid(os_current_task())
#endif
#ifndef os_syscall_sp
#define os_syscall_sp() ((u64)0)
#endif
#ifndef os_realtime_ns
#define os_realtime_ns() ((u64)0)
#endif
#ifndef os_file_open
#define os_file_open(path) ((void)(path), (os_file_t *)NULL) /* user code has no names */
#endif
#ifndef os_file_close
#define os_file_close(file) ((void)(file))
#endif
#ifndef os_process_mapping
#define os_process_mapping(proc, addr, path, size, offset) ((void)(proc), (void)(offset), 0)
#endif

#endif
