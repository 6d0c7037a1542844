/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SCHED_H
#define LEGO_SCHED_H

/*
 * Tasks (threads) and processes, and the scheduler over them: one round-robin queue per CPU,
 * wake-ups prefer an idle CPU, an idle CPU pulls from the longest queue. The kernel itself is
 * not preempted; user code is, by the tick.
 */

#include <asm/processor.h>
#include <asm/ptrace.h>
#include <lego/atomic.h>
#include <lego/list.h>
#include <lego/mm.h>
#include <lego/percpu.h>
#include <lego/profile.h>
#include <lego/spinlock.h>
#include <lego/time.h>
#include <lego/timer.h>

#define TASK_COMM_LEN 16 /* with the NUL, as Linux's */
#define NR_SIGNALS    64

enum task_state {
	TASK_RUNNING,	      /* running or on a run queue */
	TASK_INTERRUPTIBLE,   /* asleep; a fatal signal wakes it */
	TASK_UNINTERRUPTIBLE, /* asleep; only its event wakes it */
	TASK_DEAD,	      /* exited; its stack is freed by the next task on the CPU */
};

struct files;

/* Linux's struct sigaction as the kernel call sees it. */
struct kernel_sigaction {
	u64 handler;
	u64 flags;
	u64 restorer;
	u64 mask;
};

#define RLIMIT_STACK  3
#define RLIMIT_NOFILE 7
#define NR_RLIMITS    16

struct rlimit64 {
	u64 cur;
	u64 max;
};

struct process {
	pid_t pid; /* tgid of its threads */
	atomic_t refs;
	char comm[TASK_COMM_LEN];
	char *exe_path; /* for /proc/self/exe; kmalloc */
	struct mm *mm;
	struct files *files;

	spinlock_t lock; /* guards the fields of this group; taken with interrupts off */
	struct list_head threads;
	unsigned int nr_threads;
	bool exiting;	 /* exit_group or a fatal signal: every thread leaves at its next chance */
	int exit_status; /* wait status: code << 8 | signal */
	struct kernel_sigaction sigactions[NR_SIGNALS];
	u64 exited_exec_cycles; /* CPU time of threads that are gone */
	struct rlimit64 rlimits[NR_RLIMITS];

	struct wait_queue exit_wait; /* woken when a thread is gone */
	struct profile_process profile;
};

struct task {
	struct thread_struct thread; /* arch: stack pointer, FS/GS base, FPU */
	void *kernel_stack;	     /* lowest address; KERNEL_STACK_SIZE bytes */
	pid_t pid;		     /* tid */
	char comm[TASK_COMM_LEN];
	struct process *proc; /* NULL: kernel thread */
	struct mm *mm;	      /* proc's, or NULL */
	atomic_t refs;
	struct list_head thread_node; /* proc->threads */
	struct list_head all_node;    /* task_list */

	/* Guarded by the run queue lock of ->cpu. */
	struct list_head run_node;
	int state; /* enum task_state */
	unsigned int cpu;
	bool on_rq;
	bool on_cpu; /* still on its stack; cleared by the next task after the switch */
	bool need_resched;
	cpumask_t cpus_allowed;
	u64 slice_end_ns;
	u64 sum_exec_cycles; /* time on a CPU */
	u64 exec_start_cycles;

	/* Own use by the thread itself. */
	bool killed; /* set by others: leave at the next chance */
	u64 blocked_signals;
	u64 pending_signals; /* sent while blocked; atomic */
	u32 __user *clear_child_tid;
	void __user *robust_list;
	void __user *rseq_area;
	u32 rseq_len, rseq_sig;
	u32 rseq_cpu;	 /* what cpu_id in rseq_area says */
	bool rseq_event; /* switched out since user mode was left: see rseq.c */
	struct profile_task profile;
};

DECLARE_PER_CPU(struct task *, current_task);
#define current this_cpu_read(current_task)

/* All tasks, for sysrq; guarded by task_list_lock (interrupts off). */
extern struct list_head task_list;
extern spinlock_t task_list_lock;

static inline struct pt_regs *task_pt_regs(const struct task *task)
{
	return (struct pt_regs *)((char *)task->kernel_stack + KERNEL_STACK_SIZE) - 1;
}

/* True when the task has to leave: sleeps end with -EINTR, user mode is not entered again. */
static inline bool task_interrupted(const struct task *task)
{
	return READ_ONCE(task->killed);
}

void sched_init(void);				/* run queues and the boot CPU's idle task */
void sched_init_cpu(void);			/* the running secondary CPU's */
struct task *sched_idle_task(unsigned int cpu); /* allocated on first use; for smp.c: its stack */
void cpu_idle(void) __noreturn;			/* the idle loop: hlt until there is work */

/*
 * Give up the CPU; with ->state not TASK_RUNNING, until woken. Process context, no spinlock
 * held.
 */
void schedule(void);
void sched_yield(void);

/*
 * Sleep at most ns, or until woken; ->state set before by the caller. Nanoseconds left, 0 when
 * all slept.
 */
u64 schedule_timeout_ns(u64 ns);

/* Make a sleeping task run. True if it slept. Any context but NMI; callable with interrupts off. */
bool task_wake(struct task *task);

/* For a task told to leave: end an interruptible sleep, or make its CPU look. As task_wake. */
void task_kick(struct task *task);

/* Time on a CPU so far, in TSC cycles. */
u64 task_exec_cycles(struct task *task);

/* Restrict a task to the CPUs in the mask, at least one of them online. Process context. */
void sched_set_affinity(struct task *task, cpumask_t cpus);

void sched_tick(void); /* from the timer interrupt */
#define need_resched() READ_ONCE(current->need_resched)
#define cond_resched()              \
	do {                        \
		if (need_resched()) \
			schedule(); \
	} while (0)

/* First code of a new task after the switch to it (arch calls it). */
void schedule_tail(void);

/* A kernel thread running fn(arg); not yet woken. ERR_PTR on failure. */
struct task *kthread_create(int (*fn)(void *arg), void *arg, const char *name);

/* pid 1: a new process whose first thread executes argv[0] from the ramfs. 0 or negative errno. */
int process_start_init(const char *const *argv, const char *const *envp);

/* Last call of a thread: status as in exit_status, for its process if it is the last one. */
void task_exit(int status) __noreturn;

/*
 * End the whole process; other threads are made to leave. Returns (the caller leaves on its way
 * to user).
 */
void process_kill(struct process *proc, int status);

/*
 * A fatal signal from a fault in user code: logs one line, then process_kill. regs: user
 * registers.
 */
void process_fault(int signal, const char *why, u64 addr, struct pt_regs *regs);

void task_get(struct task *task);
void task_put(struct task *task);

/*
 * Work left before user mode, interrupts off at call and return: reschedule, leave when killed.
 * Arch calls it.
 */
void exit_to_user_mode(struct pt_regs *regs);

#endif
