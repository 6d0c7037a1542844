// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/<pid>/comm, stat, statm and status, in Linux's formats (proc(5)), and those of threads in
 * task/<tid>.
 */

#include "internal.h"

#include <lego/account.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/string.h>
#include <lego/tty.h>

/* A snapshot of a process, so that the numbers of a line are consistent. */
struct snapshot {
	char comm[TASK_COMM_LEN];
	char state;
	pid_t pid, ppid, pgid, sid; /* pid: the process's */
	pid_t tid;
	u32 tty;
	pid_t tty_pgid;
	unsigned int nr_threads, cpu, policy, rt_priority;
	u64 start_ns;
	struct cpu_times times;
	u64 children_user_ns, children_system_ns;
	u64 nr_faults, nr_children_faults;
	u64 pending, blocked, ignored, caught;
	int exit_signal, exit_status;
	struct credentials creds;
	u64 vm_bytes, nr_pages, stack_bytes, data_bytes, text_bytes;
	struct mm_layout layout;
	u64 brk_start;
};

static char task_state_letter(const struct task *task)
{
	switch (READ_ONCE(task->state)) {
	case TASK_RUNNING:
		return 'R';
	case TASK_INTERRUPTIBLE:
		return 'S';
	case TASK_STOPPED:
		return 'T';
	default:
		return 'D';
	}
}

/*
 * Adds a thread to the snapshot. The state of a process is that of its first thread, which may have
 * ended before others.
 */
static void look_at_thread(struct process *proc, struct snapshot *snap)
{
	struct task *task = process_thread(proc, snap->tid);

	snap->state = 'Z';
	snap->nr_threads = proc->nr_threads;
	snap->pending = proc->pending.set;
	if (!task)
		return;
	snap->state = task_state_letter(task);
	snap->cpu = READ_ONCE(task->cpu);
	snap->policy = task->policy;
	snap->rt_priority = task->rt_priority;
	snap->blocked = task->blocked_signals;
	snap->pending |= signal_pending_of(task);
}

/* Replaces the process's values in the snapshot by those of the thread. */
static bool look_at_own(struct process *proc, struct snapshot *snap)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct task *task = process_thread(proc, snap->tid);

	if (task) {
		memcpy(snap->comm, task->comm, sizeof(snap->comm));
		task_cpu_times(task, &snap->times);
		snap->nr_faults = fault_counts_sum(&task->faults);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return task;
}

static void look_at_signals(const struct process *proc, struct snapshot *snap)
{
	for (int sig = 1; sig <= NR_SIGNALS; sig++) {
		u64 handler = proc->sigactions[sig - 1].handler;

		if (handler == SIG_IGN)
			snap->ignored |= SIGNAL_BIT(sig);
		else if (handler != SIG_DFL)
			snap->caught |= SIGNAL_BIT(sig);
	}
}

static void look_at_family(struct process *proc, struct snapshot *snap)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);

	snap->pid = proc->pid;
	snap->ppid = proc->parent ? proc->parent->pid : 0;
	snap->pgid = proc->pgid;
	snap->sid = proc->sid;
	snap->tty = proc->tty ? tty_number(proc->tty) : 0;
	snap->tty_pgid = proc->tty ? tty_foreground_pgid(proc->tty) : -1;
	snap->exit_signal = proc->exit_signal;
	snap->children_user_ns = proc->children_user_ns;
	snap->children_system_ns = proc->children_system_ns;
	spin_unlock_irqrestore(&process_tree_lock, flags);
}

static void look_at_area(const struct mm *mm, const struct mm_area_info *area,
			 struct snapshot *snap)
{
	u64 bytes = area->end - area->start;

	snap->vm_bytes += bytes;
	if (area->start <= mm->layout.start_stack && mm->layout.start_stack < area->end)
		snap->stack_bytes += bytes;
	else if (area->prot & PROT_WRITE)
		snap->data_bytes += bytes;
	else if (area->prot & PROT_EXEC)
		snap->text_bytes += bytes;
}

