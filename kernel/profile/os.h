/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_H
#define PROFILE_OS_H

/*
 * The interface to the kernel, part two: together with os_hooks.h, everything that this folder
 * needs from a kernel. Another kernel, or a unit test, supplies the same names in a header of its
 * own, which PROFILE_OS_HEADER names. Everything else is plain C (with memset, memcpy, memcmp,
 * strcmp, strncmp and strlen) or comes from base.h. os_none.h has defaults for what a kernel lacks.
 * porting.md is the guide.
 */

#include "os_hooks.h"

#include <lego/stack_walk.h>

#ifdef PROFILE_OS_HEADER
#include PROFILE_OS_HEADER
#else

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
#include <lego/profile.h>
#include <lego/profile_abi.h>
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

/* Errors, returned as negative numbers: invalid words, no memory, and a string that is too long. */
#define OS_EINVAL			      EINVAL
#define OS_ENOMEM			      ENOMEM
#define OS_EBUSY			      EBUSY
#define OS_ENAMETOOLONG			      ENAMETOOLONG

/* Prints one line to the log. Any context. */
#define os_vprintk(fmt, args)		      vprintk(fmt, args)
/* As in C11, with the conversions %c %d %o %s %u %x, flags, width, precision, `l` and `ll`. */
#define os_vsnprintf(buf, size, fmt, args)    vsnprintf(buf, size, fmt, args)
#define os_strscpy(dst, src, size)	      strscpy(dst, src, size)

/* Sorts in place, without allocating. */
#define os_sort(base, nr, size, compare)      sort(base, nr, size, compare)
/* Returns a * b / c, rounded down, with a product of 128 bits; ~0 if the result does not fit. */
#define os_mul_div_u64(a, b, c)		      mul_div_u64(a, b, c)
/* Parses a number. Returns 0 if the whole text is a number. */
#define os_parse_u64(text, value)	      parse_u64(text, value)
/* Returns whether text matches one of the shell patterns, which commas separate. */
#define os_glob_match(glob, text)	      glob_match(glob, text)
#define os_glob_match_list(globs, text)	      glob_match_list(globs, text)
/* Calls set(value) for a parameter name=value of the command line, before profile_init(). */
#define OS_BOOT_PARAM(ident, name, form, set) BOOT_PARAM(ident, name, form, set)

#define os_for_each_cpu(cpu) for_each_possible_cpu(cpu)
#define os_cpu_relax()	     cpu_relax()

/*
 * Returns how long any thread has been on a CPU, in cycles, since the moment of os_off_cycles(): of
 * a running thread, both sum up to os_cycles(). Unlike os_off_cycles(), it is also right while the
 * thread is off its CPU. Only if OS_HAS_EXEC_CYCLES. Any context but NMI, also in a panic.
 */
#define os_task_exec_cycles(pt) \
	task_exec_cycles((struct task *)container_of(pt, struct task, profile))

/* Tasks and processes, as the hooks get them. */
#define os_syscall_nr()		     ((u32)task_pt_regs(current)->orig_rax)
#define os_current_dying()	     (task_killed(current) && !READ_ONCE(current->took_signal))
#define os_task_profile(task)	     (&(task)->profile)
#define os_task_process(task)	     ((task)->proc)
#define os_process_profile(proc)     (&(proc)->profile)
#define os_process_of(pp)	     container_of(pp, struct process, profile)
#define os_task_of(pt)		     container_of(pt, struct task, profile)
#define os_process_pid(proc)	     ((proc)->pid)
#define os_process_name(proc)	     ((const char *)(proc)->comm)

/*
 * Page faults by kind, and the names of the kinds: those of the threads of a process that have
 * ended, and those of a thread. An array of OS_NR_FAULT_KINDS.
 */
#define OS_NR_FAULT_KINDS	     NR_FAULT_KINDS
#define OS_FAULT_KINDS		     "spurious", "anonymous", "file", "copied"
#define os_process_faults(proc)	     ((const u64 *)(proc)->exited_faults.nr)
#define os_task_faults(task)	     ((const u64 *)(task)->faults.nr)

