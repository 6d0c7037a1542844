/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_NONE_H
#define PROFILE_OS_NONE_H

/*
 * Defaults for os.h, for names that the including header has not defined. They suit a kernel
 * without files, sysrq, worker threads, NMIs, call chains, boot parameters, user mode, and so on. A
 * kernel must supply the names that have no default here: see porting.md.
 */

#ifndef OS_EINVAL
#define OS_EINVAL	22
#define OS_ENOMEM	12
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
#define os_text_vprintf(text, fmt, args)		((void)(text))
#define os_text_stream(text, more, end, data)		((void)(more), (end)(data))
#define os_add_file(path, accepts, show, arg, write)	((void)(show), (void)(write), 0)
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
#define OS_WORKER(ident, fn)	      void (*ident)(void) = fn
#define os_worker_start(worker, name) ((void)(worker), 0)
#define os_worker_wake(worker)	      ((void)(worker))
#endif

/* Exports. */
#ifndef os_physical_address
#define os_physical_address(ptr) ((u64)(ptr))
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
#ifndef os_task_state
#define os_task_state(task) ((void)(task), 0)
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
#define os_wait_addr(task) ((u64)0)
#endif
#ifndef os_task_is_off_cpu
#define os_task_of(pt)			 ((void)(pt), (os_task_t *)NULL)
#define os_task_is_off_cpu(task, asleep) ((void)(task), *(asleep) = false)
#define os_task_cpu(task)		 ((void)(task), 0u)
#define os_sleeper_syscall(task)	 OS_NO_SYSCALL
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
#ifndef os_process_faults
#define OS_NR_FAULT_KINDS	1
#define OS_FAULT_KINDS		""
#define os_process_faults(proc) ((void)(proc), &os_no_faults)
#define os_task_faults(task)	((void)(task), &os_no_faults)
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

/* One CPU, on which threads do not wait for each other. */
#ifndef os_for_each_cpu
#define os_for_each_cpu(cpu)   for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define os_cpu_online(cpu)     1
#define os_run_on_all_cpus(fn) fn(NULL)
#define os_run_on_boot_cpu(fn) fn(NULL)
#endif
#ifndef os_wait_turn
#define os_wait_turn() ((void)0)
#endif
/* For the stores of samples and waits, which need the kernel's own. */
#ifndef os_irq_save
#define os_irq_save()	      0ul
#define os_irq_restore(flags) ((void)(flags))
#endif
#ifndef os_may_yield
#define os_may_yield()	((void)0)
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
#ifndef os_random
#define os_random() os_cycles()
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
#define os_nmi_slots()	    ((u64)0)
#define os_nmi_move(random) ((void)(random))
#define os_nmi_stop()	    ((void)0)
#define os_nmi_send()	    ((void)0)
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
#define os_stack_matches_kernel(regs, pcs, nr)		  0
#define os_stack_matches_frameless(regs, pcs, nr, replay) 0
#define os_stack_matches_user(regs, pcs, nr)		  STACK_WHOLE
#define os_user_regs(task)				  NULL
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
#define os_process_age_ns(proc) ((void)(proc), (u64)0)
#endif
#ifndef os_process_wait_status
#define os_process_wait_status(proc) ((void)(proc), 0u)
#endif
#ifndef os_process_program
#define os_process_program(proc) ((void)(proc), 0u)
#endif
#ifndef os_task_key
#define os_task_key(task) (os_task_profile(task)->task_key)
#endif
#ifndef os_task_tid
#define os_task_tid(task) ((void)(task), 0u)
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
#define os_task_code_map(task)	  ((void)(task), 0u)
#define os_process_code_map(proc) ((void)(proc), 0u)
#endif
/* A kernel that supplies os_off_cycles() must supply this, too. */
#if !OS_HAS_EXEC_CYCLES
#define os_task_exec_cycles(pt) ((void)(pt), os_cycles())
#endif
#ifndef OS_HAS_CPU_TIMES
#define OS_HAS_CPU_TIMES	     0
#define os_task_cpu_times(pt, times) ((void)(pt), (void)(times))
#define os_machine_times(times)	     ((void)(times))
#endif
#ifndef os_begin_report
#define os_begin_report()    0
#define os_end_report(owner) ((void)(owner))
#endif
#ifndef OS_NO_SYSCALL
#define OS_NO_SYSCALL		    0xffff
#define os_task_syscall(task, regs) OS_NO_SYSCALL
#endif
#ifndef os_current_tid
#define os_current_tid() os_task_tid(os_current_task())
#define os_current_pid() os_task_pid(os_current_task())
#endif
#ifndef os_syscall_sp
#define os_syscall_sp() ((u64)0)
#endif
#ifndef os_realtime_ns
#define os_realtime_ns() ((u64)0)
#endif
#ifndef os_file_open
#define os_file_open(path)  ((void)(path), (os_file_t *)NULL) /* user code has no names */
#define os_file_close(file) ((void)(file))
#endif
#ifndef os_process_mapping
#define os_process_mapping(proc, addr, path, size, offset) ((void)(proc), (void)(offset), 0)
#endif

#endif
