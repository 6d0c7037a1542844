/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_CPUTIME_H
#define LEGO_CPUTIME_H

/*
 * CPU time by owner: every cycle of a CPU belongs to one of these. The entry code reads the clock
 * where the CPU crosses between user and kernel (arch/x86/entry/entry.S), schedule() where it
 * changes threads. What is left over is CPUTIME_SYSTEM: the system calls of a user thread, all of a
 * kernel thread, or the idle loop.
 *
 * The clock is the TSC without the time of this CPU's NMIs, so an NMI takes nothing from the owner
 * that it interrupts. At the end of an owner's time the clock is added to the owner's sum, at the
 * beginning it is subtracted: one instruction each, so that interrupts and NMIs cannot tear them.
 * A sum is negative, as a signed number, while its owner's time runs, because the total is less
 * than the clock.
 *
 * Without CONFIG_CPU_ACCOUNTING, each tick adds its whole period to the owner that it interrupts.
 */

#define CPUTIME_SYSTEM	  0 /* has no sum */
#define CPUTIME_USER	  1
#define CPUTIME_FAULT	  2 /* page faults, of user code and of the kernel */
#define CPUTIME_EXCEPTION 3 /* other exceptions */
#define CPUTIME_IRQ	  4
#define CPUTIME_NMI	  5
#define CPUTIME_REPORT	  6 /* printing of reports on the console */
#define CPUTIME_EXIT	  7 /* the end of a thread, after its last account */
#define NR_CPUTIMES	  8

#ifndef __ASSEMBLY__
#include <asm/tsc.h>
#include <lego/percpu.h>
#include <lego/smp.h>
#include <lego/spinlock.h>

struct task;

/* Sums of cycles. */
struct cputime {
	u64 cycles[NR_CPUTIMES];
};

/* Events that are counted like CPU time: by CPUs, for the threads that they run. */
enum cpu_event {
	CPU_VOLUNTARY, /* switches to other tasks */
	CPU_INVOLUNTARY,
	CPU_FAULTS, /* successful page faults */
	NR_CPU_EVENTS,
};

/* Sums of cycles and events. */
struct cpu_sums {
	struct cputime time; /* but CPUTIME_SYSTEM */
	u64 exec_cycles;     /* all time on CPUs */
	u64 events[NR_CPU_EVENTS];
};

/*
 * The sums of all threads of a process, from its second thread on, so that nobody has to visit the
 * threads. A CPU subtracts its account when it begins to run one of them, and adds it when it
 * begins to run a task that is not one of them.
 */
struct group_account {
	spinlock_t lock; /* innermost: taken with a run queue's lock held, interrupts off */
	bool has_begun;	 /* the second thread has been added, or the only one has ended */
	cpumask_t cpus;	 /* that run one of the threads; what they have done is not yet in sums */
	struct cpu_sums sums;
};

/* The account of a CPU. Only the CPU itself writes to it, with interrupts off. */
struct cpu_account {
	struct cputime sums;
	u64 events[NR_CPU_EVENTS];
	u64 entry_cycles; /* TSC at the entry of the system call that has just begun */
	u32 owner;	  /* the present one in the kernel */
	u32 interrupted;  /* the owner that the running handler of an interrupt has interrupted */
	u64 nr_ticks;
	u64 start_cycles; /* TSC */
} __attribute__((__aligned__(64)));

DECLARE_PER_CPU(struct cpu_account, cpu_account);

/*
 * Makes `owner` the owner of this CPU's time in the kernel. Returns the one before, for which the
 * caller calls this function again. Any context but NMI.
 */
u32 cputime_set_owner(u32 owner);

/*
 * Changes the owner of this CPU's time for schedule(), and moves what the CPU has added up since
 * `prev` was switched in from the CPU to `prev`. The times are those of cputime_clock(). Interrupts
 * are off.
 */
void cputime_switch(struct task *prev, struct task *next, u64 tsc, u64 now_cycles);

/*
 * Begins the account of the current task's process, which gets its second thread. No other CPU runs
 * a thread of it.
 */
void cputime_begin_group(struct group_account *group);