/* Returns the most memory that the process had mapped at a time, in bytes. Any context but NMI. */
#define os_process_peak_bytes(proc)  (process_max_pages(proc) * PAGE_SIZE)

/*
 * Returns the memory that a new process has as a copy of the current one's; 0: it shares that, or
 * there is none. Only this process and its creator use it.
 */
static inline u64 os_process_copied_bytes(const struct process *proc)
{
	return proc->mm && proc->mm != current->mm ? READ_ONCE(proc->mm->nr_pages) * PAGE_SIZE : 0;
}

/*
 * Return the age of a process that ends, in ns or OS_NO_AGE, and its wait status as in wait(2) or
 * OS_NO_STATUS: bits 0 to 6 are the signal that killed it; if they are 0, the exit code begins at
 * bit 8.
 */
#define os_process_age_ns(proc)	     (clock_monotonic_ns() - (proc)->start_ns)
#define os_process_wait_status(proc) ((u32)READ_ONCE((proc)->exit_status))

#define os_cpu_online(cpu)     cpu_online(cpu)

/* Describe what a timer interrupt has hit. os_irq_depth() counts that interrupt, too. */
#define os_regs_pc(regs)       instruction_pointer(regs)
#define os_regs_user(regs)     user_mode(regs)
#define os_regs_sp(regs)       ((regs)->rsp)
#define os_irq_depth()	       irq_depth()

/* The same for any interrupt. Any context, NMI included, with interrupts off. */
#define os_regs_irqs_off(regs) irqs_disabled_flags((regs)->rflags)
#define os_current_task()      current
#define os_task_idle(task)     ((task)->pid == 0)
#define os_task_tid(task)      ((u32)(task)->pid)
/* Returns the pid of a task's process. 0: the task has none, or has left it. */
static inline u32 os_task_pid(const struct task *task)
{
	return task->proc && !READ_ONCE(task->is_gone) ? (u32)task->proc->pid : 0;
}

/*
 * Returns the context of the running code, for the common fields of events: bits of
 * PROFILE_TRACE_* (<lego/profile_abi.h>). Any context.
 */
static __always_inline u8 os_trace_flags(void)
{
	u8 irqs_off = irqs_disabled();

	_Static_assert(PROFILE_TRACE_IRQS_OFF == 1 && PROFILE_TRACE_HARDIRQ == HARDIRQ_OFFSET &&
			       PROFILE_TRACE_NMI == NMI_OFFSET,
		       "the bits are those of irq_context");
	/* Neither handlers of interrupts nor those of NMIs nest: both depths are 0 or 1. */
	return this_cpu_plus(*(u8 *)&irq_context, irqs_off);
}

/*
 * Return two fields of a task's events, in Linux's numbers: its priority, which is 120 for a nice
 * value of 0; and its state when it leaves its CPU, 0 if it could go on running, else bits of
 * TASK_* in Linux's sched.h.
 */
static inline s32 os_task_priority(const struct task *task)
{
	return 120 + (task->proc ? task->proc->nice : 0);
}

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

/* Returns where a signal comes from, as si_code of siginfo. info of NULL: from the kernel. */
#define os_signal_code(info)   ((info) ? (info)->si_code : SI_KERNEL)

/* Calls fn for all tasks except idle tasks. fn must not sleep. */
static inline void os_visit_tasks(void (*fn)(struct task *task))
{
	unsigned long flags = spin_lock_irqsave(&task_list_lock);
	struct task *task;

	list_for_each_entry(task, &task_list, all_node)
		fn(task);
	spin_unlock_irqrestore(&task_list_lock, flags);
}

/* Returns the key of a task, which changes with its name: see profile_task_changed(). */
#define os_task_key(task)      ((task)->profile.task_key)
#ifdef CONFIG_PROFILE_HEATMAP
/*
 * Returns the key_floor of the process with this number; ~0: there is none, or its report has been
 * printed. Process context.
 */
