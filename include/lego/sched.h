/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SCHED_H
#define LEGO_SCHED_H

/*
 * Tasks (threads) and processes, and the scheduler over them: one round-robin queue per CPU,
 * wake-ups prefer an idle CPU, an idle CPU pulls from the longest queue. Real-time tasks run first,
 * on each CPU. The kernel itself is not preempted; user code is, by the tick or by a real-time task
 * that wakes.
 */

#include <asm/processor.h>
#include <asm/ptrace.h>
#include <lego/account.h>
#include <lego/atomic.h>
#include <lego/cputime.h>
#include <lego/list.h>
#include <lego/mm.h>
#include <lego/mutex.h>
#include <lego/percpu.h>
#include <lego/profile.h>
#include <lego/signal.h>
#include <lego/spinlock.h>
#include <lego/time.h>
#include <lego/timer.h>

#define TASK_COMM_LEN 16 /* with the NUL, as Linux's */

enum task_state {
	TASK_RUNNING,	    /* running or on a run queue */
	TASK_INTERRUPTIBLE, /* asleep; a signal wakes it */
	/* Asleep; apart from its event, only a signal that ends the thread wakes it. */
	TASK_KILLABLE,
	TASK_UNINTERRUPTIBLE, /* asleep; only its event wakes it */
	/* Stopped by a signal; SIGCONT or a signal that ends the thread wakes it. */
	TASK_STOPPED,
	TASK_DEAD, /* exited; its stack is freed by the next task on the CPU */
};

struct files;
struct fs_info;
struct tty;

#define RLIMIT_CPU	  0
#define RLIMIT_FSIZE	  1
#define RLIMIT_DATA	  2
#define RLIMIT_STACK	  3
#define RLIMIT_CORE	  4
#define RLIMIT_NPROC	  6
#define RLIMIT_NOFILE	  7
#define RLIMIT_AS	  9
#define RLIMIT_SIGPENDING 11
#define RLIMIT_RTPRIO	  14
#define NR_RLIMITS	  16
#define RLIM_INFINITY	  (~0ULL)

struct rlimit64 {
	u64 cur;
	u64 max;
};

/* A process's user and group IDs; creds.c has the rules. */
#define NR_GROUPS 32

struct credentials {
	u32 uid, euid, suid, fsuid;
	u32 gid, egid, sgid, fsgid;
	u32 nr_groups; /* supplementary ones */
	u32 groups[NR_GROUPS];
};

/* Calls like read() and, at [true], like write(), and the bytes that they have moved. */
struct io_counts {
	u64 nr_calls[2], nr_bytes[2];
};

static inline void io_counts_add(struct io_counts *to, const struct io_counts *from)
{
	for (u32 i = 0; i < 2; i++) {
		to->nr_calls[i] += READ_ONCE(from->nr_calls[i]);
		to->nr_bytes[i] += READ_ONCE(from->nr_bytes[i]);
	}
}

/* Adds what has been counted since the last time, up to which *summed has all. */
static inline void io_counts_sum(struct io_counts *to, const struct io_counts *from,
				 struct io_counts *summed)
{
	struct io_counts now = { 0 };

	io_counts_add(&now, from);
	for (u32 i = 0; i < 2; i++) {
		to->nr_calls[i] += now.nr_calls[i] - summed->nr_calls[i];
		to->nr_bytes[i] += now.nr_bytes[i] - summed->nr_bytes[i];
	}
	*summed = now;
}

struct process {
	pid_t pid; /* tgid of its threads */
	atomic_t refs;
	char comm[TASK_COMM_LEN];
	char *exe_path; /* for /proc/self/exe; kmalloc; guarded by lock */
	/* Change under lock; own threads read without. NULL once the last has left. */
	struct mm *mm;
	struct files *files; /* NULL, too, once no thread uses it: see open_files.c */
	struct fs_info *fs;
	u64 start_ns; /* clock_monotonic_ns() */

