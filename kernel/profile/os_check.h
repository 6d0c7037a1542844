/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_OS_CHECK_H
#define PROFILE_OS_CHECK_H

/*
 * Says what os.h of another kernel lacks, by name, before the compiler stumbles over it. os_none.h
 * includes this file, after the kernel's own names and before the defaults. os.h and os_hooks.h
 * have the contracts. Each name is a macro; a function has one of its own name, too:
 *
 *	#define os_zalloc os_zalloc
 */

/* Options that need others, as in Kconfig. */
#if defined(CONFIG_PROFILE_STRACE_DETAIL) && !defined(CONFIG_PROFILE_STRACE)
#error "profile: CONFIG_PROFILE_STRACE_DETAIL needs CONFIG_PROFILE_STRACE"
#endif
#if defined(CONFIG_PROFILE_STRACE_LIVE) && !defined(CONFIG_PROFILE_STRACE)
#error "profile: CONFIG_PROFILE_STRACE_LIVE needs CONFIG_PROFILE_STRACE"
#endif
#if defined(CONFIG_PROFILE_CALLCHAIN) && !defined(CONFIG_PROFILE_HEATMAP)
#error "profile: CONFIG_PROFILE_CALLCHAIN needs CONFIG_PROFILE_HEATMAP"
#endif
#if defined(CONFIG_PROFILE_WAITS) && !defined(CONFIG_PROFILE_CALLCHAIN)
#error "profile: CONFIG_PROFILE_WAITS needs CONFIG_PROFILE_CALLCHAIN"
#endif
#if defined(CONFIG_PROFILE_FUNCTIONS) && !defined(CONFIG_PROFILE_CALLCHAIN)
#error "profile: CONFIG_PROFILE_FUNCTIONS needs CONFIG_PROFILE_CALLCHAIN"
#endif
#if defined(CONFIG_PROFILE_EXPORT) && !defined(CONFIG_PROFILE_STRACE) &&       \
	!defined(CONFIG_PROFILE_HEATMAP) && !defined(CONFIG_PROFILE_POINTS) && \
	!defined(CONFIG_PROFILE_TRACE)
#error "profile: CONFIG_PROFILE_EXPORT needs a profiler: STRACE, HEATMAP, POINTS or TRACE"
#endif
#if defined(CONFIG_PROFILE_IMAGES) && !defined(CONFIG_PROFILE_EXPORT)
#error "profile: CONFIG_PROFILE_IMAGES needs CONFIG_PROFILE_EXPORT"
#endif
#if defined(CONFIG_PROFILE_IMAGES) && !defined(CONFIG_PROFILE_HEATMAP)
#error "profile: CONFIG_PROFILE_IMAGES needs CONFIG_PROFILE_HEATMAP"
#endif

/* For all. */
#ifndef os_cycles_to_ns
#error "profile: define os_cycles_to_ns(cycles): converts cycles of os_cycles() to nanoseconds"
#endif
#ifndef os_vprintk
#error "profile: define os_vprintk(fmt, args): prints one line"
#endif
#ifndef os_vsnprintf
#error "profile: define os_vsnprintf(buf, size, fmt, args): C11's vsnprintf()"
#endif
#ifndef os_zalloc
#error "profile: define os_zalloc(size): allocates zeroed memory, without sleeping"
#endif
#ifndef os_free
#error "profile: define os_free(ptr): frees it"
#endif
#ifndef os_lock
#error "profile: define os_lock(lock): takes an os_lock_t, turns interrupts off, returns flags"
#endif
#ifndef os_unlock
#error "profile: define os_unlock(lock, flags): undoes os_lock()"
#endif
#ifndef OS_LOCK_INIT
#error "profile: define OS_LOCK_INIT: initial value of an os_lock_t"
#endif
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
#ifndef os_process_of
#error "profile: define os_process_of(pp): the process that has a struct profile_process"
#endif
#ifndef os_process_pid
#error "profile: define os_process_pid(proc): a process's number"
#endif
#ifndef os_process_name
#error "profile: define os_process_name(proc): a process's name"
#endif

/* CPUs: OS_NR_CPUS of them, or per-CPU variables of the kernel's own. */
#ifndef OS_NR_CPUS
#ifndef os_for_each_cpu
#error "profile: define os_for_each_cpu(cpu): loop over all CPU numbers"
#endif
#endif
#if OS_NR_CPUS != 1 && (defined(CONFIG_PROFILE_POINTS) || defined(CONFIG_PROFILE_HEATMAP) || \
			defined(CONFIG_PROFILE_TRACE))