static inline u64 os_live_key_floor(u32 pid)
{
	struct process *proc = process_find(pid);
	u64 floor = ~0ul;

	if (proc && (u32)proc->pid == pid && !READ_ONCE(proc->reported))
		floor = proc->profile.key_floor;
	if (proc)
		process_put(proc);
	return floor;
}
#endif
#define os_process_program(proc)	       ((proc)->nr_execs)
#define os_current_tid()		       os_task_tid(current)
#define os_current_pid()		       os_task_pid(current)
/* Copies the task's name: 16 bytes, including a NUL. */
static __always_inline void os_task_comm(const struct task *task, u64 *words)
{
	__builtin_memcpy(words, task->comm, 2 * sizeof(u64));
}

/*
 * Returns the number of the system call that the current task is in, or OS_NO_SYSCALL. The task has
 * a user mode, and regs are not those of user mode.
 */
#define os_task_syscall(task, regs)	       task_syscall(task, regs)
/* Returns the registers with which the task entered the kernel from user mode. */
#define os_user_regs(task)		       task_pt_regs(task)
#define OS_NO_SYSCALL			       NO_SYSCALL
#define os_same_words(a, b, nr)		       same_words(a, b, nr)
/*
 * Call chains: see <lego/stack_walk.h>. Only with CONFIG_PROFILE_CALLCHAIN. os_stack_walk_init() is
 * called once, in process context; os_stack_matches_*() and os_user_regs() only if walks are
 * replayable.
 */
#define os_stack_walk_init()		       stack_walk_init()
#define os_stack_walk(regs, pcs, max)	       stack_walk(regs, pcs, max)
/* Compare a stack with a replayable walk: the kernel's part, then the user's. */
#define os_stack_matches_kernel(regs, pcs, nr) stack_matches_kernel(regs, pcs, nr)
#define os_stack_matches_frameless(regs, pcs, nr, replay) \
	stack_matches_frameless(regs, pcs, nr, replay)
#define os_stack_matches_user(regs, pcs, nr) stack_matches_user(regs, pcs, nr)
/* The user's part of a STACK_PATH. */
#define os_stack_matches_path(regs, pcs, nr) stack_matches_path(regs, pcs, nr)

/*
 * os_timer_deadline() returns the time for which the CPU's timer is set, in os_cycles(): the
 * earliest of profile_deadline and the kernel's own deadlines. os_timer_rearm() sets the timer
 * again after a change of profile_deadline; interrupts are off. <asm/nmi_sampler.h> describes
 * os_nmi_*(). Without such NMIs, os_nmi_start() returns NULL.
 */
#define os_timer_deadline()		     this_cpu_read(timer_deadline)
#define os_timer_rearm()		     timer_rearm()
#define OS_HAS_NMIS			     1
#define os_nmi_start(hz, jitter, moves)	     nmi_sampler_start(hz, jitter, moves)
#define os_nmi_slots()			     nmi_sampler_slots()
#define os_nmi_move(random)		     nmi_sampler_move(random)
#define os_nmi_stop()			     nmi_sampler_stop()
#define os_nmi_send()			     nmi_sampler_send()

/*
 * For the profiler of functions. os_function(i) is the address of one of os_nr_functions()
 * functions. No two have the same os_function_index(), which is less than OS_NR_FUNCTION_INDICES.
 * os_function_calls_set() makes each function i call hook_of(i) at its start, or no hook if that
 * is NULL. It returns 0 or -OS_ENOMEM; process context. os_function_general_hook is the hook that
 * calls profile_function_enter() and profile_function_exit(), or profile_function_in_nmi()
 * (<lego/function_profile.h>).
 */
typedef function_hook_t os_function_hook_t;
#define os_function_general_hook	     function_call
#define os_function_calls_set(hook_of)	     function_calls_set(hook_of)
#define os_nr_functions()		     function_nr_places()
#define os_function(i)			     function_place(i)
#define os_function_index(addr)		     ((addr) / FUNCTION_ALIGN % OS_NR_FUNCTION_INDICES)
#define OS_NR_FUNCTION_INDICES		     (MAX_TEXT / FUNCTION_ALIGN)

