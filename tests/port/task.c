// SPDX-License-Identifier: BSD-2-Clause
/* Tasks, processes, and the system calls, with the profiler's hooks. */

#include "task.h"

#include <profile/syscall.h>

#define NR_CALLEE_SAVED 6

void switch_stacks(u64 *save, u64 load);

static struct task idle = { .name = "idle", .next = &idle, .syscall = NO_SYSCALL };
struct task *current = &idle;
static u32 nr_tids, nr_alive;
static int nr_pids;

DEFINE_PROFILE_POINT(checksum)
DEFINE_PROFILE_POINT_SLEEPS(sleep)

static bool is_ready(const struct task *task)
{
	return !task->dead && nr_ticks >= task->wake_tick;
}

/* Switches to the next task in the ring that is ready. The idle task runs only if no other can. */
static void schedule(void)
{
	u64 flags = irq_save(), now = read_cycles();
	struct task *prev = current, *next = prev->next;

	while (!is_ready(next) || (next == &idle && prev != &idle && is_ready(prev)))
		next = next->next;
	if (next != prev) {
		prev->ran_cycles += now - prev->on_since_cycles;
		next->on_since_cycles = now;
		profile_task_runs(&next->profile);
		current = next;
		switch_stacks(&prev->sp, next->sp);
	}
	irq_restore(flags);
}

static void task_start(void)
{
	irq_restore(FLAGS_INTERRUPTS);
	current->run();
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
	u64 *stack = (u64 *)((char *)battery_zalloc(STACK_BYTES) + STACK_BYTES);

	/* switch_stacks() returns to task_start(), whose return address is 0: it never returns. */
	stack[-2] = (u64)task_start;
	task->sp = (u64)(stack - 2 - NR_CALLEE_SAVED);
	task->tid = ++nr_tids;
	snprintf(task->name, sizeof(task->name), "%s", name);
	task->proc = proc;
	task->run = run;
	task->syscall = NO_SYSCALL;
	profile_task_init(task);
	proc->nr_tasks++;
	nr_alive++;
	task->next = idle.next;
	idle.next = task;
}

/* The caller becomes the idle task. Returns when all other tasks have exited. */
void run_until_all_exit(void)
{
	idle.on_since_cycles = read_cycles();
	profile_task_init(&idle);
	while (nr_alive) {
		schedule();
		if (nr_alive)
			wait_for_interrupt();
	}
}

static long sys_exit(u64 status)
{
	struct process *proc = current->proc;

	profile_task_exit(current);
	if (!--proc->nr_tasks) {
		profile_process_exit(proc);
		profile_process_release(proc);
	}
	current->dead = true;
	nr_alive--;
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

	current->wake_tick = nr_ticks + nr;
	schedule();
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

#define SYSCALL_FUNCTION(name) sys_##name,
#define SYSCALL_NAME(name)     "sys_" #name,
static long (*const functions[])(u64 arg) = { SYSCALLS(SYSCALL_FUNCTION) };
static const char *const names[] = { SYSCALLS(SYSCALL_NAME) };

long syscall(enum syscall nr, u64 arg)
{
	long ret;

	current->syscall = nr;
	profile_syscall_enter(nr);
	ret = nr < NR_SYSCALLS ? functions[nr](arg) : -ENOSYS;
	profile_syscall_exit(ret);
	current->syscall = NO_SYSCALL;
	return ret;
}

const char *syscall_name(u64 nr)
{
	return nr < NR_SYSCALLS ? names[nr] : NULL;
}
