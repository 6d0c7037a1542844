// SPDX-License-Identifier: BSD-2-Clause
/*
 * Boots, runs two processes with known numbers of system calls, pairs and samples, and requests a
 * last report. tests/boot/test_port.py checks the numbers.
 */

#include "task.h"

#define EXIT_OK 16

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

void start_kernel(void);
void start_kernel(void)
{
	static char heap[16 << 20];
	struct process *proc;

	battery_heap_init(heap, sizeof(heap));
	cpu_init();
	parse_boot_params();
	profile_init();
	proc = process_create("worker");
	task_create(proc, "calls", make_calls);
	task_create(proc, "burns", burn);
	task_create(process_create("sleeper"), "dozes", doze);
	run_until_all_exit();
	profile_report("all tasks are gone");
	exit_qemu(EXIT_OK);
}