/*
 * For hooks that functions call directly, without the detour of the general one. os_function_hook
 * declares a hook: a function without arguments. In it
 *	os_function_hooked()		the start of the function that has called the hook
 *	os_function_hooked_index()	its index
 *	os_function_caller()		the address it will return to
 *	os_function_in_nmi()		whether this is in an NMI
 *	os_function_enter()		does what the general hook does
 *	os_function_thread()		the current thread; NULL if the end of the call cannot be
 *					told: in an NMI, or without memory for it
 *	os_function_push(), _pop()	puts a call on the thread's stack of calls, or takes it away
 *	os_function_tell_end()		lets profile_function_graph_exit() be called at the end
 * and at the end
 *	os_function_current()		the thread
 *	os_function_end()		puts the true return address back, and returns the call
 *	os_function_parent()		the call around it, or a dummy
 */
#define os_function_hook		     __function_hook
#define os_function_hooked()		     function_hooked()
/* The address behind the place will do: both are in the same unit. */
#define os_function_hooked_index()	     os_function_index(function_hook_slot()[-1])
#define os_function_caller()		     function_hook_caller()
#define os_function_in_nmi()		     in_nmi()
#define os_function_enter()		     function_hook_leave()
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
/* Outside of the hooks: the same; NULL without memory for it. */
#define os_function_self()	      (current->thread.functions ? os_function_current() : NULL)
#define os_function_end(thread, slot) (&function_end(os_function_stack(thread), slot)->call)
#define os_function_parent(call)      (&os_function_frame(call)[-1].call)

/* Call fn(NULL) on these CPUs, with interrupts off, and wait until it has run. Process context. */
#define os_run_on_all_cpus(fn)	      smp_call_mask(cpu_online_mask, fn, NULL)
#define os_run_on_boot_cpu(fn)	      smp_call_mask(BIT(0), fn, NULL)

/*
 * Waits with interrupts on: a moment or, with halt, until an interrupt has come. Does not switch to
 * another task. Process context.
 */
static inline void os_wait_for_interrupt(bool halt)
{
	if (halt) {
		local_irq_disable();
		cpu_wait_for_interrupt();
	} else {
		cpu_relax();
	}
}

#define os_irq_save()			 local_irq_save()
#define os_irq_restore(flags)		 local_irq_restore(flags)
/* Returns whether the clock counts the instructions of all CPUs together (QEMU's -icount). */
#define os_clock_counts_instructions()	 tsc_counts_instructions()
#define os_cycles_per_second()		 (tsc_khz * 1000)

/* Converts cycles to nanoseconds, rounded to nearest. */
#define os_cycles_to_ns(cycles)		 cycles_to_ns(cycles)

/* Removes the fences from point_clock_begin() and _end(). No point is on. Process context. */
#define os_drop_fences()		 point_clock_drop_fences()

/*
 * Adds a thread's CPU times so far. Any context but NMI, also in a panic. A kernel without such
 * accounts has OS_HAS_CPU_TIMES 0; then reports do not divide CPU time.
 */
#define OS_HAS_CPU_TIMES		 IS_ENABLED(CONFIG_CPU_ACCOUNTING)

static inline void add_cpu_times(struct profile_cpu_times *times, const struct cputime *from)
{
	times->user += from->cycles[CPUTIME_USER];
	times->calls += from->cycles[CPUTIME_SYSTEM];
	times->faults += from->cycles[CPUTIME_FAULT];
	times->exceptions += from->cycles[CPUTIME_EXCEPTION];
	times->irqs += from->cycles[CPUTIME_IRQ] + from->cycles[CPUTIME_NMI];
	times->kernel += from->cycles[CPUTIME_REPORT] + from->cycles[CPUTIME_EXIT];
}

static inline void os_task_cpu_times(const struct profile_task *pt, struct profile_cpu_times *times)
{
	struct cputime time = { 0 };

	cputime_add_task((struct task *)container_of(pt, struct task, profile), &time);
	add_cpu_times(times, &time);
}

