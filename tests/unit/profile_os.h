/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_PROFILE_OS_H
#define TESTS_PROFILE_OS_H

/*
 * The OS interface of kernel/profile/ (see kernel/profile/os.h) on a host. The CPU is a
 * thread-local number, tests move the clock, printk() writes to a buffer, and allocations can be
 * made to fail.
 */

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library defines it, too. */
#undef __always_inline
#include <lego/atomic.h>
#include <lego/kernel.h>
#include <lego/math64.h>
#include <lego/params.h>
#include <lego/sort.h>
#include <profile/stack_walk.h>
#include <lego/string.h>

struct profile_task;
struct profile_process;

/* A cycle is a nanosecond. Each read moves the clock forward by host_step. */
extern u64 host_now;
extern u64 host_step;
u64 host_clock(void);
#define os_cycles_to_ns(cycles) (cycles)

/* The number of the system call in flight. */
#define OS_HAS_CPU_TIMES 1
extern struct profile_cpu_times host_cpu_times; /* of each process */
extern struct profile_machine_times host_machine_times;
#define os_process_cpu_times(proc, times) ((void)(proc), host_add_cpu_times(times))
void host_add_cpu_times(struct profile_cpu_times *times);
#define os_machine_times(times) ((void)(*(times) = host_machine_times))
#define os_begin_report()	0
#define os_end_report(owner)	((void)(owner))
#define os_task_exec_cycles(pt) ((void)(pt), READ_ONCE(host_now) - host_off)

extern int host_nr_fences_dropped;
#define os_drop_fences() ((void)host_nr_fences_dropped++)

#define os_for_each_cpu(cpu) for ((cpu) = 0; (cpu) < HOST_NR_CPUS; (cpu)++)
#ifndef os_cpu_relax
#define os_cpu_relax() barrier()
#endif
#define os_cpu_online(cpu) ((cpu) != HOST_NR_CPUS - 1)
int os_vprintk(const char *fmt, va_list args);
#define os_vsnprintf(buf, size, fmt, args)    vsnprintf(buf, size, fmt, args)
#define os_strscpy(dst, src, size)	      snprintf(dst, size, "%s", src)
#define os_sort(base, nr, size, compare)      sort(base, nr, size, compare)
#define os_mul_div_u64(a, b, c)		      mul_div_u64(a, b, c)
#define os_parse_u64(text, value)	      parse_u64(text, value)
#define os_glob_match(glob, text)	      glob_match(glob, text)
#define os_glob_match_list(globs, text)	      glob_match_list(globs, text)
#define OS_BOOT_PARAM(ident, name, form, set) BOOT_PARAM(ident, name, form, set)
#define OS_EINVAL			      EINVAL
#define OS_EBUSY			      EBUSY
#define OS_ENAMETOOLONG			      ENAMETOOLONG
#define OS_ENOMEM			      ENOMEM

struct profile_task *os_task_profile(struct task *task);
struct process *os_task_process(struct task *task);
struct profile_process *os_process_profile(struct process *proc);
struct process *os_process_of(const struct profile_process *pp);
int os_process_pid(const struct process *proc);
const char *os_process_name(const struct process *proc);
extern u64 host_age_ns;
extern u32 host_wait_status;
#define os_process_age_ns(proc)	     ((void)(proc), host_age_ns)
#define os_process_wait_status(proc) ((void)(proc), host_wait_status)

