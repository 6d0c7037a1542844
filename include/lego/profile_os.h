/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROFILE_OS_H
#define LEGO_PROFILE_OS_H

/* This kernel's answers to kernel/profile/os.h and to the os.h of each profiler's folder. */

#include <asm/desc.h>
#include <asm/cpufeature.h>
#include <asm/irqflags.h>
#include <asm/nmi_sampler.h>
#include <asm/processor.h>
#include <asm/stack_match.h>
#include <asm/stacktrace.h>
#include <asm/tick.h>
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/irq.h>
#include <lego/kallsyms.h>
#include <lego/leak.h>
#include <lego/math64.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/params.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/procfs.h>
#include <lego/random.h>
#include <profile/profile.h>
#include <profile/abi.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/sort.h>
#include <lego/spinlock.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/sysrq.h>
#include <lego/time.h>
#include <lego/uaccess.h>
#include <lego/worker.h>
#ifdef CONFIG_PROFILE_FUNCTIONS
#include <asm/function_hook.h>
#endif

#define OS_EINVAL	EINVAL
#define OS_ENOMEM	ENOMEM
#define OS_EBUSY	EBUSY
#define OS_ENAMETOOLONG ENAMETOOLONG

/* Text and numbers. */
#define os_vprintk(fmt, args)		   vprintk(fmt, args)
#define os_vsnprintf(buf, size, fmt, args) vsnprintf(buf, size, fmt, args)
#define os_strscpy(dst, src, size)	   strscpy(dst, src, size)

#define os_sort(base, nr, size, compare)      sort(base, nr, size, compare)
#define os_mul_div_u64(a, b, c)		      mul_div_u64(a, b, c)
#define os_parse_u64(text, value)	      parse_u64(text, value)
#define os_glob_match(glob, text)	      glob_match(glob, text)
#define os_glob_match_list(globs, text)	      glob_match_list(globs, text)
#define OS_BOOT_PARAM(ident, name, form, set) BOOT_PARAM(ident, name, form, set)

#define os_for_each_cpu(cpu) for_each_possible_cpu(cpu)
#define os_cpu_relax()	     cpu_relax()

/* Tasks and processes. */
#define os_task_exec_cycles(pt) \
	task_exec_cycles((struct task *)container_of(pt, struct task, profile))

#define os_task_profile(task)	     (&(task)->profile)
#define os_task_process(task)	     ((task)->proc)
#define os_process_profile(proc)     (&(proc)->profile)
#define OS_ZEROES_PROFILES	     1
#define os_process_of(pp)	     container_of(pp, struct process, profile)
#define os_task_of(pt)		     container_of(pt, struct task, profile)
#define os_process_pid(proc)	     ((proc)->pid)
#define os_process_name(proc)	     ((const char *)(proc)->comm)
#define os_process_comm(proc, words) ((void)__builtin_memcpy(words, (proc)->comm, 2 * sizeof(u64)))

#define OS_NR_FAULT_KINDS	NR_FAULT_KINDS
#define OS_FAULT_KINDS		"spurious", "anonymous", "file", "copied"
#define os_process_faults(proc) ((const u64 *)(proc)->exited_faults.nr)
#define os_task_faults(task)	((const u64 *)(task)->faults.nr)

#define OS_NR_SIGNAL_KINDS	      NR_SIGNAL_KINDS
#define OS_NR_SIGNAL_FATES	      NR_SIGNAL_FATES
#define OS_SIGNAL_FATES		      "handled", "waited for", "ignored", "stopped it", "fatal"
#define os_signal_counts	      signal_counts
#define os_read_signals(proc, counts) signal_read_counts(proc, counts)

#define OS_NR_MEMORY_KINDS	     NR_MM_KINDS
#define OS_MEMORY_KINDS		     MM_KIND_NAMES
#define os_process_peak(proc, bytes) process_get_peak(proc, bytes)

static inline u64 os_process_copied_bytes(const struct process *proc)
{
	return proc->mm && proc->mm != current->mm ? READ_ONCE(proc->mm->nr_pages) * PAGE_SIZE : 0;
}
#define os_process_copied_bytes os_process_copied_bytes

#define os_process_age_ns(proc)	     (clock_monotonic_ns() - (proc)->start_ns)
#define os_process_wait_status(proc) ((u32)READ_ONCE((proc)->exit_status))