/* Stores who had the time of all CPUs since boot. Same contexts. */
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

/* Enclose the printing of a report on the console, which is no time of the thread that prints. */
#define os_begin_report()		 cputime_set_owner(CPUTIME_REPORT)
#define os_end_report(owner)		 cputime_set_owner(owner)

/*
 * Allocates zeroed memory. Returns NULL if there is none. Any context but NMI, also with locks
 * held; never sleeps.
 */
static inline void *os_zalloc(size_t size)
{
	void *ptr = kzalloc(size);

	if (ptr)
		leak_count(LEAK_PROFILE, 1);
	return ptr;
}

/* Does the same without zeroing. */
static inline void *os_alloc(size_t size)
{
	void *ptr = kmalloc(size);

	if (ptr)
		leak_count(LEAK_PROFILE, 1);
	return ptr;
}

/*
 * Finds the file that an address of a process is mapped from: copies its path and the offset in it.
 * Returns false if there is none. May sleep.
 */
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

/*
 * For images, only with CONFIG_PROFILE_IMAGES: a VMA of an address space, and the file mapped
 * there, or NULL. os_file_path() returns a pointer into buf, os_file_read() the number of bytes
 * read or a negative number. Both sleep.
 */
typedef struct file os_file_t;
#define os_area_is_code(area)		 ((area)->prot & PROT_EXEC)
#define os_area_start(area)		 ((area)->start)
#define os_area_end(area)		 ((area)->end)
#define os_area_file(area)		 ((area)->file)
#define os_area_file_offset(area)	 ((area)->file_offset)
#define os_file_bytes(file)		 file_size_bytes(file)
#define os_file_path(file, buf, size)	 file_path(file, buf, size)
#define os_file_read(file, buf, n, pos)	 file_read_at(file, buf, n, pos)
#define os_file_close(file)		 file_put(file)

/*
 * Opens the regular file with this path for reading, as the current process may. Returns NULL if
 * there is none, or where sleeping is forbidden. Any context.
 */
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

/* Calls profile_task_changed() for all threads of the current process. */
#define os_change_task_keys()		 process_change_task_keys()

/* Returns the number of the code map of a task's address space; 0: none is known. */
static inline u32 os_task_code_map(const struct task *task)
{
	/* A thread that has left its address space may outlive it. */
	const struct mm *mm = task->proc && task->mm ? READ_ONCE(task->proc->mm) : NULL;

	return mm ? profile_code_map(&mm->profile) : 0;
}

/* Returns that of a process's address space. Process context. */
static inline u32 os_process_code_map(struct process *proc)
{
	struct mm *mm = process_get_mm(proc);
	u32 number = mm ? profile_code_map(&mm->profile) : 0;

	if (mm)
		mm_put(mm);
	return number;
}

/* Returns the physical address of memory that os_alloc() has returned. */
#define os_physical_address(ptr)	 virt_to_phys(ptr)

/* Copies the build id of the kernel, in hexadecimal digits; "" if it has none. */
#define os_build_id(text, size)		 kernel_build_id(text, size)

/* Returns a number that programs cannot guess. Process context. */
static inline u64 os_random(void)
{
	u64 number;

	random_bytes(&number, sizeof(number));
	return number;
}

/* Returns the size of the machine's memory. */
#define os_memory_bytes()		 (page_nr_total() * PAGE_SIZE)

/* Frees such memory. Same contexts as os_zalloc(). os_free(NULL) does nothing. */
static inline void os_free(void *ptr)
{
	if (ptr)
		leak_count(LEAK_PROFILE, -1);
	kfree(ptr);
}

typedef spinlock_t os_lock_t;
#define OS_LOCK_INIT			 SPINLOCK_INIT
/* Takes a lock and turns interrupts off. Returns the flags for os_unlock(). Any context but NMI. */
#define os_lock(lock)			 spin_lock_irqsave(lock)
#define os_unlock(lock, flags)		 spin_unlock_irqrestore(lock, flags)

