/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls every hook, compiled with -std=gnu89, which another kernel may use. */

#include "thread.h"

#include <profile/syscall.h>

DEFINE_PROFILE_POINT(plain)
DEFINE_PROFILE_POINT_SLEEPS(sleeps)
PROFILE_POINT_CPU_TIME(plain)
PROFILE_POINT_FUNCTIONS(sleeps)

void point_hooks(void);
void point_hooks(void)
{
	PROFILE_POINT_TIME(plain)
	PROFILE_SCOPE(sleeps);

	profile_point_start(plain);
	profile_point_leave(plain);
	profile_point_start_cpu(plain);
	profile_point_leave_cpu(plain);
}

long syscall_hooks(unsigned long nr);
long syscall_hooks(unsigned long nr)
{
	profile_syscall_enter(nr);
	profile_syscall_exit(-4);
	profile_syscall_interrupted();
	return 0;
}

void life_hooks(struct program *program, struct thread *thread);
void life_hooks(struct program *program, struct thread *thread)
{
	profile_process_init(program);
	profile_task_init(thread);
	profile_process_exec(program);
	profile_task_changed(thread);
	profile_task_runs(&thread->profile);
	profile_task_exit(thread);
	profile_process_exit(program);
	profile_process_waited(program);
	profile_process_release(program);
}

void event_hooks(struct thread *thread, const struct trap_frame *frame);
void event_hooks(struct thread *thread, const struct trap_frame *frame)
{
	profile_trace(sched_switch, thread, thread);
	profile_trace(page_fault_user, 1, frame, 2);
	profile_trace_if(sched_migrate_task, thread->id, thread, 0, 1);
	profile_trace_task(thread);
}

void interrupt_hooks(const struct trap_frame *frame, u64 cycles, u64 *deadline, bool *handled);
void interrupt_hooks(const struct trap_frame *frame, u64 cycles, u64 *deadline, bool *handled)
{
	profile_tick(frame, cycles);
	profile_next_deadline(deadline);
	profile_nmi(frame, handled);
}

#ifdef CONFIG_PROFILE_MEMORY
#include <profile/memory.h>

struct page {
	struct profile_memory_page memory;
};

static struct page *(take_pages)(unsigned int order PROFILE_MEMORY_SITE_PARAM)
{
	static struct page page;

	profile_memory_alloc_pages(&page, order);
	return &page;
}
#define take_pages(order) (take_pages)(order PROFILE_MEMORY_SITE_OF_PAGES)

void memory_hooks(void);
void memory_hooks(void)
{
	struct page *page = take_pages(1);

	profile_memory_free_pages(page);
}
#endif