static void look_at_areas(struct mm *mm, struct snapshot *snap)
{
	struct mm_area_info areas[8];
	u64 addr = 0;
	unsigned int nr;

	while ((nr = mm_get_areas(mm, addr, areas, ARRAY_SIZE(areas)))) {
		for (unsigned int i = 0; i < nr; i++)
			look_at_area(mm, &areas[i], snap);
		addr = areas[nr - 1].end;
		mm_put_areas(areas, nr);
		cond_resched();
	}
}

static void look_at_memory(struct process *proc, struct snapshot *snap)
{
	struct mm *mm = process_get_mm(proc);

	if (!mm)
		return;
	look_at_areas(mm, snap);
	snap->nr_pages = READ_ONCE(mm->nr_pages);
	snap->layout = mm->layout;
	snap->brk_start = mm->brk_start;
	mm_put(mm);
}

/* Takes a snapshot. Returns 0, or -ESRCH if there is no such thread. */
static int take_snapshot(struct process *proc, pid_t tid, struct snapshot *snap)
{
	u64 events[NR_CPU_EVENTS];
	unsigned long flags;

	*snap = (struct snapshot){ .tid = tid ?: proc->pid };
	look_at_family(proc, snap);
	flags = spin_lock_irqsave(&proc->lock);
	memcpy(snap->comm, proc->comm, sizeof(snap->comm));
	look_at_thread(proc, snap);
	snap->nr_children_faults = proc->children_faults;
	look_at_signals(proc, snap);
	snap->start_ns = proc->start_ns;
	snap->exit_status = proc->exit_status;
	snap->creds = proc->creds;
	spin_unlock_irqrestore(&proc->lock, flags);
	look_at_memory(proc, snap);
	if (tid)
		return look_at_own(proc, snap) ? 0 : -ESRCH;
	process_cpu_times(proc, &snap->times, events);
	snap->nr_faults = events[CPU_FAULTS];
	return 0;
}

#define U64(x) ((unsigned long long)(x))

int proc_show_comm(struct text *text, struct process *proc, pid_t tid)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	const struct task *task = tid ? process_thread(proc, tid) : NULL;
	char comm[TASK_COMM_LEN];

	memcpy(comm, task ? task->comm : proc->comm, sizeof(comm));
	spin_unlock_irqrestore(&proc->lock, flags);
	if (tid && !task)
		return -ESRCH;
	text_printf(text, "%pE\n", comm);
	return 0;
}

int proc_write_comm(const char *text, struct process *proc, pid_t tid)
{
	return process_name_thread(proc, tid ?: proc->pid, text);
}