/* Lets other threads run, in a loop that waits for one. Process context, no lock held. */
static inline void os_wait_turn(void)
{
	cpu_relax();
	cond_resched();
}

/* Returns true in a panic: other CPUs are stopped, so locks must not be taken. */
#define os_panicking()			 panic_in_progress()

/*
 * Return what the task has slept for: a name that is never freed, or NULL; and an address in user
 * memory, or 0.
 */
#define os_wait_name(task)		 ((task)->wait_name)
#define os_wait_addr(task)		 ((task)->wait_addr)
/* os_wait_name() of a thread that waits for a child process. */
#define OS_CHILD_WAIT			 "proc->child_wait"

/* Returns whether a name is that of a wait until a thread or a process ends. */
static inline bool os_is_end_wait(const char *name)
{
	return !strcmp(name, OS_CHILD_WAIT) || !strcmp(name, "proc->exit_wait") ||
	       !strcmp(name, "exit of a thread");
}

/*
 * Returns whether a task is off its CPU, and stores whether it sleeps. For such a task, the next
 * three return its CPU, its system call, and the kernel's part of its call chain. The task may run
 * again at any time, so their results may be outdated.
 */
static inline bool os_task_is_off_cpu(struct task *task, bool *asleep)
{
	if (!panic_in_progress())
		return task_is_off_cpu(task, asleep);
	*asleep = task->state != TASK_RUNNING;
	return !task->on_cpu;
}
#define os_task_cpu(task)		 READ_ONCE((task)->cpu)
#define os_sleeper_syscall(task)	 sleeper_syscall(task)
#define os_sleeper_stack(task, pcs, max) stack_walk_sleeper(task, pcs, max)

/* Fills in registers for a stack walk that begins in the caller of the calling function. */
static __always_inline void os_regs_here(struct pt_regs *regs)
{
	const u64 *frame = __builtin_frame_address(0);

	regs->rbp = frame[0];
	regs->rip = stack_return_address(current, &frame[1]);
	regs->rsp = (u64)(frame + 2);
	regs->cs = KERNEL_CS;
}

/* Returns whether the code at pc belongs to the scheduler. Reports leave it out of chains. */
static inline bool os_in_scheduler(u64 pc)
{
	extern char __sched_text_start[], __sched_text_end[];

	return pc - (u64)__sched_text_start < (u64)(__sched_text_end - __sched_text_start);
}

/* Returns whether the code at pc belongs to the kernel's sleeping locks. */
static inline bool os_in_lock(u64 pc)
{
	extern char __lock_text_start[], __lock_text_end[];

	return pc - (u64)__lock_text_start < (u64)(__lock_text_end - __lock_text_start);
}

/* Returns the name of a system call, which is never freed, or NULL. */
#define os_syscall_name(nr)		 syscall_name(nr)

/*
 * Finds the function that contains addr. Stores its address in *start and, unless name is NULL,
 * copies its name, truncated to size. Returns false if there is none. Any context, also a panic.
 */
static inline bool os_symbol_lookup(u64 addr, u64 *start, char *name, size_t size)
{
	const char *found = kallsyms_lookup(addr, start, NULL);

	if (found && name)
		strscpy(name, found, size);
	return found;
}

/*
 * Assertions: of a condition, of a lock that the caller holds, and of the context. They must not
 * fail in a panic, when the holders of locks are stopped and counters may be half updated.
 */
#define os_assert(cond)			 DEBUG_ASSERT(cond)
#define os_assert_held(lock)		 ASSERT_HELD(lock)
#define os_assert_irqs_off()		 ASSERT_IRQS_OFF()
#define os_assert_process_context()	 ASSERT_PROCESS_CONTEXT()

/* Returns true if there is a function of this name. Process context. */
#define os_symbol_exists(name)		 (kallsyms_address(name) != 0)

