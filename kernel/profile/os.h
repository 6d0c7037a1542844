/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_H
#define PROFILE_OS_H

/*
 * The seam: everything this folder needs from a kernel. Another kernel, or a unit test, supplies
 * the same names in a header of its own, named by PROFILE_OS_HEADER.
 *
 * Besides the names below: u8..u64, bool, NULL, size_t; READ_ONCE, WRITE_ONCE, xchg, barrier,
 * smp_mb, smp_load_acquire, smp_store_release, cpu_relax, likely, unlikely, container_of, min, max,
 * IS_ENABLED, __used, __section, __aligned, __maybe_unused, __always_inline, noinline; memset,
 * memcpy, memcmp, strcmp, strlen, strscpy; -EINVAL; DEFINE_PER_CPU, per_cpu, this_cpu_ptr and
 * this_cpu_read, write, add, inc, above, below, lower, raise, for_each_possible_cpu,
 * smp_processor_id, smp_left_cpu; struct static_key, static_key_on, static_key_set,
 * static_key_is_set; point_clock_begin, point_clock_end; printk and vprintk (any context, one call
 * is one line), snprintf; sort, mul_div_u64, parse_u64, glob_match_list, BOOT_PARAM.
 */

#ifdef PROFILE_OS_HEADER
#include PROFILE_OS_HEADER
#else

#include <asm/irqflags.h>
#include <asm/nmi_sampler.h>
#include <asm/processor.h>
#include <asm/stack_match.h>
#include <asm/stacktrace.h>
#include <asm/tick.h>
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
#include <lego/profile_syscall.h>
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

/* Tasks and processes, as the hooks get them. */
#define os_task_exec_cycles(pt)	 task_exec_cycles_of(container_of(pt, struct task, profile))
#define os_syscall_nr()		 ((u32)task_pt_regs(current)->orig_rax)
#define os_current_dying()	 (task_killed(current) && !READ_ONCE(current->took_signal))
#define os_task_profile(task)	 (&(task)->profile)
#define os_task_process(task)	 ((task)->proc)
#define os_process_profile(proc) (&(proc)->profile)
#define os_process_of(pp)	 container_of(pp, struct process, profile)
#define os_process_pid(proc)	 ((proc)->pid)
#define os_process_name(proc)	 ((const char *)(proc)->comm)

#define os_cpu_online(cpu)			      cpu_online(cpu)

/* What the timer interrupt hit. os_irq_depth() counts that interrupt itself. */
#define os_regs_pc(regs)			      instruction_pointer(regs)
#define os_regs_user(regs)			      user_mode(regs)
#define os_regs_sp(regs)			      ((regs)->rsp)
#define os_irq_depth()				      this_cpu_read(irq_depth)

/* More about what was hit: any context, NMI included, interrupts off. */
#define os_regs_irqs_off(regs)			      irqs_disabled_flags((regs)->rflags)
#define os_current_task()			      current
#define os_task_idle(task)			      ((task)->pid == 0)
#define os_task_tid(task)			      ((u32)(task)->pid)
/* Its process; 0: none, or it is leaving it. */
static inline u32 os_task_pid(const struct task *task)
{
	return task->proc && task->mm ? (u32)task->proc->pid : 0;
}

/* Changes with the task and with what it is called: see profile_task_changed(). */
#define os_task_who(task)			      ((task)->profile.who)
#define os_process_program(proc)		      ((proc)->nr_execs)
#define os_current_tid()			      os_task_tid(current)
#define os_current_pid()			      os_task_pid(current)
/* The task's name: 16 bytes, with a NUL in them. */
static __always_inline void os_task_comm(const struct task *task, u64 *words)
{
	__builtin_memcpy(words, task->comm, 2 * sizeof(u64));
}

/*
 * The number of the call that the current task, a user's, is in; or OS_NO_SYSCALL. Not from user
 * mode.
 */
#define os_task_syscall(task, regs)		      task_syscall(task, regs)
/* The registers of the user code that it has been entered from. */
#define os_user_regs(task)			      task_pt_regs(task)
#define OS_NO_SYSCALL				      NO_SYSCALL
#define os_same_words(a, b, nr)			      same_words(a, b, nr)
/* <lego/stack_walk.h>; only with CONFIG_PROFILE_CALLCHAIN. The first in process context, once. */
#define os_stack_walk_init()			      stack_walk_init()
#define os_stack_walk(regs, pcs, max)		      stack_walk(regs, pcs, max)
/* The same as one that was plain: the kernel's part, then the user's. */
#define os_stack_matches_kernel(regs, pcs, nr)	      stack_matches_kernel(regs, pcs, nr)
#define os_stack_matches_beside(regs, pcs, nr, plain) stack_matches_beside(regs, pcs, nr, plain)
#define os_stack_matches_user(regs, pcs, nr)	      stack_matches_user(regs, pcs, nr)

/*
 * The CPU's timer is set for os_timer_deadline(), in os_cycles(): the earliest of profile_deadline
 * and the kernel's own. After a change of profile_deadline os_timer_rearm() sets it again,
 * interrupts off. os_nmi_*(): <asm/nmi_sampler.h>; a kernel without such a thing returns NULL and
 * does nothing.
 */
#define os_timer_deadline()			      this_cpu_read(timer_deadline)
#define os_timer_rearm()			      timer_rearm()
#define os_nmi_start(hz, jitter, period, start)	      nmi_sampler_start(hz, jitter, period, start)
#define os_nmi_move(random)			      nmi_sampler_move(random)
#define os_nmi_stop()				      nmi_sampler_stop()
#define os_nmi_send()				      nmi_sampler_send()