int proc_show_stat(struct text *text, struct process *proc, pid_t tid)
{
	struct snapshot s;
	u32 version;
	bool allowed = process_may_inspect(proc, &version);
	int error = take_snapshot(proc, tid, &s);

	if (error)
		return error;
	if (!allowed || !process_was_inspected(proc, version)) {
		/* As in Linux, 1 says that there is a program. */
		s.layout = (struct mm_layout){
			.start_code = !!s.layout.start_code,
			.end_code = !!s.layout.end_code,
		};
		s.brk_start = 0;
		s.exit_status = 0;
	}
	/* pid comm state ppid pgrp session tty_nr tpgid flags minflt cminflt majflt cmajflt */
	text_printf(text, "%d (%pE) %c %d %d %d %u %d 0 %llu %llu 0 0", s.tid, s.comm, s.state,
		    s.ppid, s.pgid, s.sid, s.tty, s.tty_pgid, U64(s.nr_faults),
		    U64(s.nr_children_faults));
	/* utime stime cutime cstime priority nice num_threads itrealvalue starttime */
	text_printf(text, " %llu %llu %llu %llu %d 0 %u 0 %llu",
		    U64(proc_clock_ticks(s.times.user_ns)),
		    U64(proc_clock_ticks(s.times.system_ns)),
		    U64(proc_clock_ticks(s.children_user_ns)),
		    U64(proc_clock_ticks(s.children_system_ns)),
		    s.rt_priority ? -1 - (int)s.rt_priority : 20, s.nr_threads,
		    U64(proc_clock_ticks(s.start_ns)));
	/* vsize rss rsslim startcode endcode startstack kstkesp kstkeip */
	text_printf(text, " %llu %llu %llu %llu %llu %llu 0 0", U64(s.vm_bytes), U64(s.nr_pages),
		    ~0ull, U64(s.layout.start_code), U64(s.layout.end_code),
		    U64(s.layout.start_stack));
	/* signal blocked sigignore sigcatch: the first 31; wchan nswap cnswap */
	text_printf(text, " %llu %llu %llu %llu 0 0 0", U64(s.pending & 0x7fffffff),
		    U64(s.blocked & 0x7fffffff), U64(s.ignored & 0x7fffffff),
		    U64(s.caught & 0x7fffffff));
	/* exit_signal processor rt_priority policy, block I/O, guests, start_data end_data */
	text_printf(text, " %d %u %u %u 0 0 0 0 0", s.exit_signal, s.cpu, s.rt_priority, s.policy);
	text_printf(text, " %llu %llu %llu %llu %llu %d\n", U64(s.brk_start),
		    U64(s.layout.arg_start), U64(s.layout.arg_end), U64(s.layout.env_start),
		    U64(s.layout.env_end), s.exit_status);
	return 0;
}

/* size resident shared text lib data dt, in pages. */
int proc_show_statm(struct text *text, struct process *proc)
{
	struct snapshot s;

	take_snapshot(proc, 0, &s);
	text_printf(text, "%llu %llu 0 %llu 0 %llu 0\n", U64(s.vm_bytes / PAGE_SIZE),
		    U64(s.nr_pages), U64(s.text_bytes / PAGE_SIZE),
		    U64((s.data_bytes + s.stack_bytes) / PAGE_SIZE));
	return 0;
}

static const char *state_name(char letter)
{
	switch (letter) {
	case 'R':
		return "R (running)";
	case 'S':
		return "S (sleeping)";
	case 'D':
		return "D (disk sleep)";
	case 'T':
		return "T (stopped)";
	default:
		return "Z (zombie)";
	}
}

static unsigned int count_fd_slots(struct process *proc)
{
	struct files *files = process_get_files(proc, proc->pid);
	unsigned int nr = 0;

	if (files) {
		nr = files_nr_slots(files);
		files_put(files);
	}
	return nr;
}

int proc_show_status(struct text *text, struct process *proc, pid_t tid)
{
	struct snapshot s;
	int error = take_snapshot(proc, tid, &s);

	if (error)
		return error;
	text_printf(text, "Name:\t%pE\nState:\t%s\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\nTracerPid:\t0\n",
		    s.comm, state_name(s.state), s.pid, s.tid, s.ppid);
	text_printf(text, "Uid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n", s.creds.uid, s.creds.euid,
		    s.creds.suid, s.creds.fsuid, s.creds.gid, s.creds.egid, s.creds.sgid,
		    s.creds.fsgid);
	if (s.state != 'Z') {
		text_printf(text, "FDSize:\t%u\n", count_fd_slots(proc));
		text_printf(text, "VmSize:\t%8llu kB\nVmRSS:\t%8llu kB\n", U64(s.vm_bytes >> 10),
			    U64(s.nr_pages * PAGE_SIZE >> 10));
		text_printf(text, "VmData:\t%8llu kB\nVmStk:\t%8llu kB\nVmExe:\t%8llu kB\n",
			    U64(s.data_bytes >> 10), U64(s.stack_bytes >> 10),
			    U64(s.text_bytes >> 10));
	}
	text_printf(text, "Threads:\t%u\nSigPnd:\t%016llx\nSigBlk:\t%016llx\n", s.nr_threads,
		    U64(s.pending), U64(s.blocked));
	text_printf(text, "SigIgn:\t%016llx\nSigCgt:\t%016llx\n", U64(s.ignored), U64(s.caught));
	return 0;
}

