// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPUs, tasks and the scheduler, with the profiler's hooks. One lock guards all tasks. A task that
 * leaves its CPU holds it, and the next task on this CPU releases it, so nobody sees a task that
 * has half left.
 */

#include "task.h"

#include <batteries/cpus.h>
#include <batteries/symbols.h>
#include <profile/syscall.h>

struct cpu cpus[NR_CPUS];
u32 nr_cpus_up;
pf_flag_t panicking;

/* Reports name the callers of such functions as the places of waits: os_in_scheduler(). */
#define IN_SCHEDULER __attribute__((noinline, section(".text.scheduler")))

static struct battery_lock lock;
static struct task idle[NR_CPUS];
static struct task *last = &idle[0]; /* that has got a CPU, in the ring of all tasks */
static u32 nr_tids, nr_alive;
static int nr_pids;
/* The names of waits. */
static const char for_start[] = "start", for_tick[] = "tick", for_room[] = "room",
		  for_item[] = "item";

DEFINE_PROFILE_POINT(checksum)
DEFINE_PROFILE_POINT_SLEEPS(sleep)

/* Makes a CPU's first thread its idle task. */
static void init_this_cpu(u32 id)
{
	struct task *task = &idle[id];

	memcpy(task->name, "idle", 5);
	task->next = task;
	task->state = TASK_IDLE;
	task->cpu = id;
	task->syscall = NO_SYSCALL;
	task->time = TIME_RUNS | read_cycles();
	cpus[id] = (struct cpu){ .id = id, .task = task };
	set_this_cpu(&cpus[id]);
	cpu_init();
	pf_store_release(&nr_cpus_up, nr_cpus_up + 1);
}

/* Returns the task that has waited longest; if none is ready, this one, or the idle task. */
static struct task *pick(struct task *prev)
{
	struct task *task = last;

	do {
		task = task->next;
		if (task->state == TASK_READY)
			return last = task;
	} while (task != last);
	return prev->state == TASK_RUNS ? prev : &idle[this_cpu->id];
}

/* Called where a task goes on, or begins. */
static void finish_switch(void)
{
	profile_switch_in(this_cpu->switch_cycles);
}

/* Lets the next task run. Called with the lock held; returns with it held, on any CPU. */
static IN_SCHEDULER void schedule(void)
{
	struct task *prev = current, *next = pick(prev);
	u64 now = read_cycles();

	if (next == prev)
		return;
	profile_trace(sched_switch, prev, next);
	profile_switch_out(&prev->profile, now);
	profile_task_runs(&next->profile);
	if (prev->state == TASK_RUNS)
		prev->state = TASK_READY;
	if (next->state == TASK_READY)
		next->state = TASK_RUNS;
	pf_write_once(prev->time, now - task_off_cycles(prev));
	pf_write_once(next->time, TIME_RUNS | (now - next->time));
	next->cpu = this_cpu->id;
	this_cpu->switch_cycles = now;
	current = next;
	switch_stacks(&prev->sp, next->sp);
	finish_switch();
}

/* Sleeps until wake_all(what), and at least until that tick. The lock is held. */
static IN_SCHEDULER void sleep_for(const char *what, u64 wake_tick)
{
	current->sleeps_for = what;
	current->wake_tick = wake_tick;
	current->state = TASK_SLEEPS;
	schedule();
}

static pf_noinline void wake(struct task *task)
{
	task->state = TASK_READY;
	profile_trace(sched_wakeup, task, task->cpu);
	profile_wake(task);
	for (u32 cpu = 0; cpu < nr_cpus_up; cpu++) {
		if (cpus[cpu].task->state == TASK_IDLE && cpu != this_cpu->id)
			return kick_cpu(cpu);
	}
}

/* Wakes all tasks that sleep for this, and whose tick has come. The lock is held. */
static void wake_all(const char *what)
{
	for (struct task *task = idle[0].next; task != &idle[0]; task = task->next) {
		if (task->state == TASK_SLEEPS && task->sleeps_for == what &&
		    task->wake_tick <= cpus[0].nr_ticks)
			wake(task);
	}
}

u64 next_tick(void)
{
	u64 period = cycles_per_second / TICK_HZ, now = read_cycles();

	return now + period - (now - period / NR_CPUS * this_cpu->id) % period;
}

void tick(const struct pt_regs *regs, u64 cycles)
{
	this_cpu->irq_depth++;
	profile_tick(regs, cycles);
	battery_cpu_tick(this_cpu->id);
	this_cpu->nr_ticks++;
	if (!this_cpu->id) {
		battery_lock(&lock);
		wake_all(for_tick);
		battery_unlock(&lock, FLAGS_IRQS_OFF);
	}
	this_cpu->irq_depth--;
}

/* In a panic, the CPU that prints the report is the only one that goes on. */
static void stop_cpu(void)
{
	for (;;)
		battery_relax();
}

void end_interrupt(void)
{
	if (pf_read_once(panicking))
		stop_cpu();
	if (current->state == TASK_IDLE || current->syscall != NO_SYSCALL)
		return;
	battery_lock(&lock);
	schedule();
	battery_unlock(&lock, FLAGS_IRQS_OFF);
}

void panic(const struct pt_regs *regs, const char *why, u64 number)
{
	u64 start;

	if (pf_xchg(&panicking, 1))
		stop_cpu();
	for (u32 cpu = 0; cpu < nr_cpus_up; cpu++) {
		if (cpu != this_cpu->id)
			kick_cpu(cpu);
	}
	printk("Kernel panic: %s %lx at %lx (%s)\n", why, number, regs_pc(regs),
	       battery_symbol(regs_pc(regs), &start) ?: "?");
	profile_report("panic");
	exit_qemu(1);
}