#ifndef os_run_on_all_cpus
#error "profile: define os_run_on_all_cpus(fn): calls fn(NULL) on each CPU and waits"
#endif
#ifndef os_run_on_boot_cpu
#error "profile: define os_run_on_boot_cpu(fn): calls fn(NULL) on CPU 0 and waits"
#endif
#endif

#ifdef CONFIG_PROFILE_STRACE
#ifndef os_syscall_nr
#error "profile: define os_syscall_nr(): number of the current system call"
#endif
#endif

#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_HEATMAP)
#ifndef os_syscall_name
#error "profile: define os_syscall_name(nr): name of a system call, or NULL"
#endif
#endif

#if OS_HAS_EXEC_CYCLES && (defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_WAITS))
#ifndef os_task_exec_cycles
#error "profile: define os_task_exec_cycles(pt): a thread's CPU time; goes with os_off_cycles()"
#endif
#endif

#ifdef CONFIG_PROFILE_STRACE_LIVE
#ifndef os_syscall_args
#error "profile: define os_syscall_args(args): copies the six arguments of the current call"
#endif
#ifndef os_copy_from_user
#error "profile: define os_copy_from_user(dst, addr, n): copies user memory; 0 or an error"
#endif
#ifndef os_copy_string_from_user
#error "profile: define os_copy_string_from_user(dst, addr, size): copies a user's string"
#endif
#ifndef OS_SYSCALL_DECODE_LIST
#error "profile: define OS_SYSCALL_DECODE_LIST(X): the list of system calls"
#endif
#endif

#if defined(CONFIG_PROFILE_STRACE_LIVE) || defined(CONFIG_PROFILE_HEATMAP) || \
	defined(CONFIG_PROFILE_TRACE)
#ifndef os_task_tid
#error "profile: define os_task_tid(task): a thread's number"
#endif
#endif

#if defined(CONFIG_PROFILE_HEATMAP) || defined(CONFIG_PROFILE_TRACE)
#ifndef os_regs_pc
#error "profile: define os_regs_pc(regs): the interrupted instruction"
#endif
#endif

#ifdef CONFIG_PROFILE_TRACE
#ifndef os_task_state
#error "profile: define os_task_state(task): a task's state in Linux's numbers"
#endif
#endif

#ifdef CONFIG_PROFILE_HEATMAP
#ifndef os_regs_sp
#error "profile: define os_regs_sp(regs): the interrupted stack pointer"
#endif
#ifndef os_regs_user
#error "profile: define os_regs_user(regs): whether it is user code"
#endif
#ifndef os_regs_irqs_off
#error "profile: define os_regs_irqs_off(regs): whether interrupts were off there"
#endif
#ifndef os_irq_depth
#error "profile: define os_irq_depth(): depth of interrupts, with this one"
#endif
#ifndef os_irq_save
#error "profile: define os_irq_save(): turns interrupts off, returns flags"
#endif
#ifndef os_irq_restore
#error "profile: define os_irq_restore(flags): undoes os_irq_save()"
#endif
#ifndef os_task_idle
#error "profile: define os_task_idle(task): whether it is an idle task"
#endif
#ifndef os_cycles_per_second
#error "profile: define os_cycles_per_second(): rate of os_cycles()"
#endif
#endif

#if defined(CONFIG_PROFILE_HEATMAP) && !defined(os_timer_deadline)
#ifndef OS_TICK_HZ
#error "profile: define OS_TICK_HZ: rate of the periodic tick; or os_timer_deadline()"
#endif
#endif

#if defined(CONFIG_PROFILE_HEATMAP) && !defined(OS_TICK_HZ)
#ifndef os_timer_deadline
#error "profile: define os_timer_deadline(): when the timer is due"
#endif
#ifndef os_timer_rearm
#error "profile: define os_timer_rearm(): sets the timer for profile_next_deadline()"
#endif
#ifndef os_wait_for_interrupt
#error "profile: define os_wait_for_interrupt(halt): waits a moment, or until an interrupt"
#endif
#endif

#ifdef CONFIG_PROFILE_CALLCHAIN
#ifndef os_stack_walk
#error "profile: define os_stack_walk(regs, pcs, max): walks a stack: <lego/stack_walk.h>"
#endif
#endif

#if defined(CONFIG_PROFILE_WAITS) || \
	(defined(CONFIG_PROFILE_TRACE) && defined(CONFIG_PROFILE_CALLCHAIN))