#define os_cpu_online(cpu) cpu_online(cpu)

/* The code that an interrupt has hit. */
#define os_regs_pc(regs)   instruction_pointer(regs)
#define os_regs_user(regs) user_mode(regs)
#define os_regs_sp(regs)   ((regs)->rsp)
#define os_irq_depth()	   irq_depth()

#define os_regs_irqs_off(regs) irqs_disabled_flags((regs)->rflags)
#define os_current_task()      current
#define os_task_idle(task)     ((task)->pid == 0)
#define os_task_tid(task)      ((u32)(task)->pid)
#define OS_MAX_TID	       ((u32)PID_MAX)
#define os_task_pid(task)      ((u32)(task)->process_pid)

static __always_inline u8 os_trace_flags(void)
{
	u8 irqs_off = irqs_disabled();

	_Static_assert(PROFILE_TRACE_IRQS_OFF == 1 && PROFILE_TRACE_HARDIRQ == HARDIRQ_OFFSET &&
			       PROFILE_TRACE_NMI == NMI_OFFSET,
		       "the bits are those of irq_context");
	/* Neither handlers of interrupts nor those of NMIs nest: both depths are 0 or 1. */
	return this_cpu_plus(*(u8 *)&irq_context, irqs_off);
}
#define os_trace_flags os_trace_flags

static inline s32 os_task_priority(const struct task *task)
{
	if (task->rt_priority)
		return 99 - task->rt_priority;
	return 120 + (task->proc ? task->proc->nice : 0);
}
#define os_task_priority os_task_priority

static inline u32 os_task_state(const struct task *task)
{
	switch (task->state) {
	case TASK_RUNNING:
		return 0;
	case TASK_INTERRUPTIBLE:
		return 1;
	case TASK_STOPPED:
		return 4;
	case TASK_DEAD:
		return 16;
	default:
		return 2;
	}
}
#define os_task_state os_task_state

#define os_signal_code(info) ((info) ? (info)->si_code : SI_KERNEL)

#define os_visit_tasks(fn) task_for_each(fn)

#define os_task_key(task) ((task)->profile.samples.key)
#ifdef CONFIG_PROFILE_HEATMAP
static inline u64 os_live_key_floor(u32 pid)
{
	struct process *proc = process_find(pid);
	u64 floor = ~0ul;

	if (proc && (u32)proc->pid == pid && !READ_ONCE(proc->reported))
		floor = proc->profile.samples.key_floor;
	if (proc)
		process_put(proc);
	return floor;
}
#define os_live_key_floor os_live_key_floor
#endif
#define os_process_program(proc) ((proc)->nr_execs)
#define os_current_tid()	 os_task_tid(current)
#define os_current_pid()	 os_task_pid(current)
static __always_inline void os_task_comm(const struct task *task, u64 *words)
{
	__builtin_memcpy(words, task->comm, 2 * sizeof(u64));
}
#define os_task_comm os_task_comm

#define os_task_syscall(task, regs) task_syscall(task, regs)
#define os_user_regs(task)	    task_pt_regs(task)
#define OS_NO_SYSCALL		    NO_SYSCALL
#define os_same_words(a, b, nr)	    same_words(a, b, nr)
/* Call chains. */
#define os_stack_walk_init()			   stack_walk_init()
#define os_stack_walk(regs, pcs, max)		   stack_walk(regs, pcs, max)
#define os_stack_matches_kernel(regs, pcs, nr)	   stack_matches_kernel(regs, pcs, nr)
#define os_stack_matches_callers(regs, pcs, nr)	   stack_matches_callers(regs, pcs, nr)
#define os_stack_matches_here(task, regs, pcs, nr) stack_matches_here(task, regs, pcs, nr)
#define os_stack_matches_frameless(regs, pcs, nr, replay) \
	stack_matches_frameless(regs, pcs, nr, replay)
#define os_stack_matches_user(regs, pcs, nr, end) stack_matches_user(regs, pcs, nr, end)
#define os_stack_matches_path(regs, pcs, nr, end) stack_matches_path(regs, pcs, nr, end)