static void task_start(void)
{
	void (*run)(void) = current->run;

	finish_switch();
	battery_unlock(&lock, FLAGS_IRQS_ON);
	run();
	syscall(SYS_exit, 0);
}

struct process *process_create(const char *name)
{
	struct process *proc = battery_zalloc(sizeof(*proc));

	proc->pid = ++nr_pids;
	snprintf(proc->name, sizeof(proc->name), "%s", name);
	proc->start_cycles = read_cycles();
	profile_process_init(proc);
	return proc;
}

void task_create(struct process *proc, const char *name, void (*run)(void))
{
	struct task *task = battery_zalloc(sizeof(*task));
	/* switch_stacks() goes to task_start(). Its return address and frame pointer are 0. */
	u64 *stack = (u64 *)((char *)battery_zalloc(STACK_BYTES) + STACK_BYTES) - 2;

	stack[SWITCH_PC - SWITCH_WORDS] = (u64)task_start;
	task->sp = (u64)(stack - SWITCH_WORDS);
	task->tid = ++nr_tids;
	snprintf(task->name, sizeof(task->name), "%s", name);
	task->proc = proc;
	task->run = run;
	task->syscall = NO_SYSCALL;
	task->sleeps_for = for_start;
	task->state = TASK_SLEEPS;
	profile_task_init(task);
	proc->nr_tasks++;
	battery_lock(&lock);
	nr_alive++;
	task->next = idle[0].next;
	idle[0].next = task;
	battery_unlock(&lock, FLAGS_IRQS_ON);
}

/* Lets tasks run on this CPU until they sleep or exit. */
static pf_noinline void idle_loop(const u32 *until_zero)
{
	while (pf_load_acquire(until_zero)) {
		battery_lock(&lock);
		schedule();
		battery_unlock(&lock, FLAGS_IRQS_OFF);
		wait_for_interrupt();
	}
}

void start_cpus_and_profilers(const char *boot_line)
{
	u32 cpu;

	init_this_cpu(0);
	battery_irq_restore(FLAGS_IRQS_ON);
	start_cpus();
	profile_set(boot_line);
	profile_init();
	for (cpu = 0; cpu < nr_cpus_up; cpu++)
		profile_task_init(&idle[cpu]);
}

void run_until_all_exit(void)
{
	battery_lock(&lock);
	wake_all(for_start);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	idle_loop(&nr_alive);
}

void start_cpu(void)
{
	init_this_cpu(nr_cpus_up);
	idle_loop(&nr_cpus_up);
}

static long sys_exit(u64 status)
{
	struct process *proc = current->proc;
	u32 nr_left;

	profile_task_exit(current);
	battery_lock(&lock);
	nr_left = --proc->nr_tasks;
	battery_unlock(&lock, FLAGS_IRQS_ON);
	if (!nr_left) {
		profile_process_exit(proc);
		profile_process_release(proc);
	}
	battery_lock(&lock);
	nr_alive--;
	current->state = TASK_DEAD;
	schedule();
	__builtin_unreachable();
}

static long sys_getpid(u64 unused)
{
	return current->proc->pid;
}

/* Descriptor 0 is an empty file. There are no others. */
static long sys_read(u64 fd)
{
	return fd == 0 ? 0 : -EBADF;
}

static long sys_sleep(u64 nr)
{
	PROFILE_SCOPE(sleep);

	battery_lock(&lock);
	sleep_for(for_tick, cpus[0].nr_ticks + nr);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	return 0;
}

static __attribute__((noinline)) u32 add_up_bytes(u32 nr_rounds)
{
	static u8 bytes[4096];
	u32 sum = 1;

	while (nr_rounds--) {
		for (u32 i = 0; i < sizeof(bytes); i++)
			sum = sum * 31 + bytes[i];
	}
	return sum;
}

static long sys_checksum(u64 nr_rounds)
{
	PROFILE_SCOPE(checksum);

	return add_up_bytes(nr_rounds) & 1;
}

/* A buffer with room for a few numbers. They go through it in order. */
static u64 items[4];
static u32 nr_put, nr_got;

static long sys_put(u64 item)
{
	battery_lock(&lock);
	while (nr_put - nr_got == PF_ARRAY_SIZE(items))
		sleep_for(for_room, 0);
	items[nr_put++ % PF_ARRAY_SIZE(items)] = item;
	wake_all(for_item);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	return 0;
}

static long sys_get(u64 unused)
{
	u64 item;

	battery_lock(&lock);
	while (nr_put == nr_got)
		sleep_for(for_item, 0);
	item = items[nr_got++ % PF_ARRAY_SIZE(items)];
	wake_all(for_room);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	return item;
}

#define SYSCALL_FUNCTION(name) sys_##name,
#define SYSCALL_NAME(name)     "sys_" #name,
static long (*const functions[])(u64 arg) = { SYSCALLS(SYSCALL_FUNCTION) };
static const char *const names[] = { SYSCALLS(SYSCALL_NAME) };

long syscall(enum syscall nr, u64 arg)
{
	long ret;

	/* From here on, the task keeps its CPU: see end_interrupt(). */
	battery_irq_save();
	current->syscall = nr;
	current->arg = arg;
	battery_irq_restore(FLAGS_IRQS_ON);
	profile_trace(sys_enter, nr);
	profile_syscall_enter(nr);
	ret = nr < NR_SYSCALLS ? functions[nr](arg) : -ENOSYS;
	profile_syscall_exit(ret);
	profile_trace(sys_exit, nr, ret);
	current->syscall = NO_SYSCALL;
	return ret;
}

const char *syscall_name(u64 nr)
{
	return nr < NR_SYSCALLS ? names[nr] : NULL;
}
