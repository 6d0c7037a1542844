// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of many kinds, for user_chains.py: recursion, callbacks from the C library, system calls in
 * it, stack frames of variable size, jumps out of functions, and, as the first argument says,
 * signal handlers (`signals`), those on a stack of their own (`altstack`), or threads (`threads`).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE  __attribute__((noinline))
#define ROUNDS	  400
#define NR_THREAD 3

static const char *mode = "";
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint32_t sink;

static NOINLINE uint32_t spin(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		sink += i;
	return sink;
}

static NOINLINE uint32_t recurse(uint32_t depth)
{
	if (!depth)
		return spin(300);
	return recurse(depth - 1) + depth;
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	spin(3);
	return *x < *y ? -1 : *x > *y;
}

static NOINLINE void sort(void)
{
	uint32_t numbers[64];

	for (uint32_t i = 0; i < 64; i++)
		numbers[i] = i * 2654435761u;
	qsort(numbers, 64, sizeof(*numbers), compare);
	sink += numbers[0];
}

static NOINLINE void print(FILE *file, uint32_t nr)
{
	fprintf(file, "%u %f %s\n", nr, nr / 7.0, "a line");
	fflush(file);
}

static NOINLINE uint32_t allocate(uint32_t nr)
{
	char *parts[40], room[nr % 700 + 1];

	memset(room, nr, sizeof(room));
	for (uint32_t i = 0; i < 40; i++) {
		parts[i] = malloc(nr % 5000 + i * 37 + 30);
		memset(parts[i], i, 30);
	}
	for (uint32_t i = 0; i < 40; i++) {
		sink += parts[i][0];
		free(parts[i]);
	}
	return room[0];
}

static NOINLINE void leave(jmp_buf *out, uint32_t depth)
{
	spin(40);
	if (!depth)
		longjmp(*out, 1);
	leave(out, depth - 1);
	spin(1);
}

static NOINLINE void jump(uint32_t nr)
{
	jmp_buf out;

	if (!setjmp(out))
		leave(&out, nr % 6);
	spin(40);
}

static NOINLINE void handled(uint32_t nr)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %g", nr, nr / 3.0);
	sink += strlen(text) + write(-1, text, 1);
	spin(100);
}

static void handle(int sig)
{
	handled(sig);
}

static void *work(void *arg)
{
	FILE *file = fopen("/dev/null", "w");

	for (uint32_t i = 0; i < ROUNDS; i++) {
		recurse(i % 20);
		sort();
		print(file, i);
		allocate(i * 977);
		jump(i);
		if (!strcmp(mode, "signals") || !strcmp(mode, "altstack"))
			raise(SIGUSR1);
		if (!strcmp(mode, "threads")) {
			pthread_mutex_lock(&mutex);
			spin(1000);
			usleep(50);
			pthread_mutex_unlock(&mutex);
		}
	}
	fclose(file);
	return arg;
}

int main(int argc, char **argv)
{
	static char stack[64 * 1024];
	stack_t on = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = handle };
	pthread_t threads[NR_THREAD];

	mode = argc > 1 ? argv[1] : "";
	if (!strcmp(mode, "altstack")) {
		sigaltstack(&on, NULL);
		action.sa_flags = SA_ONSTACK;
	}
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; !strcmp(mode, "threads") && i < NR_THREAD; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	work(NULL);
	for (int i = 0; !strcmp(mode, "threads") && i < NR_THREAD; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