/* Timers: <asm/nmi_sampler.h> describes the second one. */
#define os_timer_deadline()		this_cpu_read(timer_deadline)
#define os_timer_rearm()		timer_rearm()
#define OS_HAS_NMIS			1
#define os_nmi_start(hz, jitter, moves) nmi_sampler_start(hz, jitter, moves)
#define os_nmi_slots()			nmi_sampler_slots()
#define os_nmi_move(random)		nmi_sampler_move(random)
#define os_nmi_stop()			nmi_sampler_stop()
#define os_nmi_send()			nmi_sampler_send()

/* Functions: <asm/function_hook.h>. */
typedef function_hook_t os_function_hook_t;
#define os_function_general_hook       function_call
#define os_function_calls_set(hook_of) function_calls_set(hook_of)
#define os_nr_functions()	       function_nr_places()
#define os_function(i)		       function_place(i)
#define os_function_index(addr)	       ((addr) / FUNCTION_ALIGN % OS_NR_FUNCTION_INDICES)
#define OS_NR_FUNCTION_INDICES	       (MAX_TEXT / FUNCTION_ALIGN)

#define os_function_hook     __function_hook
#define os_function_hooked() function_hooked()
/* The address behind the place will do: both are in the same unit. */
#define os_function_hooked_index() os_function_index(function_hook_slot()[-1])
#define os_function_caller()	   function_hook_caller()
#define os_function_in_nmi()	   in_nmi()
#define os_function_enter()	   function_hook_leave()
#define os_function_thread()                                           \
	({                                                             \
		struct function_stack *_stack = function_hook_stack(); \
		_stack ? &_stack->thread : NULL;                       \
	})
#define os_function_stack(of)	 container_of(of, struct function_stack, thread)
#define os_function_frame(of)	 container_of(of, struct function_frame, call)
#define os_function_push(thread) (&function_stack_push(os_function_stack(thread))->call)
#define os_function_pop(thread)	 function_stack_pop(os_function_stack(thread))
#define os_function_tell_end(call) \
	function_tell_end(os_function_frame(call), function_hook_slot(), (u64)function_graph_return)
#define os_function_current()	      (&current->thread.functions->thread)
#define os_function_self()	      (current->thread.functions ? os_function_current() : NULL)
#define os_function_end(thread, slot) (&function_end(os_function_stack(thread), slot)->call)
#define os_function_parent(call)      (&os_function_frame(call)[-1].call)

#define os_run_on_all_cpus(fn) smp_call_mask(cpu_online_mask, fn, NULL)
#define os_run_on_boot_cpu(fn) smp_call_mask(BIT(0), fn, NULL)

static inline void os_wait_for_interrupt(bool halt)
{
	if (halt) {
		local_irq_disable();
		cpu_wait_for_interrupt();
	} else {
		cpu_relax();
	}
}
#define os_wait_for_interrupt os_wait_for_interrupt

#define os_irq_save()		       local_irq_save()
#define os_irq_restore(flags)	       local_irq_restore(flags)
#define os_clock_counts_instructions() tsc_counts_instructions()
#define os_cycles_per_second()	       (tsc_khz * 1000)

#define os_cycles_to_ns(cycles) cycles_to_ns(cycles)

#define os_drop_fences() point_clock_drop_fences()

#define OS_HAS_CPU_TIMES IS_ENABLED(CONFIG_CPU_ACCOUNTING)

static inline void add_cpu_times(struct profile_cpu_times *times, const struct cputime *from)
{
	times->user += from->cycles[CPUTIME_USER];
	times->calls += from->cycles[CPUTIME_SYSTEM];
	times->faults += from->cycles[CPUTIME_FAULT];
	times->exceptions += from->cycles[CPUTIME_EXCEPTION];
	times->irqs += from->cycles[CPUTIME_IRQ] + from->cycles[CPUTIME_NMI];
}

static inline void os_process_cpu_times(struct process *proc, struct profile_cpu_times *times)
{
	const struct group_account *group = &proc->group;
	u64 events[NR_CPU_EVENTS];
	struct cputime time;
	unsigned long flags;

	/* All threads have ended. The last one took the lock when it left: it saw all sums. */
	if (!__atomic_load_n(&proc->nr_threads, __ATOMIC_ACQUIRE) && group->has_begun &&
	    !group->cpus) {
		time = group->sums.time;
		cputime_add_rest(&time, group->sums.exec_cycles);
	} else {
		flags = spin_lock_irqsave(&proc->lock);
		time = process_cputime(proc, events);
		spin_unlock_irqrestore(&proc->lock, flags);
	}
	add_cpu_times(times, &time);
}
#define os_process_cpu_times os_process_cpu_times

