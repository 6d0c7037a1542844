// SPDX-License-Identifier: BSD-2-Clause
/*
 * Boots, runs processes with known numbers of system calls, pairs, samples and waits, and requests
 * a last report. tests/boot/port.py has the numbers.
 */

#include "task.h"

#define EXIT_OK	 16
#define NR_ITEMS 200

static void make_calls(void)
{
	for (u32 i = 0; i < 100; i++)
		syscall(SYS_getpid, 0);
	for (u32 i = 0; i < 60; i++)
		syscall(SYS_read, i % 3);
	syscall(NR_SYSCALLS, 0);
}

static void burn(void)
{
	for (u32 i = 0; i < 50; i++) {
		syscall(SYS_checksum, 500);
		syscall(SYS_sleep, 0);
	}
}

static void doze(void)
{
	for (u32 i = 0; i < 10; i++)
		syscall(SYS_sleep, 100);
}

/* The consumer is slower, so the producer waits for it. */
static void produce(void)
{
	for (u32 i = 0; i < NR_ITEMS; i++)
		syscall(SYS_put, i);
}

static void consume(void)
{
	for (u32 i = 0; i < NR_ITEMS; i++)
		syscall(SYS_checksum, syscall(SYS_get, 0) == i ? 20 : 0);
}

/* Outside of calls, so ticks take its CPU. There are more such threads than CPUs. */
static void spin(void)
{
	for (volatile u32 i = 0; i < 20000000; i++)
		;
}

void start_kernel(const char *boot_line)
{
	static char heap[48 << 20];
	struct process *proc;

	battery_heap_init(heap, sizeof(heap));
	start_cpus_and_profilers(boot_line);
	proc = process_create("worker");
	task_create(proc, "calls", make_calls);
	task_create(proc, "burns", burn);
	task_create(process_create("sleeper"), "dozes", doze);
	proc = process_create("pipe");
	task_create(proc, "produces", produce);
	task_create(proc, "consumes", consume);
	proc = process_create("spinner");
	for (u32 i = 0; i < NR_CPUS + 2; i++)
		task_create(proc, "spins", spin);
	run_until_all_exit();
	profile_report("all tasks are gone");
	profile_end_reports();
	exit_qemu(EXIT_OK);
}