	/* The family, guarded by process_tree_lock: see process.h. */
	struct process *parent; /* NULL: for init, and for a process that was waited for */
	struct list_head children;
	struct list_head sibling;
	u64 child_nr;		     /* grows among the children of a parent */
	struct list_head waitable;   /* children that have something to wait for, by ->child_nr */
	struct list_head wait_node;  /* in the parent's ->waitable */
	struct list_head all_node;   /* process_list */
	struct list_head group_node; /* process_group() */
	pid_t pgid, sid;
	struct tty *tty;  /* controlling terminal, or NULL */
	bool zombie;	  /* all threads have ended, and its parent has not waited for it yet */
	bool reported;	  /* its exit report, if any, has been printed; read without the lock */
	bool has_execed;  /* its parent may no longer change its group */
	bool in_procfs;	  /* /proc may have a directory for it */
	u8 nr_execs;	  /* modulo 256: for the profiler, to distinguish its programs */
	int exit_signal;  /* to the parent, at the end; 0: none */
	int death_signal; /* to the process when its parent ends; 0: none */
	int wait_event;	  /* status of a stop or continuation not yet waited for; 0: none */

	struct mutex drop_lock; /* one thread at a time drops pending signals in steps */
	spinlock_t lock;	/* guards the fields of this group; taken with interrupts off */
	struct list_head threads;
	struct list_head thread_walks;
	unsigned int nr_threads;
	unsigned int nr_staying;   /* of these, threads that have not begun to leave */
	unsigned int nr_charged;   /* threads that its user is charged for: see user.c */
	unsigned int nr_own_files; /* threads that have a table of descriptors of their own */
	struct list_head stopped_threads; /* by stop_node; asleep, or about to be */
	unsigned int nr_stopped_threads;
	bool exiting;	/* exit_group or a fatal signal: all threads exit before user mode */
	bool stopped;	/* by a signal: threads stop before user mode */
	bool stop_told; /* all threads have stopped, and the parent was notified */
	bool continued; /* after such a stop: the first thread that continues tells the parent */
	int stop_signal;
	bool vfork_done;   /* the mm it was created with is no longer used: see fork.c */
	bool shares_files; /* CLONE_FILES: files may be another process's, too */
	int exit_status;   /* wait status: code << 8 | signal */
	struct kernel_sigaction sigactions[NR_SIGNALS];
	struct sigpending pending; /* for any thread */
	u64 thread_signals;	   /* signals that may be pending for single threads */
	u64 nr_thread_signals;	   /* how often one became so */
	u64 blocked_by_all;	   /* signals that no thread takes; there may be others */
	struct signal_search search;
	struct signal_counts signal_counts;
	struct group_account group;
	struct fault_counts exited_faults; /* of threads that are gone */
	/*
	 * Of threads that are gone, of children that were waited for, and of other threads what
	 * their summed_io has.
	 */
	struct io_counts summed_io;
	struct cpu_times cpu_times;    /* as last returned */
	u64 max_pages;		       /* the most pages that any former mm had mapped at a time */
	u64 peak_of_kind[NR_MM_KINDS]; /* the pages of that mm then */
	/*
	 * Sums over the children that were waited for and their descendants; max_pages is a
	 * maximum.
	 */
	u64 children_user_ns, children_system_ns, children_faults, children_max_pages;
	u64 children_voluntary, children_involuntary; /* context switches */
	struct rlimit64 rlimits[NR_RLIMITS];
	struct credentials creds;
	int nice;	   /* setpriority(): only stored */
	bool is_subreaper; /* prctl(): gets the children of descendants that end */
	/* prctl(): set-user-ID and set-group-ID bits of programs have no effect. */
	bool no_new_privs;
	bool keeps_caps;     /* prctl(): only stored, until exec: there are none to keep */
	bool no_large_pages; /* prctl(): only stored, as there are none */
	bool not_dumpable;   /* only root may inspect it; prctl(), or a change of user or group */
	u32 rights_version;  /* raised when others lose the right to inspect it: creds.c */

	/* setitimer(ITIMER_REAL); guarded by lock. */
	struct timer real_timer;
	struct timer_setting real;
	struct signal_owner alarm;