static inline void os_machine_times(struct profile_machine_times *times)
{
	struct cputime_machine machine;

	*times = (struct profile_machine_times){ 0 };
	cputime_of_machine(&machine);
	add_cpu_times(&times->threads, &machine.all);
	times->nr_cpus = machine.nr_cpus;
	times->nmis = machine.all.cycles[CPUTIME_NMI];
	times->threads.irqs -= times->nmis;
	times->threads.calls -= machine.idle_cycles + machine.kernel_thread_cycles;
	times->kernel_threads = machine.kernel_thread_cycles;
	times->reports = machine.all.cycles[CPUTIME_REPORT];
	times->ends_of_threads = machine.all.cycles[CPUTIME_EXIT];
	times->idle = machine.idle_cycles;
}
#define os_machine_times os_machine_times

#define os_begin_report()    cputime_set_owner(CPUTIME_REPORT)
#define os_end_report(owner) cputime_set_owner(owner)

/* os_alloc() and os_zalloc() are macros: the profiler of memory tells their callers apart. */
static inline void *profile_count_alloc(void *ptr)
{
	if (ptr)
		leak_count(LEAK_PROFILE, 1);
	return ptr;
}
#define os_zalloc(size) profile_count_alloc(kzalloc(size))
#define os_alloc(size)	profile_count_alloc(kmalloc(size))

static inline bool os_process_mapping(struct process *proc, u64 addr, char *path, size_t size,
				      u64 *offset)
{
	struct mm *mm = process_get_mm(proc);
	struct mm_area_info area;
	bool found = false;

	if (!mm)
		return false;
	if (!mm_get_areas(mm, addr, &area, 1))
		goto out;
	found = area.file && area.start <= addr;
	if (found) {
		const char *name = file_path(area.file, path, size);

		memmove(path, name, strlen(name) + 1);
		*offset = addr - area.start + area.file_offset;
	}
	mm_put_areas(&area, 1);
out:
	mm_put(mm);
	return found;
}
#define os_process_mapping os_process_mapping

/* Images. */
typedef struct file os_file_t;
#define os_area_start(area)		((area)->start)
#define os_area_end(area)		((area)->end)
#define os_area_file(area)		((area)->file)
#define os_area_file_offset(area)	((area)->file_offset)
#define os_file_bytes(file)		file_size_bytes(file)
#define os_file_changed_ns(file)	file_changed_ns(file)
#define os_file_version(file)		file_version(file)
#define os_file_path(file, buf, size)	file_path(file, buf, size)
#define os_file_read(file, buf, n, pos) file_read_at(file, buf, n, pos)
#define os_file_close(file)		file_put(file)

static inline struct file *os_file_open(const char *path)
{
	struct file *file;

	if (in_irq() || in_nmi() || irqs_disabled() || path[0] != '/')
		return NULL;
	file = file_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (IS_ERR(file))
		return NULL;
	if (file_is_regular(file))
		return file;
	file_put(file);
	return NULL;
}
#define os_file_open os_file_open

#define os_change_task_keys() process_change_task_keys()

static inline u32 os_task_code_map(const struct task *task)
{
	/* A thread that has left its address space may outlive it. */
	const struct mm *mm = task->proc && task->mm ? READ_ONCE(task->proc->mm) : NULL;

	return mm ? profile_code_map(&mm->profile) : 0;
}
#define os_task_code_map os_task_code_map

static inline u32 os_process_code_map(struct process *proc)
{
	struct mm *mm = process_get_mm(proc);
	u32 number = mm ? profile_code_map(&mm->profile) : 0;

	if (mm)
		mm_put(mm);
	return number;
}
#define os_process_code_map os_process_code_map

#define os_physical_address(ptr) virt_to_phys(ptr)

#define os_build_id(text, size) kernel_build_id(text, size)

static inline u64 os_random(void)
{
	u64 number;

	random_bytes(&number, sizeof(number));
	return number;
}
#define os_random os_random

#define os_memory_bytes() (page_nr_total() * PAGE_SIZE)