#ifndef os_regs_here
#error "profile: define os_regs_here(regs): registers for a walk that begins in the caller"
#endif
#endif

#ifdef CONFIG_PROFILE_EXPORT
#ifndef os_physical_address
#error "profile: define os_physical_address(ptr): physical address of os_alloc()'s memory"
#endif
#ifndef os_random
#error "profile: define os_random(): a number that programs cannot guess"
#endif
#endif

#ifdef CONFIG_PROFILE_IMAGES
#ifndef os_area_is_code
#error "profile: define os_area_is_code(area): whether a VMA is executable"
#endif
#ifndef os_area_start
#error "profile: define os_area_start(area): its first address"
#endif
#ifndef os_area_end
#error "profile: define os_area_end(area): the address behind it"
#endif
#ifndef os_area_file
#error "profile: define os_area_file(area): the file mapped there, or NULL"
#endif
#ifndef os_area_file_offset
#error "profile: define os_area_file_offset(area): where in the file it begins"
#endif
#ifndef os_file_bytes
#error "profile: define os_file_bytes(file): size of a file"
#endif
#ifndef os_file_path
#error "profile: define os_file_path(file, buf, size): path of a file"
#endif
#ifndef os_file_read
#error "profile: define os_file_read(file, buf, n, pos): reads a file; bytes or an error"
#endif
#ifndef os_task_code_map
#error "profile: define os_task_code_map(task): profile_code_map() of a task's address space"
#endif
#ifndef os_process_code_map
#error "profile: define os_process_code_map(proc): that of a process's address space"
#endif
#ifndef os_change_task_keys
#error "profile: define os_change_task_keys(): profile_task_changed() for all its threads"
#endif
#endif

#if OS_HAS_CPU_TIMES
#ifndef os_task_cpu_times
#error "profile: define os_task_cpu_times(pt, times): adds a thread's CPU times, by owner"
#endif
#ifndef os_machine_times
#error "profile: define os_machine_times(times): who had the time of all CPUs"
#endif
#endif

#if OS_HAS_NMIS
#ifndef os_nmi_start
#error "profile: define os_nmi_start(hz, jitter, moves): starts NMIs; their name, or NULL"
#endif
#ifndef os_nmi_slots
#error "profile: define os_nmi_slots(): number of NMIs due so far"
#endif
#ifndef os_nmi_move
#error "profile: define os_nmi_move(random): moves the next NMI"
#endif
#ifndef os_nmi_stop
#error "profile: define os_nmi_stop(): stops them"
#endif
#ifndef os_nmi_send
#error "profile: define os_nmi_send(): sends an NMI to this CPU"
#endif
#endif

#ifdef os_task_is_off_cpu
#ifndef os_task_of
#error "profile: define os_task_of(pt): the task that has a struct profile_task"
#endif
#ifndef os_task_cpu
#error "profile: define os_task_cpu(task): CPU of a task that is off it"
#endif
#ifndef os_sleeper_syscall
#error "profile: define os_sleeper_syscall(task): its system call, or OS_NO_SYSCALL"
#endif
#ifndef os_sleeper_stack
#error "profile: define os_sleeper_stack(task, pcs, max): the kernel's part of its call chain"
#endif
#endif

#ifdef os_process_faults
#ifndef os_task_faults
#error "profile: define os_task_faults(task): page faults of a thread, by kind"
#endif
#ifndef OS_NR_FAULT_KINDS
#error "profile: define OS_NR_FAULT_KINDS: number of kinds of page faults"
#endif
#ifndef OS_FAULT_KINDS
#error "profile: define OS_FAULT_KINDS: names of the kinds"
#endif
#endif

#ifdef OS_WORKER
#ifndef os_worker_start
#error "profile: define os_worker_start(worker, name): starts the thread of a worker"
#endif
#ifndef os_worker_wake
#error "profile: define os_worker_wake(worker): lets it call its function"
#endif
#endif

#ifdef os_add_file
#ifndef os_text_vprintf
#error "profile: define os_text_vprintf(text, fmt, args): prints to the text of a file, os_text_t"
#endif
#ifndef os_text_stream
#error "profile: define os_text_stream(text, more, end, data): prints as the file is read"
#endif
#endif

#ifdef CONFIG_PROFILE_FUNCTIONS
#ifndef os_function_calls_set
#error "profile: define os_function_calls_set(hook_of): makes functions call hooks"
#endif
#endif

#endif