	/*
	 * setitimer(ITIMER_VIRTUAL and _PROF); guarded by lock; the tick also reads them without
	 * it.
	 */
	struct cpu_itimer {
		u64 left_ns; /* 0: off */
		u64 interval_ns;
	} cpu_timers[2];

	struct posix_timers *posix_timers; /* timer_create()'s; NULL: none; guarded by lock */
	/* Those on clocks of CPU time. The tick reads the number without the lock. */
	unsigned int nr_cpu_timers;

	struct timer late_kill_timer;	/* not set up until a signal kills the process */
	struct wait_queue exit_wait;	/* woken when a thread is gone */
	struct wait_queue child_wait;	/* woken when a child has something to wait for */
	struct profile_process profile; /* the last member: see process_alloc() */
};

struct task {
	struct thread_struct thread; /* arch: stack pointer, FS/GS base, FPU */
	void *kernel_stack;	     /* lowest address; KERNEL_STACK_SIZE bytes */
	pid_t pid;		     /* tid */
	pid_t process_pid; /* 0: kernel thread; stays when the thread has left its process */
	char comm[TASK_COMM_LEN];
	struct process *proc; /* NULL: kernel thread */
	struct mm *mm;	      /* proc's, or NULL */
	/* Changes under proc->lock; the thread itself reads without. proc's, or NULL. */
	struct files *files;
	bool has_own_files; /* files is not proc's, and there is a reference */
	atomic_t refs;
	struct list_head thread_node; /* proc->threads, or kernel_threads */
	struct list_head all_node;    /* task_list */

	/* Guarded by the run queue lock of ->cpu. */
	struct list_head run_node;
	int state; /* enum task_state */
	unsigned int cpu;
	bool on_rq;
	bool on_cpu;	   /* still on its stack; cleared by the next task after the switch */
	bool memory_short; /* own use: took from the memory reserve, waits before user mode */
	u8 policy;	   /* SCHED_* */
	u8 rt_priority;	   /* of a real-time task: 1 to 99; others: 0 */
	bool yields;	   /* called sched_yield(); only real-time tasks clear it */
	bool rr_expired;   /* its slice has ended, and equals wait */
	bool was_preempted;
	bool reset_on_fork; /* its children get SCHED_OTHER */
	cpumask_t cpus_allowed;
	u64 slice_end_ns;
	u64 rr_end_cycles;     /* SCHED_RR: the end of its slice in sum_exec_cycles; 0: not begun */
	const char *wait_name; /* what it waits for: see task_waits_for(); NULL: unknown */
	u64 wait_addr;
	u64 sum_exec_cycles; /* time on a CPU */
	u64 exec_start_cycles;
#ifdef PROFILE_ANY
	u64 off_cycles; /* exec_start_cycles - sum_exec_cycles: see os_off_cycles() */
#endif
	u64 sum_ready_cycles; /* time ready without a CPU, but not the current one */
	u64 ready_since_cycles;
	/*
	 * Time by owner. While it runs, the CPU's sums at the switch are subtracted, and the rest
	 * is in these sums.
	 */
	struct cputime cputime;
	u32 cputime_owner;		  /* while it does not run */
	struct group_account *group;	  /* its process's, if it adds to that; own use */
	u64 nr_voluntary, nr_involuntary; /* switches to other tasks */

	/*
	 * What is to be done before user mode, in one word: see exit_to_user_mode(). Other threads
	 * set `killed` and `signal_pending` with proc->lock held; the thread itself reads without.
	 */
	union {
		struct {
			bool killed;	     /* exit */
			bool need_resched;   /* call schedule(); guarded by the run queue lock */
			bool signal_pending; /* a signal or a stop: see signal_deliver() */
			bool rseq_event;     /* switched out since user mode was left: see rseq.c */
			bool has_new_frame;  /* a call changed the registers: only IRET loads all */
		};
		u64 user_work;
	};
	bool is_gone;	  /* what it still does is the kernel's; it reads its process no more */
	bool took_signal; /* killed by a signal of its own: its call returns an error as usual */