/*
 * This CPU does not run a thread of the group any more. Reads the clock with the lock held that
 * readers take, as cputime_clock() does: otherwise a reader between the read of the clock and the
 * change would give the group the time since then, and the next one would take it away.
 */
u64 cputime_leave_group(struct group_account *group, u64 *tsc);

/*
 * It begins to run one. The times are those of cputime_clock(). Called after cputime_switch(),
 * interrupts off.
 */
void cputime_join_group(struct group_account *group, u64 tsc, u64 now_cycles);

/* The current thread ends: from now on nothing is added for it to its process's account. */
void cputime_end_thread(struct group_account *group);

/* Stores the times so far of all threads of an account that has begun, and what they counted. */
void cputime_of_group(struct group_account *group, struct cputime *time, u64 events[NR_CPU_EVENTS]);

/* Starts the account of this CPU. Called once, before its first switch. */
void cputime_init_cpu(void);

/* Returns this CPU's clock, and stores the TSC. Interrupts are off. */
u64 cputime_clock(u64 *tsc);

/*
 * Copies the times of a thread so far, including CPUTIME_SYSTEM. Any context but NMI; in a panic
 * without locks.
 */
void cputime_of_task(struct task *task, struct cputime *time);

/*
 * Adds the times of a CPU so far. Returns all of its time, which is their sum; an idle CPU's is
 * CPUTIME_SYSTEM. Same contexts.
 */
u64 cputime_add_cpu(unsigned int cpu, struct cputime *sum);

/* The owners of the time of all CPUs since boot. Same contexts as cputime_of_task(). */
struct cputime_machine {
	unsigned int nr_cpus;
	struct cputime all;	  /* CPUTIME_SYSTEM includes the next two */
	u64 idle_cycles;	  /* in the idle loop */
	u64 kernel_thread_cycles; /* CPUTIME_SYSTEM of kernel threads, also of ended ones */
};
void cputime_of_machine(struct cputime_machine *machine);

/* Keeps the time of a kernel thread that ends. Called by the thread. */
void cputime_end_kernel_thread(struct task *task);

/*
 * Returns a thread's or a process's own CPU time: without that of reports, and of the ends of
 * threads, its own or one that it has cleaned up after.
 */
u64 cputime_own(const struct cputime *time);

/* Returns the own CPU time so far of a thread, in TSC cycles. Contexts of cputime_of_task(). */
u64 task_own_cycles(struct task *task);

/*
 * Corrects sums that were read while CPUs changed them: one is negative if the clock of a CPU is
 * ahead of ours, and all of them exceed the total if one owner's was read before a change of the
 * owner and the other's after it. The first owners give up what is too much.
 */
void cputime_limit_sums(struct cputime *time, s64 total);

/* Gives what the sums leave of a total to CPUTIME_SYSTEM. */
static inline void cputime_add_rest(struct cputime *time, u64 total)
{
	u64 known = 0, signs = total;

#pragma GCC unroll 8
	for (u32 i = CPUTIME_SYSTEM + 1; i < NR_CPUTIMES; i++) {
		known += time->cycles[i];
		signs |= time->cycles[i];
	}
	time->cycles[CPUTIME_SYSTEM] = total - known;
	if ((s64)signs < 0 || known > total)
		cputime_limit_sums(time, (s64)total);
}

/*
 * Lets the system call that has just begun begin now, or one that does not come from user mode. The
 * thread does not leave this CPU before entry_cycles is read.
 */
static __always_inline void cputime_begin_call(void)
{
	this_cpu_write(cpu_account.entry_cycles, rdtsc());
}

/*
 * Changes the owner at a clock that the caller has read. Interrupts are off. Returns the owner
 * before.
 */
static __always_inline u32 cputime_enter(u32 owner, u64 now_cycles)
{
	u32 before = this_cpu_read(cpu_account.owner);

#ifdef CONFIG_CPU_ACCOUNTING
	this_cpu_add(cpu_account.sums.cycles[before], now_cycles);
	this_cpu_add(cpu_account.sums.cycles[owner], -now_cycles);
#endif
	this_cpu_write(cpu_account.owner, owner);
	return before;
}
#endif

#endif