/*
 * For strace/live. os_syscall_args() copies the arguments of the current thread's system call; it
 * returns false if the thread is in none. The copies from user memory are checked and may sleep.
 * They return 0 or -EFAULT. The copy of a string returns its length, -EFAULT, or -OS_ENAMETOOLONG
 * if there is no NUL in `size` bytes.
 *
 * OS_SYSCALL_DECODE_LIST(X) is the list of calls that have a name: X(number, name, classes, type of
 * the result, types of arguments...); strace/live/live.h defines the types. scripts/syscalltbl.py
 * generates the list of this kernel, with the calls of x86-64 Linux.
 */
#define OS_SYSCALL_DECODE_LIST(X)	 SYSCALL_DECODE_LIST(X)

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

#define os_syscall_sp()				     (task_pt_regs(current)->rsp)
#define os_realtime_ns()			     clock_realtime_ns() /* since 1970 */

static inline int os_copy_from_user(void *dst, u64 addr, size_t n)
{
	return copy_from_user(dst, (const void __user *)addr, n);
}

static inline long os_copy_string_from_user(char *dst, u64 addr, size_t size)
{
	return strncpy_from_user(dst, (const char __user *)addr, size);
}

/* Let other threads run; sleep, even if signals come. Process context. */
#define os_may_yield()				     cond_resched()

static inline void os_sleep_ms(u32 ms)
{
	WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
	schedule_timeout_ns(ms * NSEC_PER_MSEC);
}

/*
 * Controls: text files (<lego/procfs.h>); sysrq keys, whose function runs in process context and
 * may sleep; and worker threads, which call a function when they are woken. All are optional: a
 * kernel without them makes them empty. show() of a file prints to a text; `accepts` is for error
 * messages: the words that can be written. Files show kernel addresses and switch profilers, so
 * only root may open one; the process's user may open those of os_add_process_file(), too. A file
 * of os_add_exclusive_file() can be open once at a time; close() is called when it is closed, also
 * when its process dies.
 */
typedef struct text os_text_t;
#define os_text_vprintf(text, fmt, args)	     text_vprintf(text, fmt, args)
#define os_text_stream(text, more, end, data)	     text_stream(text, more, end, data)
#define os_add_file(path, accepts, show, arg, write) proc_add_file(path, accepts, show, arg, write)
#define os_add_exclusive_file(path, accepts, show, arg, write, close) \
	proc_add_exclusive_file(path, accepts, show, arg, write, close)
#define os_add_process_file(name, accepts, show, write) \
	proc_add_process_file(name, accepts, show, write)
/* A file of /sys/kernel/tracing: see <lego/procfs.h>. */
typedef struct tracefs_file os_trace_file_t;
#define os_add_trace_file(file)		       tracefs_add_file(file)
#define OS_SYSRQ_KEY(ident, letter, help, run) SYSRQ_KEY_THREAD(ident, letter, help, run)
#define OS_WORKER(ident, fn)		       struct worker ident = WORKER_INIT(ident, fn)
#define os_worker_start(worker, name)	       worker_start(worker, name)
#define os_worker_wake(worker)		       worker_wake(worker)

#endif

PF_BUILD_BUG_ON(sizeof(u64) != 8 || sizeof(s64) != 8 || sizeof(u32) != 4 || (bool)2 != 1);

/* os_process_age_ns() and os_process_wait_status() of a kernel that does not know them. */
#define OS_NO_AGE    (~0ull)
#define OS_NO_STATUS (~0u)

/* The rate of the tick, if the timer is periodic; 0: the timer can be set for deadlines. */
#ifndef OS_TICK_HZ
#define OS_TICK_HZ 0
#endif

/* Size of a buffer for a function name. A longer name is truncated. */
#define OS_SYMBOL_BYTES 128

/* print.c: variants with `...` of the functions above. */
int os_printk(const char *fmt, ...) pf_printf(1, 2);
int os_snprintf(char *buf, size_t size, const char *fmt, ...) pf_printf(3, 4);
void os_text_printf(os_text_t *text, const char *fmt, ...) pf_printf(2, 3);

#endif