/* fn(NULL) on CPUs, interrupts off, and wait for it: process context. */
#define os_run_on_all_cpus(fn)			      smp_call_mask(cpu_online_mask, fn, NULL)
#define os_run_on_boot_cpu(fn)			      smp_call_mask(BIT(0), fn, NULL)

/*
 * Let interrupts come, for a moment, or halted until one came: process context, without going to
 * another task.
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

#define os_irq_save()		      local_irq_save()
#define os_irq_restore(flags)	      local_irq_restore(flags)
#define os_cycles_per_second()	      (tsc_khz * 1000)

/*
 * os_current_profile(), os_cycles(), os_off_cycles(), os_saves_registers and os_call() are in
 * <lego/profile_syscall.h>.
 */

/* To nanoseconds, rounded to nearest. */
#define os_cycles_to_ns(cycles)	      cycles_to_ns(cycles)

/* Make point_clock_begin() and _end() unordered, while no point is on. Process context. */
#define os_drop_fences()	      point_clock_drop_fences()

/* CPU time so far of any task, in cycles; interrupts off. In a panic its lock may be held. */
static inline u64 task_exec_cycles_of(const struct task *task)
{
	if (!panic_in_progress())
		return task_exec_cycles((struct task *)task);
	return task->sum_exec_cycles + (task->on_cpu ? rdtsc() - task->exec_start_cycles : 0);
}

/* CPU time of the current task, in cycles. Process context. */
static inline u64 os_oncpu_cycles(void)
{
	return current->sum_exec_cycles + rdtsc() - current->exec_start_cycles;
}

/* Memory: any context but NMI, locks held, never sleeps; zeroed; NULL when there is none. */
static inline void *os_zalloc(size_t size)
{
	void *ptr = kzalloc(size);

	if (ptr)
		leak_count(LEAK_PROFILE, 1);
	return ptr;
}

/* The same, not zeroed. */
static inline void *os_alloc(size_t size)
{
	void *ptr = kmalloc(size);

	if (ptr)
		leak_count(LEAK_PROFILE, 1);
	return ptr;
}

/*
 * Where user code of a process is from: the file's path and the offset in it; false: from no file.
 * For a process whose threads are gone but whose memory is there. May sleep.
 */
static inline bool os_process_mapping(struct process *proc, u64 addr, char *path, size_t size,
				      u64 *offset)
{
	struct mm_area_info area;
	bool found;

	if (!mm_get_areas(proc->mm, addr, &area, 1))
		return false;
	found = area.file && area.start <= addr;
	if (found) {
		const char *name = file_path(area.file, path, size);

		memmove(path, name, strlen(name) + 1);
		*offset = addr - area.start + area.file_offset;
	}
	mm_put_areas(&area, 1);
	return found;
}

/* Of the whole machine. */
#define os_memory_bytes()	      (page_nr_total() * PAGE_SIZE)

static inline void os_free(void *ptr)
{
	if (ptr)
		leak_count(LEAK_PROFILE, -1);
	kfree(ptr);
}

typedef spinlock_t os_lock_t;
#define OS_LOCK_INIT		      SPINLOCK_INIT
#define os_lock(lock)		      spin_lock_irqsave(lock)
#define os_unlock(lock, flags)	      spin_unlock_irqrestore(lock, flags)

/* In a loop that waits for another thread: process context, no lock held. */
static inline void os_wait_turn(void)
{
	cpu_relax();
	cond_resched();
}

/* The kernel is dying: other CPUs are stopped, locks mean nothing. */
#define os_panicking()		      panic_in_progress()

/* Names live for ever. NULL when there is none. *start: the address of the function. */
#define os_syscall_name(nr)	      syscall_name(nr)
#define os_symbol_lookup(addr, start) kallsyms_lookup(addr, start, NULL)

/*
 * Of live lines: the registers of the system call the current thread is in (false: it is in none),
 * who it is, and the checked ways to its memory, which may sleep: 0 or -EFAULT; a string's length,
 * -EFAULT, or -ENAMETOOLONG after size bytes.
 */
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

#define os_syscall_sp()			       (task_pt_regs(current)->rsp)

static inline int os_copy_from_user(void *dst, u64 addr, size_t n)
{
	return copy_from_user(dst, (const void __user *)addr, n);
}

static inline long os_copy_string_from_user(char *dst, u64 addr, size_t size)
{
	return strncpy_from_user(dst, (const char __user *)addr, size);
}

/* Let others have the CPU; sleep, whatever signals come. Process context. */
#define os_may_yield()			       cond_resched()

static inline void os_sleep_ms(u32 ms)
{
	WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
	schedule_timeout_ns(ms * NSEC_PER_MSEC);
}

/*
 * Controls: a text file (<lego/procfs.h>), a key of the sysrq, and a thread that calls a function
 * when it is woken. All are optional: a kernel without them makes them empty. A text is what
 * show() of a file prints to.
 */
typedef struct text os_text_t;
#define os_text_printf(text, ...)	       text_printf(text, __VA_ARGS__)
#define os_text_vprintf(text, fmt, args)       text_vprintf(text, fmt, args)
#define os_add_file(path, show, write)	       proc_add_file(path, show, write)
#define os_add_process_file(name, show, write) proc_add_process_file(name, show, write)
#define OS_SYSRQ_KEY(ident, letter, help, run) SYSRQ_KEY(ident, letter, help, run)
#define OS_WORKER(ident, fn)		       struct worker ident = WORKER_INIT(ident, fn)
#define os_worker_start(worker, name)	       worker_start(worker, name)
#define os_worker_wake(worker)		       worker_wake(worker)

#endif
#endif