	/* Signals, guarded by proc->lock; the thread itself may read the masks without. */
	struct sigpending pending;
	u64 blocked_signals;
	u64 saved_blocked; /* with has_saved_blocked: the mask to restore after a temporary one */
	bool has_saved_blocked;
	struct list_head stop_node; /* in proc->stopped_threads, while it is stopped */
	/*
	 * For futex_pi.c. The thread sets pi_exited before it looks at has_pi_waiters; another one
	 * sets has_pi_waiters, and looks at pi_exited then.
	 */
	bool pi_exited, has_pi_waiters;
	u64 waited_signals; /* blocked signals that sigtimedwait waits for */
	struct kernel_sigaltstack altstack;

	/* How restart_syscall() continues a call: ERESTART_RESTARTBLOCK. */
	struct {
		long (*fn)(struct task *task);
		u64 nr; /* of the system call */
		u64 deadline_ns;
		void __user *arg;
		u32 nr_fds; /* poll: at arg */
		u64 clock;
		u32 value, bitset; /* futex */
		bool private;
	} restart;

	struct cpu_times cpu_times; /* as last returned */
	struct fault_counts faults; /* successful page faults */
	struct io_counts io, summed_io;

	u64 call_bytes; /* memory that its system call holds while it sleeps; oom_count.c */

	/* Used by the thread itself only. */
	u64 slack_ns, default_slack_ns; /* prctl(): only stored, as timers are exact */
	u32 __user *set_child_tid;	/* where the new thread stores its number at its start */
	u32 __user *clear_child_tid;	/* futexes of other threads compare it, too */
	void __user *robust_list;
	void __user *rseq_area;
	u32 rseq_len, rseq_sig;
	u32 rseq_cpu;		     /* the value of cpu_id in rseq_area */
	u32 personality;	     /* 0 or ADDR_NO_RANDOMIZE: see prctl.c */
	struct lock_stack locks;     /* own use */
	struct profile_task profile; /* the last member: see task_alloc() */
};

DECLARE_PER_CPU(struct task *, current_task);
#define current this_cpu_read(current_task)

/*
 * All tasks, and the kernel's threads by thread_node; guarded by task_list_lock (interrupts off).
 */
extern struct list_head task_list, kernel_threads;
extern spinlock_t task_list_lock;

/* Adds a task to task_list, or removes it. */
void task_list_add(struct task *task);
void task_list_remove(struct task *task);

/*
 * Calls fn for all tasks with task_list_lock held. After a few of them the lock is free for a
 * moment, and interrupts are on if the caller has them on. Tasks that are created meanwhile are
 * last. Any context but NMI.
 */
void task_for_each(void (*fn)(struct task *task));

static inline struct pt_regs *task_pt_regs(const struct task *task)
{
	return (struct pt_regs *)((char *)task->kernel_stack + KERNEL_STACK_SIZE) - 1;
}

/* Returns true if the task must exit: it does not enter user mode again. */
static inline bool task_killed(const struct task *task)
{
	return READ_ONCE(task->killed);
}

/* Returns true if an interruptible sleep must end, with -ERESTARTSYS or a similar error. */
static inline bool task_interrupted(const struct task *task)
{
	return READ_ONCE(task->signal_pending) || task_killed(task);
}

void sched_init(void);				/* run queues and the boot CPU's idle task */
void sched_init_cpu(void);			/* the running secondary CPU's */
struct task *sched_idle_task(unsigned int cpu); /* allocated on first use; for smp.c: its stack */
void cpu_idle(void) __noreturn;			/* the idle loop: hlt until there is work */

/*
 * Sets what the current task is about to sleep for: a name that is never freed, and a user address
 * or 0. It is valid until the task returns from its next schedule().
 */
static inline void task_waits_for(const char *name, u64 addr)
{
	current->wait_name = name;
	current->wait_addr = addr;
}

/*
 * Gives up the CPU; if ->state is not TASK_RUNNING, until woken. Process context, no spinlock held.
 */
