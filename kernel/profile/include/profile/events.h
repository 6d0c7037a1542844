/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of trace events, with Linux's names, fields and format texts (6.1). This file is
 * included several times with different definitions of its macros, so it has no include guard:
 *
 *	PROFILE_EVENT(system, name, parameters, arguments, fields, assignments, print)
 *
 * declares the hook `profile_trace(name, ...)`. `arguments` are the names of the parameters. The
 * assignments fill in the record REC. print, in parentheses, is the format of the event's text and
 * its arguments; Linux's tools parse both. The fields are
 *
 *	PROFILE_FIELD("type in the format text", type, name)
 *	PROFILE_FIELD_ARRAY("type", type, name, number)
 *	PROFILE_FIELD_TEXT(name, bytes)			ends in a NUL if it is shorter
 *	PROFILE_FIELD_STRING(name, bytes)		at most bytes - 1: SET_STRING(name, text)
 *
 * Fields that this kernel has no value for differ from Linux: gfp_flags of kmalloc, node,
 * migratetype, errno and baseclk are 0, and `page` of mm_page_alloc is left out.
 */

/* clang-format off */

#define PROFILE_COMM_BYTES 16

PROFILE_EVENT(sched, sched_switch, (os_task_t *prev, os_task_t *next), (prev, next),
	PROFILE_FIELD_TEXT(prev_comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, prev_pid)
	PROFILE_FIELD("int", s32, prev_prio)
	PROFILE_FIELD("long", s64, prev_state)
	PROFILE_FIELD_TEXT(next_comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, next_pid)
	PROFILE_FIELD("int", s32, next_prio),
	SET_COMM(prev_comm, prev);
	REC->prev_pid = os_task_tid(prev);
	REC->prev_prio = os_task_priority(prev);
	REC->prev_state = os_task_state(prev);
	SET_COMM(next_comm, next);
	REC->next_pid = os_task_tid(next);
	REC->next_prio = os_task_priority(next),
	("prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d "
	 "next_prio=%d",
	 REC->prev_comm, REC->prev_pid, REC->prev_prio, REC->prev_state ?
	 __print_flags(REC->prev_state, "|", { 1, "S" }, { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16,
	 "X" }, { 32, "Z" }, { 64, "P" }, { 128, "I" }) : "R", REC->next_comm, REC->next_pid,
	 REC->next_prio))

PROFILE_EVENT(sched, sched_wakeup, (os_task_t *task, u32 cpu), (task, cpu),
	PROFILE_FIELD_TEXT(comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, pid)
	PROFILE_FIELD("int", s32, prio)
	PROFILE_FIELD("int", s32, target_cpu),
	SET_COMM(comm, task);
	REC->pid = os_task_tid(task);
	REC->prio = os_task_priority(task);
	REC->target_cpu = cpu,
	("comm=%s pid=%d prio=%d target_cpu=%03d",
	 REC->comm, REC->pid, REC->prio, REC->target_cpu))

PROFILE_EVENT(sched, sched_migrate_task, (os_task_t *task, u32 from, u32 to),
	(task, from, to),
	PROFILE_FIELD_TEXT(comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, pid)
	PROFILE_FIELD("int", s32, prio)
	PROFILE_FIELD("int", s32, orig_cpu)
	PROFILE_FIELD("int", s32, dest_cpu),
	SET_COMM(comm, task);
	REC->pid = os_task_tid(task);
	REC->prio = os_task_priority(task);
	REC->orig_cpu = from;
	REC->dest_cpu = to,
	("comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d",
	 REC->comm, REC->pid, REC->prio, REC->orig_cpu, REC->dest_cpu))

PROFILE_EVENT(sched, sched_process_fork, (os_task_t *parent, os_task_t *child),
	(parent, child),
	PROFILE_FIELD_TEXT(parent_comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, parent_pid)
	PROFILE_FIELD_TEXT(child_comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, child_pid),
	SET_COMM(parent_comm, parent);
	REC->parent_pid = os_task_tid(parent);
	SET_COMM(child_comm, child);
	REC->child_pid = os_task_tid(child),
	("comm=%s pid=%d child_comm=%s child_pid=%d",
	 REC->parent_comm, REC->parent_pid, REC->child_comm, REC->child_pid))

