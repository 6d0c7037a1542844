// SPDX-License-Identifier: BSD-2-Clause
/*
 * segv CASE: does something that must end the process with a signal. The test compares the signal.
 * Surviving is a failure (status 1).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned char *page;
static volatile int reading;

static volatile uintptr_t near_null = 16;

static void touch_null(void)
{
	*(volatile int *)near_null = 1;
}

static void touch_kernel(void)
{
	*(volatile int *)0xffffffff81000000 = 1;
}

static void read_kernel(void)
{
	(void)*(volatile int *)0xffff888000100000;
}

static void touch_noncanonical(void)
{
	(void)*(volatile int *)0x0000800000000000;
}

static void write_text(void)
{
	*(volatile unsigned char *)(uintptr_t)write_text = 0xc3;
}

static void run_stack(void)
{
	volatile unsigned char code[16] = { 0xc3 };

	((void (*)(void))(uintptr_t)code)();
}

static void jump_kernel(void)
{
	((void (*)(void))0xffffffff81000000)();
}

static void read_protected(void)
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*page = 1;
	mprotect(page, 4096, PROT_NONE);
	(void)*(volatile unsigned char *)page;
}

static void write_readonly(void)
{
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!*(volatile unsigned char *)page)
		*(volatile unsigned char *)page = 1;
}

static volatile int nr_frames = INT32_MAX;

static int grow_stack(volatile char *above)
{
	volatile char frame[4096];

	frame[0] = *above;
	return nr_frames-- ? grow_stack(frame) + frame[0] : 0;
}

static void overflow_stack(void)
{
	volatile char first = 0;

	grow_stack(&first);
}

static void invalid_opcode(void)
{
	asm volatile("ud2");
}

static void privileged(void)
{
	asm volatile("cli");
}

static void port_io(void)
{
	asm volatile("outb %%al, %%dx" : : "a"(0), "d"(0xf4));
}

static void divide(void)
{
	asm volatile("xor %%eax, %%eax; cltd; idiv %%eax" : : : "rax", "rdx");
}

static void *read_on(void *arg)
{
	for (;;) {
		(void)*(volatile unsigned char *)page;
		reading = 1;
	}
	return arg;
}

/* Another thread reads the page all the time; unmapping it must reach that thread's TLB. */
static void unmap_under_reader(void)
{
	pthread_t thread;

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&thread, NULL, read_on, NULL);
	while (!reading)
		usleep(1000);
	munmap(page, 4096);
	sleep(10);
}

/* Writes to a page all the time; making it read-only must reach this thread's TLB. */
static void *write_on(void *arg)
{
	for (;;) {
		*(volatile unsigned char *)page = 1;
		reading = 1;
	}
	return arg;
}

static void protect_under_writer(void)
{
	pthread_t thread;

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&thread, NULL, write_on, NULL);
	while (!reading)
		usleep(1000);
	mprotect(page, 4096, PROT_READ);
	sleep(10);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "null", touch_null },
	{ "kernel", touch_kernel },
	{ "read-kernel", read_kernel },
	{ "noncanonical", touch_noncanonical },
	{ "text", write_text },
	{ "stack-exec", run_stack },
	{ "jump-kernel", jump_kernel },
	{ "prot-none", read_protected },
	{ "readonly", write_readonly },
	{ "overflow", overflow_stack },
	{ "opcode", invalid_opcode },
	{ "cli", privileged },
	{ "port", port_io },
	{ "divide", divide },
	{ "unmap", unmap_under_reader },
	{ "protect", protect_under_writer },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		printf("segv: %s\n", cases[i].name);
		fflush(stdout);
		cases[i].run();
		printf("FAIL: segv: %s did no harm\n", cases[i].name);
		return 1;
	}
	puts("usage: segv CASE");
	return 2;
}