struct pt_regs {
	u64 pc;
	bool user;
	bool irqs_off;
	/* The return addresses that a stack walk finds. */
	const u64 *callers;
	u32 nr_callers;	     /* in the kernel */
	u32 nr_user_callers; /* of user code, behind those of the kernel */
	int truncated;	     /* enum profile_stack_truncation */
	u64 sp;
};
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
#define os_current_task()  host_current
#define os_current_tid()   host_tid
#define os_current_pid()   host_pid
#define os_task_idle(task) host_is_idle()
bool host_is_idle(void);
extern void (*host_meanwhile)(void); /* what another CPU does at the next look at host_idle */
#define os_process_program(proc) host_program
extern u8 host_program;
/* Returns a different key for each combination of the values above. */
u64 host_task_key(void);
#define os_task_key(task) host_task_key()
/* Processes with lower numbers have ended. */
extern u32 host_first_live_pid;
#define os_live_key_floor(pid) ((pid) < host_first_live_pid ? ~0ul : 0ul)
/* Each process maps one file, at 4 MiB. */
bool os_process_mapping(struct process *proc, u64 addr, char *path, size_t size, u64 *offset);
extern u32 host_code_map;
#define os_task_code_map(task)	  ((void)(task), host_code_map)
#define os_process_code_map(proc) ((void)(proc), host_code_map)
extern u32 host_other_tid; /* of tasks other than the running one; 0: host_tid */
static inline u32 os_task_tid(const struct task *task)
{
	return task != host_current && host_other_tid ? host_other_tid : host_tid;
}
#define os_task_tid		    os_task_tid
#define os_task_pid(task)	    ((void)(task), host_pid)
#define os_task_comm(task, words)   memcpy(words, host_comm, sizeof(host_comm))
#define os_task_syscall(task, regs) host_syscall
#define os_same_words(a, b, nr)	    (!memcmp(a, b, (nr) * sizeof(u64)))
#define OS_NO_SYSCALL		    0xffff
#define os_stack_walk_init()	    ((void)0)
struct profile_stack_walk os_stack_walk(const struct pt_regs *regs, u64 *pcs, u32 max);
/* The registers of the last comparison; they include the user part. */
extern const struct pt_regs *host_user_regs;
#define os_user_regs(task) host_user_regs
/*
 * Waits: the registers of the current task, what it waits for, and which addresses belong to the
 * scheduler.
 */
extern struct pt_regs host_here;
extern const char *host_wait_name;
extern u64 host_wait_addr;
#define os_regs_here(regs)   (*(regs) = host_here)
#define os_wait_name(task)   host_wait_name
#define os_wait_addr(task)   host_wait_addr
#define OS_CHILD_WAIT	     "child"
#define os_is_end_wait(name) (!strcmp(name, OS_CHILD_WAIT))
#define os_in_scheduler(pc)  ((pc) >> 8 == 0xffffffff810000 || os_in_lock(pc))
#define os_in_lock(pc)	     ((pc) >> 8 == 0xffffffff810009)
/* The only task that is off its CPU, or NULL, and where it sleeps. */
extern const struct task *host_sleeper;
extern bool host_sleeper_asleep;
extern u64 host_sleeper_pc;
struct task *os_task_of(const struct profile_task *pt);
#define os_task_cpu(task)		 ((void)(task), 0u)
#define os_task_is_off_cpu(task, asleep) (*(asleep) = host_sleeper_asleep, (task) == host_sleeper)
#define os_sleeper_syscall(task)	 host_syscall
#define os_sleeper_stack(task, pcs, max) ((pcs)[0] = host_sleeper_pc, 1)
#define OS_NR_FAULT_KINDS		 2
#define OS_FAULT_KINDS			 "anonymous", "file"
#define os_process_faults(proc)		 ((void)(proc), (const u64[]){ 5, 2 })
#define os_task_faults(task)		 ((void)(task), (const u64[]){ 3, 0 })
#define OS_NR_SIGNAL_KINDS		 32
#define OS_NR_SIGNAL_FATES		 2
#define OS_SIGNAL_FATES			 "handled", "ignored"
struct os_signal_counts {
	u64 kinds[OS_NR_SIGNAL_KINDS], fates[OS_NR_SIGNAL_FATES];
};
extern struct os_signal_counts host_signals; /* of each process, and of all */
#define os_read_signals(proc, counts) ((void)(proc), (void)(*(counts) = host_signals))
#define OS_NR_MEMORY_KINDS	      3
#define OS_MEMORY_KINDS		      "heap", "stacks", "files"
extern u64 host_peak_bytes[OS_NR_MEMORY_KINDS];
#define os_process_peak(proc, bytes) memcpy(bytes, host_peak_bytes, sizeof(host_peak_bytes))
#define os_process_copied_bytes	     host_copied_bytes
u64 host_copied_bytes(const struct process *proc);
bool os_stack_matches_kernel(const struct pt_regs *regs, const u64 *pcs, u32 nr);
bool os_stack_matches_callers(const struct pt_regs *regs, const u64 *pcs, u32 nr);
#define os_stack_matches_frameless(regs, pcs, nr, replayable) os_stack_matches_kernel(regs, pcs, nr)
#define os_stack_matches_path(regs, pcs, nr, end)	      false
bool os_stack_matches_user(const struct pt_regs *regs, const u64 *pcs, u32 nr,
			   enum profile_stack_truncation end);
