// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPUs, tasks and the scheduler, with the profiler's hooks. One lock guards all tasks. A task that
 * leaves its CPU holds it, and the next task on this CPU releases it, so nobody sees a task that
 * has half left.
 */

#include "task.h"

#include <batteries/cpus.h>
#include <batteries/printf.h>
#include <profile/syscall.h>

#define EXIT_OK 16
#define EBADF	9
#define ENOSYS	38

/* Reports name the callers of such functions as the places of waits: os_in_scheduler(). */
#define IN_SCHEDULER __attribute__((noinline, section(".text.scheduler")))

u32 nr_cpus_up;
pf_flag_t panicking;

static struct cpu cpus[NR_CPUS];
static struct battery_lock lock;
static struct task idle[] = { [0 ... NR_CPUS - 1] = { .name = "idle", .syscall = NO_SYSCALL } };
/* The task that got a CPU last; ticks of CPU 0; tasks that have not exited. */
static u32 last, nr_ticks, nr_alive;
/* The names of waits. */
static const char for_tick[] = "tick", for_room[] = "room", for_item[] = "item";

DEFINE_PROFILE_POINT(checksum)
DEFINE_PROFILE_POINT_SLEEPS(sleep)

/* Makes a CPU's first thread its idle task. */
static void init_this_cpu(u32 id)
{
	battery_time_begin(&idle[id].time, battery_cycles());
	cpus[id] = (struct cpu){ .id = id, .task = &idle[id] };
	set_this_cpu(&cpus[id]);
	cpu_init();
	pf_store_release(&nr_cpus_up, nr_cpus_up + 1);
}

/* Returns the task that has waited longest; if none is ready, this one, or the idle task. */
static struct task *pick(struct task *prev)
{
	for (u32 i = 0; i < NR_TASKS; i++) {
		last = (last + 1) % NR_TASKS;
		if (tasks[last].is_awake && !tasks[last].is_on_cpu)
			return &tasks[last];
	}
	return prev->is_awake ? prev : &idle[this_cpu->id];
}

/* Lets the next task run. Called with the lock held; returns with it held, on any CPU. */
static IN_SCHEDULER void schedule(void)
{
	struct task *prev = current, *next = pick(prev);
	u64 now = battery_cycles();

	if (next == prev)
		return;
	profile_trace(sched_switch, prev, next);
	profile_switch_out(&prev->profile, now);
	prev->is_on_cpu = false;
	next->is_on_cpu = true;
	battery_time_switch(&prev->time, &next->time, now);
	profile_task_runs(&next->profile);
	this_cpu->switch_cycles = now;
	current = next;
	switch_stacks(&prev->sp, next->sp);
	profile_switch_in(this_cpu->switch_cycles);
}

/* Sleeps until wake_all(what), and at least until that tick. The lock is held. */
static IN_SCHEDULER void sleep_for(const char *what, u32 wake_tick)
{
	current->sleeps_for = what;
	current->wake_tick = wake_tick;
	current->is_awake = false;
	schedule();
}

/*
 * Wakes all tasks that sleep for this, and whose tick has come. The lock is held. A CPU without a
 * task looks for one in its next tick.
 */
static pf_noinline void wake_all(const char *what)
{
	for (struct task *task = tasks; task < tasks + NR_TASKS; task++) {
		if (task->is_awake || task->sleeps_for != what || task->wake_tick > nr_ticks)
			continue;
		task->is_awake = true;
		profile_trace(sched_wakeup, task, this_cpu->id);
		profile_wake(task);
	}
}

u64 next_tick(void)
{
	u64 period = cycles_per_second / TICK_HZ, now = battery_cycles();

	return now + period - (now - period / NR_CPUS * this_cpu->id) % period;
}

void tick(const struct pt_regs *regs, u64 cycles)
{
	this_cpu->irq_depth++;
	profile_tick(regs, cycles);
	battery_cpu_tick(this_cpu->id);
	while (pf_read_once(panicking))
		battery_relax(); /* the CPU that prints the report is the only one that goes on */
	battery_lock(&lock);
	if (!this_cpu->id) {
		nr_ticks++;
		wake_all(for_tick);
	}
	this_cpu->irq_depth--;
	if (current->proc && current->syscall == NO_SYSCALL)
		schedule();
	battery_unlock(&lock, FLAGS_IRQS_OFF);
}

