// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes with known numbers of system calls, pairs, samples and waits. tests/boot/port.py has
 * the numbers.
 */

#include "task.h"

static void make_calls(void)
{
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
	for (u32 i = 0; i < 200; i++)
		syscall(SYS_put, 0);
}

static void consume(void)
{
	for (u32 i = 0; i < 200; i++) {
		syscall(SYS_get, 0);
		syscall(SYS_checksum, 20);
	}
}

/* Outside of calls, so ticks take its CPU. There are more such threads than CPUs. */
static void spin(void)
{
	for (volatile u32 i = 0; i < 20000000; i++)
		;
}

static struct process worker = { .name = "worker" }, sleeper = { .name = "sleeper" };
static struct process pipe = { .name = "pipe" }, spinner = { .name = "spinner" };

struct task tasks[NR_TASKS] = {
	{ .proc = &worker, .name = "calls", .run = make_calls },
	{ .proc = &worker, .name = "burns", .run = burn },
	{ .proc = &sleeper, .name = "dozes", .run = doze },
	{ .proc = &pipe, .name = "produces", .run = produce },
	{ .proc = &pipe, .name = "consumes", .run = consume },
	[5 ... NR_TASKS - 1] = { .proc = &spinner, .name = "spins", .run = spin },
};