extern u64 host_memory_bytes;
#define os_memory_bytes() host_memory_bytes

/* Areas of an address space, and files, as tests define them. */
typedef struct host_file_data {
	const char *path;
	const void *data;
	u64 bytes;
	u64 changed_ns;
} os_file_t;
struct vma {
	u64 start, end;
	os_file_t *file;
	u64 file_offset;
	bool is_code;
};
#define os_area_is_code(area)	       ((area)->is_code)
#define os_area_start(area)	       ((area)->start)
#define os_area_end(area)	       ((area)->end)
#define os_area_file(area)	       ((area)->file)
#define os_area_file_offset(area)      ((area)->file_offset)
#define os_file_bytes(file)	       ((file)->bytes)
#define os_file_changed_ns(file)       ((file)->changed_ns)
#define os_file_version(file)	       ((void)(file), host_file_version)
#define os_file_path(file, buf, size)  ((void)(buf), (file)->path)
#define os_file_read(file, buf, n, at) host_file_data_read(file, buf, n, at)
ssize_t host_file_data_read(const os_file_t *file, void *buf, size_t n, u64 at);
extern os_file_t *host_file_to_open;
extern u64 host_file_version;
#define os_file_open(path)  host_file_open(path)
#define os_file_close(file) ((void)(file))
os_file_t *host_file_open(const char *path);
extern int host_nr_key_changes;
#define os_change_task_keys() ((void)host_nr_key_changes++)

/* One timer for all CPUs, set by CPU 0, and one NMI timer; NULL: no NMI timer. */
extern u64 host_timer_deadline;
void host_timer_rearm(void);
#define os_timer_deadline() host_timer_deadline
#define os_timer_rearm()    host_timer_rearm()
void os_wait_for_interrupt(bool halt);
extern const char *host_nmi_timer;
extern u32 host_nmi_hz; /* 0: stopped */
extern int host_nr_nmis_sent;
#define OS_HAS_NMIS 1
const char *os_nmi_start(u32 hz, bool *jitter, bool *moves);
u64 os_nmi_slots(void);
extern int host_nr_nmis_moved;
#define os_nmi_move(random) ((void)(random), (void)host_nr_nmis_moved++)
#define os_nmi_stop()	    ((void)(host_nmi_hz = 0))
#define os_nmi_send()	    ((void)host_nr_nmis_sent++)
extern bool host_counts_instructions;
#define os_clock_counts_instructions() host_counts_instructions
#define os_cycles_per_second()	       1000000000ul
#define os_irq_save()		       0ul
#define os_irq_restore(flags)	       ((void)(flags))
void os_run_on_all_cpus(void (*fn)(void *unused));
#define os_run_on_boot_cpu(fn) fn(NULL)

void *os_zalloc(size_t size);
void *os_alloc(size_t size);
void os_free(void *ptr);