void schedule(void);
static inline void sched_yield(void)
{
	current->yields = true;
	schedule();
}

/*
 * Sleeps at most ns, or until woken. The caller has set ->state. Returns the nanoseconds left, 0
 * after the whole time.
 */
u64 schedule_timeout_ns(u64 ns);

/*
 * Returns true if a task is on no CPU, and stores whether it sleeps or waits for a CPU. The result
 * may be outdated at once. Any context but NMI.
 */
bool task_is_off_cpu(struct task *task, bool *asleep);

/*
 * Makes a sleeping task runnable. Returns true if it slept. Any context but NMI; also with
 * interrupts off.
 */
bool task_wake(struct task *task);

/*
 * Called after ->signal_pending (or, if fatal, ->killed) was set: ends a sleep that this may end,
 * or interrupts the task's CPU. Same contexts as task_wake().
 */
void task_kick(struct task *task);
void task_kick_fatal(struct task *task);

/* Returns roughly how many tasks run or are ready on a CPU now. */
unsigned int sched_nr_runnable(unsigned int cpu);

/* Returns the number of context switches so far, on all CPUs. */
u64 sched_nr_switches(void);

/* Returns all of a task's time on a CPU so far, in TSC cycles. Any context but NMI. */
u64 task_exec_cycles(struct task *task);

/* Restricts a task to the CPUs in the mask, at least one of which is online. Process context. */
void sched_set_affinity(struct task *task, cpumask_t cpus);

/* Linux's scheduling policies that are supported. */
#define SCHED_OTHER 0
#define SCHED_FIFO  1
#define SCHED_RR    2

/* Sets a task's policy, and its priority if that is a real-time policy, else 0. Process context. */
void sched_set_policy(struct task *task, int policy, unsigned int priority, bool reset_on_fork);

/* Gives a new task, which has not run yet, its parent's policy. */
void sched_inherit_policy(struct task *task, const struct task *parent);

/* The slice of SCHED_RR; 0 for SCHED_FIFO, which has none. */
u64 sched_rr_interval_ns(const struct task *task);

/*
 * The longest time that a CPU gives real-time tasks in each period while others wait; -1: all.
 */
extern int sched_rt_period_us, sched_rt_runtime_us;

void sched_tick(void); /* from the timer interrupt */
#define need_resched() READ_ONCE(current->need_resched)
#define cond_resched()              \
	do {                        \
		if (need_resched()) \
			schedule(); \
	} while (0)

/* The first code of a new task after the switch to it. Called by arch. */
void schedule_tail(void);

/* Creates a kernel thread that runs fn(arg) once woken. ERR_PTR on failure. */
struct task *kthread_create(int (*fn)(void *arg), void *arg, const char *name);

/*
 * Starts pid 1: a new process whose first thread executes argv[0] from the ramfs. Returns 0 or a
 * negative errno.
 */
int process_start_init(const char *const *argv, const char *const *envp);

/*
 * Ends the current thread. status is as in exit_status, for the process if the thread is its last.
 */
void task_exit(int status) __noreturn;

/* Ends the whole process: all threads exit. Returns; the caller exits on its way to user mode. */
void process_kill(struct process *proc, int status);

/*
 * Handles a fatal signal from a fault in user code: logs one line, then calls process_kill(). regs
 * are the user's.
 */
void process_fault(int signal, const char *why, u64 addr, struct pt_regs *regs);

void task_get(struct task *task);
void task_put(struct task *task);

/*
 * Returns true if there is work before user mode. Interrupts are off: whoever adds some later also
 * interrupts this CPU, which takes the interrupt as soon as it is in user mode.
 */
static __always_inline bool has_user_work(const struct task *task)
{
	return READ_ONCE(task->user_work);
}

/*
 * Does this work: exits if killed, reschedules, handles signals. Called by arch at every return to
 * user mode. Interrupts are off at call and return.
 */
void exit_to_user_mode(struct pt_regs *regs);
/* The same, after a system call. Returns true if SYSRET can load the frame. */
bool exit_call_to_user_mode(struct pt_regs *regs);

#endif