#define os_page_bytes_live()	     ((page_nr_total() - page_nr_free()) * PAGE_SIZE)
#define os_kmalloc_bytes_live()	     slab_bytes_live()
#define os_kmalloc_class_size(class) slab_class_size(class)
#define OS_PAGE_BYTES		     PAGE_SIZE

#define OS_MAX_PAGE_CHAINS	       2048 /* see pte_chain() */
#define os_memory_kind_is_mapped(kind) ((kind) < NR_MM_AREA_KINDS)
#define os_process_pages(proc, pass, addr, chains, nr) \
	process_read_chains(proc, pass, addr, chains, nr)

static inline bool os_is_allocator(const char *function)
{
	static const char *const names[] = { "page_alloc",  "page_alloc_slow", "cpu_fill",
					     "alloc_large", "slab_alloc",      "kmalloc",
					     "kzalloc",	    "kstrdup",	       "kfree",
					     "slab_free",   "page_free",       "page_free_slow" };

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(function, names[i]))
			return true;
	}
	return false;
}
#define os_is_allocator os_is_allocator

static inline void os_free(void *ptr)
{
	if (ptr)
		leak_count(LEAK_PROFILE, -1);
	kfree(ptr);
}
#define os_free os_free

/* Used memory. */
typedef struct mm os_mm_t;
/* Returns NULL if the last thread of the process is leaving: it may have dropped the pages. */
static inline struct mm *os_mm_get(struct process *proc)
{
	return READ_ONCE(proc->nr_staying) ? process_get_mm(proc) : NULL;
}
#define os_mm_get				  os_mm_get
#define os_mm_put(mm)				  mm_put(mm)
#define os_mm_ranges(mm, ranges, max)		  mm_get_ranges(mm, ranges, max)
#define os_mm_count_pages(mm, start, end)	  mm_count_pages(mm, start, end)
#define os_mm_begin(mm)				  mm_begin_accessed(mm)
#define os_mm_end(mm)				  mm_end_accessed(mm)
#define os_mm_clear_used(mm, addr, end, flush)	  mm_clear_accessed(mm, addr, end, flush)
#define os_mm_use(mm, addr)			  mm_page_use(mm, addr)
#define os_mm_flush(mm)				  mm_flush_accessed(mm)
#define os_mm_physical(mm, addr, end, pages, max) mm_copy_physical(mm, addr, end, pages, max)
#define os_ram_next(start, end, node)		  ram_next(start, end, node)

/* Locks. */
typedef spinlock_t os_lock_t;
#define OS_LOCK_INIT	       SPINLOCK_INIT
#define os_lock(lock)	       spin_lock_irqsave(lock)
#define os_unlock(lock, flags) spin_unlock_irqrestore(lock, flags)

static inline void os_relax_and_yield(void)
{
	cpu_relax();
	cond_resched();
}
#define os_relax_and_yield os_relax_and_yield

#define os_panicking() panic_in_progress()

/* Waits. */
#define os_wait_name(task)    ((task)->wait_name)
#define os_wait_addr(task)    ((task)->wait_addr)
#define os_woken_cycles(task) ((task)->ready_since_cycles)
#define OS_CHILD_WAIT	      "proc->child_wait"

static inline bool os_is_end_wait(const char *name)
{
	return !strcmp(name, OS_CHILD_WAIT) || !strcmp(name, "proc->exit_wait") ||
	       !strcmp(name, "exit of a thread");
}
#define os_is_end_wait os_is_end_wait

static inline bool os_task_is_off_cpu(struct task *task, bool *asleep)
{
	if (!panic_in_progress())
		return task_is_off_cpu(task, asleep);
	*asleep = task->state != TASK_RUNNING;
	return !task->on_cpu;
}
#define os_task_is_off_cpu		 os_task_is_off_cpu
#define os_task_cpu(task)		 READ_ONCE((task)->cpu)
#define os_sleeper_syscall(task)	 sleeper_syscall(task)
#define os_sleeper_stack(task, pcs, max) stack_walk_sleeper(task, pcs, max)