static void sum_io(struct task *task, void *unused)
{
	io_counts_sum(&task->proc->summed_io, &task->io, &task->summed_io);
}

/*
 * There are no disks. As on Linux, a process includes threads that are gone and children that were
 * waited for; a thread has its own counts.
 */
int proc_show_io(struct text *text, struct process *proc, pid_t tid)
{
	struct io_counts io = { 0 };
	const struct task *task;
	unsigned long flags;

	if (!tid)
		process_for_each_thread(proc, 128, sum_io, NULL);
	flags = spin_lock_irqsave(&proc->lock);
	task = tid ? process_thread(proc, tid) : NULL;
	if (task)
		io_counts_add(&io, &task->io);
	else if (!tid)
		io = proc->summed_io;
	spin_unlock_irqrestore(&proc->lock, flags);
	if (tid && !task)
		return -ESRCH;
	text_printf(text, "rchar: %llu\nwchar: %llu\nsyscr: %llu\nsyscw: %llu\n",
		    U64(io.nr_bytes[false]), U64(io.nr_bytes[true]), U64(io.nr_calls[false]),
		    U64(io.nr_calls[true]));
	text_printf(text, "read_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n");
	return 0;
}

/*
 * Nanoseconds on CPUs, nanoseconds ready without a CPU, and how often the thread was put on a CPU.
 * For a process, that of its first thread.
 */
int proc_show_schedstat(struct text *text, struct process *proc, pid_t tid)
{
	struct cpu_times times = { 0 };
	u64 events[NR_CPU_EVENTS] = { 0 }, nr = 0, ready_ns = 0;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct task *task = process_thread(proc, tid ?: proc->pid);

	if (task) {
		task_cpu_times(task, &times);
		task_add_events(task, events);
		ready_ns = cycles_to_ns(READ_ONCE(task->sum_ready_cycles));
		nr = events[CPU_VOLUNTARY] + events[CPU_INVOLUNTARY] + READ_ONCE(task->on_cpu);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	if (!task)
		return -ESRCH;
	text_printf(text, "%llu %llu %llu\n", U64(times.user_ns + times.system_ns), U64(ready_ns),
		    U64(nr));
	return 0;
}

/* The names and units of limits, by RLIMIT_*. */
static const struct {
	const char *name, *unit;
} limits[NR_RLIMITS] = {
	{ "Max cpu time", "seconds" },	   { "Max file size", "bytes" },
	{ "Max data size", "bytes" },	   { "Max stack size", "bytes" },
	{ "Max core file size", "bytes" }, { "Max resident set", "bytes" },
	{ "Max processes", "processes" },  { "Max open files", "files" },
	{ "Max locked memory", "bytes" },  { "Max address space", "bytes" },
	{ "Max file locks", "locks" },	   { "Max pending signals", "signals" },
	{ "Max msgqueue size", "bytes" },  { "Max nice priority", NULL },
	{ "Max realtime priority", NULL }, { "Max realtime timeout", "us" },
};

static void show_limit(struct text *text, u64 value)
{
	if (value == RLIM_INFINITY)
		text_printf(text, "%-20s ", "unlimited");
	else
		text_printf(text, "%-20llu ", U64(value));
}

int proc_show_limits(struct text *text, struct process *proc)
{
	struct rlimit64 values[NR_RLIMITS];
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	memcpy(values, proc->rlimits, sizeof(values));
	spin_unlock_irqrestore(&proc->lock, flags);
	text_printf(text, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit",
		    "Units");
	for (unsigned int i = 0; i < NR_RLIMITS; i++) {
		text_printf(text, "%-25s ", limits[i].name);
		show_limit(text, values[i].cur);
		show_limit(text, values[i].max);
		text_printf(text, limits[i].unit ? "%-10s\n" : "\n", limits[i].unit);
	}
	return 0;
}