typedef pthread_mutex_t os_lock_t;
#define OS_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
extern void (*host_on_lock)(os_lock_t *lock); /* called before a lock is taken, if not NULL */
unsigned long os_lock(os_lock_t *lock);	      /* fails the test in a panic */
#define os_unlock(lock, flags) ((void)(flags), (void)pthread_mutex_unlock(lock))
void os_relax_and_yield(void);
extern bool host_panicking;
#define os_panicking() host_panicking

/* Locks record no owner: if trylock succeeds, the lock was not held. */
void host_assert(bool ok, const char *file, int line, const char *what);
bool host_is_held(os_lock_t *lock);
#define os_assert(cond)		    host_assert(cond, __FILE__, __LINE__, #cond)
#define os_assert_held(lock)	    os_assert(host_is_held(lock))
#define os_assert_irqs_off()	    ((void)0)
#define os_assert_process_context() ((void)0)

/*
 * strace trace output: the arguments of a call, and user memory, of which only a range is readable.
 * The test that uses them implements them.
 */
#include <generated/syscalls.h>
#define OS_SYSCALL_DECODE_LIST(X) SYSCALL_DECODE_LIST(X)
bool os_syscall_args(u64 *args);
int os_copy_from_user(void *dst, u64 addr, size_t n);
long os_copy_string_from_user(char *dst, u64 addr, size_t size);
void os_sleep_ms(u32 ms);
#define os_syscall_sp()	 (0x7000ull)
#define os_realtime_ns() (1700000000ull * 1000000000 + host_now)
#define os_may_yield()	 ((void)0)

/* Files, sysrq keys in a section, and workers that run in host_run_workers(). */
typedef struct {
	char buf[1 << 16];
	size_t len;
} os_text_t;
void os_text_vprintf(os_text_t *text, const char *fmt, va_list args);
bool os_text_append(os_text_t *text, const void *bytes, size_t nr);
void os_text_stream(os_text_t *text, bool (*more)(os_text_t *text, void *data),
		    void (*end)(void *data), void *data);
int os_add_file(const char *path, const char *accepts,
		int (*show)(os_text_t *text, const void *arg), const void *arg,
		int (*write)(const char *text));
#define os_add_exclusive_file(path, accepts, show, arg, write, close) \
	((void)(close), os_add_file(path, accepts, show, arg, write))
int os_add_process_file(const char *name, const char *accepts,
			int (*show)(os_text_t *text, struct process *proc),
			int (*write)(const char *text, struct process *proc));

/* Events: host_trace_file() finds files of /sys/kernel/tracing by path. */
typedef struct {
	const char *path, *accepts;
	int (*show)(os_text_t *text, const void *arg);
	int (*write)(const char *text, const void *arg);
	int (*truncate)(const void *arg);
	bool (*next)(os_text_t *text, const void *arg, bool waits);
	bool (*ready)(const void *arg);
	const void *arg;
} os_trace_file_t;
int os_add_trace_file(const os_trace_file_t *file);
const char *os_syscall_params(u64 nr); /* of four calls */
extern u8 host_trace_flags;
#define OS_MAX_TID	       32768
#define os_trace_flags()       host_trace_flags
#define os_task_priority(task) ((void)(task), 120)
#define os_task_state(task)    ((void)(task), 1)
#define os_visit_tasks(fn)     fn(host_current)
#define os_signal_code(info)   ((void)(info), 0x80)

/* Functions: only tests call the hooks. */
typedef void os_function_hook_t(void);
#define os_function_general_hook       NULL
#define os_function_calls_set(hook_of) ((void)(hook_of), host_now += host_patching, 0)
#define os_function_self()	       host_function_thread
extern struct profile_function_thread *host_function_thread;
extern u64 host_patching; /* how long it takes to patch all functions */

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
bool os_symbol_lookup(u64 addr, u64 *start, char *name, size_t size);
bool os_symbol_range(const char *name, u64 *start, u64 *bytes);
#define os_symbol_range os_symbol_range