PROFILE_EVENT(sched, sched_process_exec, (os_task_t *task, const char *path), (task, path),
	PROFILE_FIELD_STRING(filename, 256)
	PROFILE_FIELD("pid_t", s32, pid)
	PROFILE_FIELD("pid_t", s32, old_pid),
	SET_STRING(filename, path);
	REC->pid = os_process_pid(os_task_process(task));
	REC->old_pid = os_task_tid(task),
	("filename=%s pid=%d old_pid=%d", __get_str(filename), REC->pid, REC->old_pid))

PROFILE_EVENT(sched, sched_process_exit, (os_task_t *task), (task),
	PROFILE_FIELD_TEXT(comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, pid)
	PROFILE_FIELD("int", s32, prio),
	SET_COMM(comm, task);
	REC->pid = os_task_tid(task);
	REC->prio = os_task_priority(task),
	("comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio))

PROFILE_EVENT(raw_syscalls, sys_enter, (u64 nr), (nr),
	PROFILE_FIELD("long", s64, id)
	PROFILE_FIELD_ARRAY("unsigned long", u64, args, 6),
	REC->id = nr;
	(void)os_syscall_args(REC->args),
	("NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)",
	 REC->id, REC->args[0], REC->args[1], REC->args[2], REC->args[3], REC->args[4],
	 REC->args[5]))

PROFILE_EVENT(raw_syscalls, sys_exit, (u64 nr, s64 ret), (nr, ret),
	PROFILE_FIELD("long", s64, id)
	PROFILE_FIELD("long", s64, ret),
	REC->id = nr;
	REC->ret = ret,
	("NR %ld = %ld", REC->id, REC->ret))

PROFILE_EVENT(irq, irq_handler_entry, (u32 irq, const char *name), (irq, name),
	PROFILE_FIELD("int", s32, irq)
	PROFILE_FIELD_STRING(name, 16),
	REC->irq = irq;
	SET_STRING(name, name),
	("irq=%d name=%s", REC->irq, __get_str(name)))

PROFILE_EVENT(irq, irq_handler_exit, (u32 irq, bool handled), (irq, handled),
	PROFILE_FIELD("int", s32, irq)
	PROFILE_FIELD("int", s32, ret),
	REC->irq = irq;
	REC->ret = handled,
	("irq=%d ret=%s", REC->irq, REC->ret ? "handled" : "unhandled"))

#define VECTOR_EVENT(name)                                                        \
	PROFILE_EVENT(irq_vectors, name, (u32 vector), (vector),                  \
		      PROFILE_FIELD("int", s32, vector), REC->vector = vector,    \
		      ("vector=%d", REC->vector))

VECTOR_EVENT(local_timer_entry)
VECTOR_EVENT(local_timer_exit)
VECTOR_EVENT(reschedule_entry)
VECTOR_EVENT(reschedule_exit)
VECTOR_EVENT(call_function_entry)
VECTOR_EVENT(call_function_exit)

#define FAULT_EVENT(name)                                                                     \
	PROFILE_EVENT(exceptions, name, (u64 address, const os_regs_t *regs, u64 error_code), \
		      (address, regs, error_code),                                            \
		      PROFILE_FIELD("unsigned long", u64, address)                            \
			      PROFILE_FIELD("unsigned long", u64, ip)                         \
			      PROFILE_FIELD("unsigned long", u64, error_code),                \
		      REC->address = address;                                                 \
		      REC->ip = os_regs_pc(regs);                                             \
		      REC->error_code = error_code,                                           \
		      ("address=%ps ip=%ps error_code=0x%lx", (void *)REC->address,           \
		       (void *)REC->ip, REC->error_code))

FAULT_EVENT(page_fault_user)
FAULT_EVENT(page_fault_kernel)

PROFILE_EVENT(kmem, kmalloc, (u64 caller, const void *object, u64 size, u64 room),
	(caller, object, size, room),
	PROFILE_FIELD("unsigned long", u64, call_site)
	PROFILE_FIELD("const void *", u64, ptr)
	PROFILE_FIELD("size_t", u64, bytes_req)
	PROFILE_FIELD("size_t", u64, bytes_alloc)
	PROFILE_FIELD("unsigned long", u64, gfp_flags)
	PROFILE_FIELD("int", s32, node)
	PROFILE_FIELD("bool", u8, accounted),
	REC->call_site = caller;
	REC->ptr = (u64)object;
	REC->bytes_req = size;
	REC->bytes_alloc = room;
	REC->gfp_flags = 0;
	REC->node = 0;
	REC->accounted = 0,
	("call_site=%pS ptr=%p bytes_req=%zu bytes_alloc=%zu gfp_flags=%s node=%d "
	 "accounted=%s",
	 (void *)REC->call_site, REC->ptr, REC->bytes_req, REC->bytes_alloc, REC->gfp_flags ?
	 __print_flags(REC->gfp_flags, "|", { 256, "__GFP_ZERO" }) : "none", REC->node,
	 REC->accounted ? "true" : "false"))

PROFILE_EVENT(kmem, kfree, (u64 caller, const void *object), (caller, object),
	PROFILE_FIELD("unsigned long", u64, call_site)
	PROFILE_FIELD("const void *", u64, ptr),
	REC->call_site = caller;
	REC->ptr = (u64)object,
	("call_site=%pS ptr=%p", (void *)REC->call_site, REC->ptr))

/* Linux's value of GFP_KERNEL: perf kmem refuses allocations of pages without a flag it knows. */
#define PROFILE_GFP_KERNEL 0xcc0

PROFILE_EVENT(kmem, mm_page_alloc, (u64 frame, u32 order), (frame, order),
	PROFILE_FIELD("unsigned long", u64, pfn)
	PROFILE_FIELD("unsigned int", u32, order)
	PROFILE_FIELD("unsigned long", u64, gfp_flags)
	PROFILE_FIELD("int", s32, migratetype),
	REC->pfn = frame;
	REC->order = order;
	REC->gfp_flags = PROFILE_GFP_KERNEL;
	REC->migratetype = 0,
	("pfn=0x%lx order=%d migratetype=%d gfp_flags=%s",
	 REC->pfn, REC->order, REC->migratetype, REC->gfp_flags ? __print_flags(REC->gfp_flags,
	 "|", { 0xcc0, "GFP_KERNEL" }) : "none"))

PROFILE_EVENT(kmem, mm_page_free, (u64 frame, u32 order), (frame, order),
	PROFILE_FIELD("unsigned long", u64, pfn)
	PROFILE_FIELD("unsigned int", u32, order),
	REC->pfn = frame;
	REC->order = order,
	("pfn=0x%lx order=%d", REC->pfn, REC->order))

/* flags of contention_begin. */
#define PROFILE_LOCK_SPIN  1
#define PROFILE_LOCK_READ  2
#define PROFILE_LOCK_WRITE 4
#define PROFILE_LOCK_MUTEX 32

PROFILE_EVENT(lock, contention_begin, (const void *lock, u32 flags), (lock, flags),
	PROFILE_FIELD("void *", u64, lock_addr)
	PROFILE_FIELD("unsigned int", u32, flags),
	REC->lock_addr = (u64)lock;
	REC->flags = flags,
	("%p (flags=%s)",
	 REC->lock_addr, __print_flags(REC->flags, "|", { 1, "SPIN" }, { 2, "READ" }, { 4, "WRITE"
	 }, { 8, "RT" }, { 16, "PERCPU" }, { 32, "MUTEX" })))

PROFILE_EVENT(lock, contention_end, (const void *lock, s32 ret), (lock, ret),
	PROFILE_FIELD("void *", u64, lock_addr)
	PROFILE_FIELD("int", s32, ret),
	REC->lock_addr = (u64)lock;
	REC->ret = ret,
	("%p (ret=%d)", REC->lock_addr, REC->ret))

PROFILE_EVENT(timer, timer_expire_entry, (const void *timer, const void *function, u64 now),
	(timer, function, now),
	PROFILE_FIELD("void *", u64, timer)
	PROFILE_FIELD("unsigned long", u64, now)
	PROFILE_FIELD("void *", u64, function)
	PROFILE_FIELD("unsigned long", u64, baseclk),
	REC->timer = (u64)timer;
	REC->now = now;
	REC->function = (u64)function;
	REC->baseclk = 0,
	("timer=%p function=%ps now=%lu baseclk=%lu",
	 REC->timer, REC->function, REC->now, REC->baseclk))

PROFILE_EVENT(timer, timer_expire_exit, (const void *timer), (timer),
	PROFILE_FIELD("void *", u64, timer),
	REC->timer = (u64)timer,
	("timer=%p", REC->timer))

/* Results of signal_generate; an error stands for the last one. */
#define PROFILE_SIGNAL_DELIVERED 0
#define PROFILE_SIGNAL_IGNORED	 1
#define PROFILE_SIGNAL_PENDING	 2 /* one of these is waiting already */
#define PROFILE_SIGNAL_FAILED	 3

PROFILE_EVENT(signal, signal_generate,
	(s32 sig, const os_siginfo_t *info, os_task_t *to, bool of_process, s32 result),
	(sig, info, to, of_process, result),
	PROFILE_FIELD("int", s32, sig)
	PROFILE_FIELD("int", s32, errno)
	PROFILE_FIELD("int", s32, code)
	PROFILE_FIELD_TEXT(comm, PROFILE_COMM_BYTES)
	PROFILE_FIELD("pid_t", s32, pid)
	PROFILE_FIELD("int", s32, group)
	PROFILE_FIELD("int", s32, result),
	REC->sig = sig;
	REC->errno = 0;
	REC->code = os_signal_code(info);
	SET_COMM(comm, to);
	REC->pid = os_task_tid(to);
	REC->group = of_process;
	REC->result = result < 0 ? PROFILE_SIGNAL_FAILED : result,
	("sig=%d errno=%d code=%d comm=%s pid=%d grp=%d res=%d",
	 REC->sig, REC->errno, REC->code, REC->comm, REC->pid, REC->group, REC->result))

PROFILE_EVENT(signal, signal_deliver, (s32 sig, const os_siginfo_t *info, u64 handler, u64 flags),
	(sig, info, handler, flags),
	PROFILE_FIELD("int", s32, sig)
	PROFILE_FIELD("int", s32, errno)
	PROFILE_FIELD("int", s32, code)
	PROFILE_FIELD("unsigned long", u64, sa_handler)
	PROFILE_FIELD("unsigned long", u64, sa_flags),
	REC->sig = sig;
	REC->errno = 0;
	REC->code = os_signal_code(info);
	REC->sa_handler = handler;
	REC->sa_flags = flags,
	("sig=%d errno=%d code=%d sa_handler=%lx sa_flags=%lx",
	 REC->sig, REC->errno, REC->code, REC->sa_handler, REC->sa_flags))

#define POINT_EVENT(name_)                                        \
	PROFILE_EVENT(profile, name_, (const char *name), (name), \
		      PROFILE_FIELD_STRING(name, 32),             \
		      SET_STRING(name, name), ("name=%s", __get_str(name)))

POINT_EVENT(point_begin)
POINT_EVENT(point_end)

PROFILE_EVENT(profile, sample, (u64 ip, bool user, u32 code_map), (ip, user, code_map),
	PROFILE_FIELD("unsigned long", u64, ip)
	PROFILE_FIELD("int", s32, user)
	PROFILE_FIELD("unsigned int", u32, code_map),
	REC->ip = ip;
	REC->user = user;
	REC->code_map = code_map,
	("ip=%pS user=%d code_map=%u", (void *)REC->ip, REC->user, REC->code_map))

/* Follows page_fault_user and page_fault_kernel, when the fault has been handled. */
PROFILE_EVENT(profile, page_fault_end, (os_task_t *task), (task),
	PROFILE_FIELD("unsigned int", u32, code_map),
	REC->code_map = os_task_code_map(task),
	("code_map=%u", REC->code_map))

/* clang-format on */

#undef POINT_EVENT
#undef VECTOR_EVENT
#undef FAULT_EVENT