static __always_inline void os_regs_here(struct pt_regs *regs)
{
	const u64 *frame = __builtin_frame_address(0);

	regs->rbp = frame[0];
	regs->rip = stack_return_address(current, &frame[1]);
	regs->rsp = (u64)(frame + 2);
	regs->cs = KERNEL_CS;
	/* Entry code calls no function that calls this, so task_syscall() need not look. */
	if (regs->rip < entry_marks.entry_end)
		__builtin_unreachable();
}
#define os_regs_here os_regs_here

static inline bool os_in_scheduler(u64 pc)
{
	extern char __sched_text_start[], __sched_text_end[];

	return pc - (u64)__sched_text_start < (u64)(__sched_text_end - __sched_text_start);
}
#define os_in_scheduler os_in_scheduler

static inline bool os_in_lock(u64 pc)
{
	extern char __lock_text_start[], __lock_text_end[];

	return pc - (u64)__lock_text_start < (u64)(__lock_text_end - __lock_text_start);
}
#define os_in_lock os_in_lock

#define os_syscall_name(nr)   syscall_name(nr)
#define os_syscall_params(nr) syscall_params(nr)

static inline bool os_symbol_lookup(u64 addr, u64 *start, char *name, size_t size)
{
	const char *found = kallsyms_lookup(addr, start, NULL);

	if (found && name)
		strscpy(name, found, size);
	return found;
}
#define os_symbol_lookup os_symbol_lookup

#define os_assert(cond)		    DEBUG_ASSERT(cond)
#define os_assert_held(lock)	    ASSERT_HELD(lock)
#define os_assert_irqs_off()	    ASSERT_IRQS_OFF()
#define os_assert_process_context() ASSERT_PROCESS_CONTEXT()

#define os_symbol_range(name, start, bytes) kallsyms_find(name, start, bytes)

#define OS_SYSCALL_DECODE_LIST(X) SYSCALL_DECODE_LIST(X)

static inline bool os_syscall_args(u64 *args)
{
	const struct pt_regs *regs = task_pt_regs(current);

	args[0] = regs->rdi;
	args[1] = regs->rsi;
	args[2] = regs->rdx;
	args[3] = regs->r10;
	args[4] = regs->r8;
	args[5] = regs->r9;
	return user_mode(regs);
}
#define os_syscall_args os_syscall_args

#define os_syscall_sp()	 (task_pt_regs(current)->rsp)
#define os_realtime_ns() clock_realtime_ns() /* since 1970 */

static inline int os_copy_from_user(void *dst, u64 addr, size_t n)
{
	return copy_from_user(dst, (const void __user *)addr, n);
}
#define os_copy_from_user os_copy_from_user

static inline long os_copy_string_from_user(char *dst, u64 addr, size_t size)
{
	return strncpy_from_user(dst, (const char __user *)addr, size);
}
#define os_copy_string_from_user os_copy_string_from_user

#define os_may_yield() cond_resched()

static inline void os_sleep_ms(u32 ms)
{
	WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
	schedule_timeout_ns(ms * NSEC_PER_MSEC);
}
#define os_sleep_ms os_sleep_ms

/* Controls. */
typedef struct text os_text_t;
#define os_text_vprintf(text, fmt, args)	     text_vprintf(text, fmt, args)
#define os_text_stream(text, more, end, data)	     text_stream(text, more, end, data)
#define os_text_append(text, bytes, nr)		     (text_append(text, bytes, nr), !(text)->failed)
#define os_add_file(path, accepts, show, arg, write) proc_add_file(path, accepts, show, arg, write)
#define os_add_exclusive_file(path, accepts, show, arg, write, close) \
	proc_add_exclusive_file(path, accepts, show, arg, write, close)
#define os_add_process_file(name, accepts, show, write) \
	proc_add_process_file(name, accepts, show, write)
typedef struct tracefs_file os_trace_file_t;
#define os_add_trace_file(file)		       tracefs_add_file(file)
#define os_add_trace_directory(path, fill)     tracefs_add_directory(path, fill)
#define os_fill_trace_file(file)	       tracefs_fill_file(file)
#define OS_SYSRQ_KEY(ident, letter, help, run) SYSRQ_KEY_THREAD(ident, letter, help, run)
#define OS_WORKER(ident, fn)		       struct worker ident = WORKER_INIT(ident, fn)
#define os_worker_start(worker, name)	       worker_start(worker, name)
#define os_worker_wake(worker)		       worker_wake(worker)

#endif