/* Used memory: only the test of it has address spaces. */
typedef struct host_mm os_mm_t;
struct profile_user_range;
os_mm_t *os_mm_get(struct process *proc);
#define os_mm_put(mm) ((void)(mm))
u32 os_mm_ranges(os_mm_t *mm, struct profile_user_range *ranges, u32 max);
u64 os_mm_count_pages(os_mm_t *mm, u64 start, u64 end);
#define os_mm_begin(mm) ((void)(mm), true)
#define os_mm_end(mm)	((void)(mm))
bool os_mm_clear_used(os_mm_t *mm, u64 *addr, u64 end, bool *flush);
u32 os_mm_use(os_mm_t *mm, u64 addr);
u32 os_mm_flush(os_mm_t *mm);
u32 os_mm_physical(os_mm_t *mm, u64 *addr, u64 end, u64 *pages, u32 max);
bool os_ram_next(u64 *start, u64 *end, u32 *node);
#define os_mm_get	  os_mm_get
#define os_mm_ranges	  os_mm_ranges
#define os_mm_count_pages os_mm_count_pages
#define os_mm_clear_used  os_mm_clear_used
#define os_mm_use	  os_mm_use
#define os_mm_flush	  os_mm_flush
#define os_mm_physical	  os_mm_physical
#define os_ram_next	  os_ram_next

/* These are functions. */
#define os_vprintk		 os_vprintk
#define os_task_profile		 os_task_profile
#define os_task_process		 os_task_process
#define os_process_profile	 os_process_profile
#define os_process_of		 os_process_of
#define os_process_pid		 os_process_pid
#define os_process_name		 os_process_name
#define os_regs_pc		 os_regs_pc
#define os_regs_user		 os_regs_user
#define os_regs_sp		 os_regs_sp
#define os_regs_irqs_off	 os_regs_irqs_off
#define os_process_mapping	 os_process_mapping
#define os_stack_walk		 os_stack_walk
#define os_task_of		 os_task_of
#define os_stack_matches_kernel	 os_stack_matches_kernel
#define os_stack_matches_callers os_stack_matches_callers
#define os_stack_matches_user	 os_stack_matches_user
#define os_wait_for_interrupt	 os_wait_for_interrupt
#define os_nmi_start		 os_nmi_start
#define os_nmi_slots		 os_nmi_slots
#define os_run_on_all_cpus	 os_run_on_all_cpus
#define os_zalloc		 os_zalloc
#define os_alloc		 os_alloc
#define os_free			 os_free
#define os_lock			 os_lock
#define os_relax_and_yield	 os_relax_and_yield
#define os_syscall_args		 os_syscall_args
#define os_copy_from_user	 os_copy_from_user
#define os_copy_string_from_user os_copy_string_from_user
#define os_sleep_ms		 os_sleep_ms
#define os_text_vprintf		 os_text_vprintf
#define os_text_stream		 os_text_stream
#define os_text_append		 os_text_append
#define os_add_file		 os_add_file
#define os_add_process_file	 os_add_process_file
#define os_add_trace_file	 os_add_trace_file
#define os_worker_start		 os_worker_start
#define os_worker_wake		 os_worker_wake
#define os_syscall_name		 os_syscall_name
#define os_syscall_params	 os_syscall_params
#define os_symbol_lookup	 os_symbol_lookup

#ifdef CONFIG_PROFILE_MEMORY
/* As if classes of kmalloc were powers of two. */
extern u64 host_page_bytes, host_kmalloc_bytes;
#define os_page_bytes_live()	     host_page_bytes
#define os_kmalloc_bytes_live()	     host_kmalloc_bytes
#define os_kmalloc_class_size(class) (16ull << (class))

/* As if each kind but files were mapped. The numbers of chains are kept in host_kept. */
#define OS_MAX_PAGE_CHAINS	       128
#define os_memory_kind_is_mapped(kind) ((kind) < 2)
bool host_process_pages(os_process_t *proc, u64 pass, u64 *addr, u16 *chains, u32 *nr);
#define os_process_pages host_process_pages
#endif
#define OS_PAGE_BYTES 4096ull

#endif