void panic(const struct pt_regs *regs, u64 number)
{
	static char why[64];

	while (pf_xchg(&panicking, 1))
		battery_relax();
	battery_snprintf(why, sizeof(why), "panic: exception %lx at %lx", number, os_regs_pc(regs));
	profile_report(why);
	exit_qemu(1);
}

static void task_start(void)
{
	void (*run)(void) = current->run;

	profile_switch_in(this_cpu->switch_cycles);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	run();
	syscall(SYS_exit, 0);
}

static void task_init(struct task *task)
{
	/* switch_stacks() goes to task_start(). Its return address and frame pointer are 0. */
	u64 *stack = (u64 *)((char *)battery_zalloc(STACK_BYTES) + STACK_BYTES) - 2;

	stack[SWITCH_PC - SWITCH_WORDS] = (u64)task_start;
	task->sp = (u64)(stack - SWITCH_WORDS);
	task->tid = ++nr_alive;
	task->syscall = NO_SYSCALL;
	if (!task->proc->nr_tasks++) {
		task->proc->pid = task->tid;
		task->proc->start_cycles = battery_cycles();
		profile_process_init(task->proc);
	}
	profile_task_init(task);
}

/* Lets tasks run on this CPU until they sleep or exit. CPU 0 returns when all have exited. */
static pf_noinline void idle_loop(void)
{
	while (this_cpu->id || pf_load_acquire(&nr_alive)) {
		battery_lock(&lock);
		schedule();
		battery_unlock(&lock, FLAGS_IRQS_OFF);
		wait_for_interrupt();
	}
}

void start_cpu(void)
{
	init_this_cpu(nr_cpus_up);
	idle_loop();
}

void start_kernel(const char *boot_line)
{
	static char heap[48 << 20];

	battery_heap_init(heap, sizeof(heap));
	init_this_cpu(0);
	battery_irq_restore(FLAGS_IRQS_ON);
	start_cpus();
	profile_set(boot_line);
	profile_init();
	for (u32 cpu = 0; cpu < nr_cpus_up; cpu++)
		profile_task_init(&idle[cpu]);
	for (struct task *task = tasks; task < tasks + NR_TASKS; task++)
		task_init(task);
	battery_lock(&lock);
	wake_all(NULL);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	idle_loop();
	profile_report("all tasks are gone");
	profile_end_reports();
	exit_qemu(EXIT_OK);
}

static long sys_exit(u64 status)
{
	profile_task_exit(current);
	if (!__atomic_sub_fetch(&current->proc->nr_tasks, 1, __ATOMIC_ACQ_REL)) {
		profile_process_exit(current->proc);
		profile_process_release(current->proc);
	}
	battery_lock(&lock);
	nr_alive--;
	sleep_for("nothing", 0);
	__builtin_unreachable();
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
	sleep_for(for_tick, nr_ticks + nr);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	return 0;
}

static pf_noinline u32 add_up_bytes(u32 nr_rounds)
{
	u32 sum = 0;

	for (volatile u32 i = 0; i < nr_rounds * 4096; i++)
		sum += (u8)i;
	return sum;
}

static long sys_checksum(u64 nr_rounds)
{
	PROFILE_SCOPE(checksum);

	return add_up_bytes(nr_rounds) & 1;
}

/* A buffer with room for 4 items. */
static u32 nr_items;

static long sys_put(u64 unused)
{
	battery_lock(&lock);
	while (nr_items == 4)
		sleep_for(for_room, 0);
	nr_items++;
	wake_all(for_item);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	return 0;
}

static long sys_get(u64 unused)
{
	battery_lock(&lock);
	while (!nr_items)
		sleep_for(for_item, 0);
	nr_items--;
	wake_all(for_room);
	battery_unlock(&lock, FLAGS_IRQS_ON);
	return 0;
}

#define SYSCALL_FUNCTION(name) sys_##name,
#define SYSCALL_NAME(name)     "sys_" #name,
static long (*const functions[])(u64 arg) = { SYSCALLS(SYSCALL_FUNCTION) };
const char *const syscall_names[] = { SYSCALLS(SYSCALL_NAME) };

long syscall(enum syscall nr, u64 arg)
{
	long ret;

	/* From here on, the task keeps its CPU: see tick(). */
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
