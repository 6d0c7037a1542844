// SPDX-License-Identifier: BSD-2-Clause
/* The batteries that need nothing of a kernel: heap, text in memory, calls on CPUs, clocks. */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "unit_test.h"

#include "../../kernel/profile/batteries/cpu.h"
#include "../../kernel/profile/batteries/cpus.h"
#include "../../kernel/profile/batteries/heap.h"
#include "../../kernel/profile/batteries/text.h"

#define ARENA_BYTES (1ul << 20)
#define NR_THREADS  4

static char arena[ARENA_BYTES + 1];

static bool is_zero(const char *memory, size_t size)
{
	for (; size; size--) {
		if (*memory++)
			return false;
	}
	return true;
}

/* Starts a heap in an arena that is neither aligned nor zero. */
int unit_tests_begin(void **state)
{
	memset(arena, 0xaa, sizeof(arena));
	battery_heap_init(arena + 1, ARENA_BYTES);
	return 0;
}

/* A block is at most a quarter larger than asked for, with its header. Wants a new heap. */
HOST_TEST(heap_waste)
{
	for (size_t size = 64; size < 10000; size = size * 9 / 8) {
		char *one = battery_zalloc(size), *next = battery_zalloc(size);

		assert_non_null(next);
		assert_in_range(next - one, size, (size + 32) * 5 / 4);
	}
}

HOST_TEST(heap_blocks)
{
	char *blocks[200];

	for (size_t size = 0; size < 200; size++) {
		blocks[size] = battery_zalloc(size);
		assert_non_null(blocks[size]);
		assert_int_equal((uintptr_t)blocks[size] % 16, 0);
		assert_true(is_zero(blocks[size], size));
		memset(blocks[size], (int)size + 1, size);
	}
	for (size_t size = 0; size < 200; size++) {
		for (size_t i = 0; i < size; i++)
			assert_int_equal((unsigned char)blocks[size][i], size + 1);
		battery_free(blocks[size]);
	}
	battery_free(NULL);
}

/* Freed memory comes back, zeroed, for sizes of the same class, the last one first. */
HOST_TEST(heap_uses_again)
{
	char *first = battery_zalloc(5000), *second = battery_zalloc(5100);

	assert_non_null(first);
	assert_non_null(second);
	memset(first, 1, 5000);
	memset(second, 1, 5100);
	battery_free(first);
	battery_free(second);
	assert_ptr_equal(battery_zalloc(5050), second);
	assert_true(is_zero(second, 5100));
	assert_ptr_equal(battery_zalloc(5000), first);
	battery_free(first);
	battery_free(second);
}

static void *use_heap(void *seed)
{
	char *held[8] = { NULL };
	size_t sizes[8] = { 0 };
	unsigned long random = (unsigned long)seed;

	for (unsigned int i = 0; i < 20000; i++) {
		unsigned int at = i % 8;

		for (size_t k = 0; held[at] && k < sizes[at]; k++) {
			if (held[at][k] != (char)(uintptr_t)seed)
				return NULL; /* another thread has the same block */
		}
		battery_free(held[at]);
		random = random * 6364136223846793005ul + 1442695040888963407ul;
		sizes[at] = random >> 58;
		held[at] = battery_zalloc(sizes[at]);
		if (!held[at] || !is_zero(held[at], sizes[at]))
			return NULL;
		memset(held[at], (int)(uintptr_t)seed, sizes[at]);
	}
	return seed;
}

HOST_TEST(heap_threads)
{
	pthread_t threads[NR_THREADS];
	void *result;

	for (uintptr_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_heap, (void *)(i + 1)), 0);
	for (uintptr_t i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &result);
		assert_ptr_equal(result, (void *)(i + 1));
	}
}

HOST_TEST(heap_is_full)
{
	unsigned int nr = 0;
	char *last = NULL, *block;

	assert_null(battery_zalloc(ARENA_BYTES));
	assert_null(battery_zalloc(SIZE_MAX));
	while ((block = battery_zalloc(1000))) {
		last = block;
		nr++;
	}
	assert_in_range(nr, 100, ARENA_BYTES / 1000);
	assert_true(last + 1000 <= arena + sizeof(arena));
	battery_free(last);
	assert_ptr_equal(battery_zalloc(1000), last);
}

static void print_line(struct battery_text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	battery_text_vprintf(text, fmt, args);
	va_end(args);
}

HOST_TEST(text)
{
	char buf[16] = "................";
	struct battery_text text = { buf, 15, 0, 0 };

	print_line(&text, "one %d\n", 1);
	print_line(&text, "%s too long here\n", "two");
	print_line(&text, "th\n");
	print_line(&text, "%s", "");
	print_line(&text, "four\n");
	assert_memory_equal(buf, "one 1\nth\nfour\n..", 16);
	assert_int_equal(text.len, 14);
	assert_int_equal(text.bytes_lost, 18);
}

static struct battery_text shared_text = { arena, ARENA_BYTES, 0, 0 };

static void *print_lines(void *thread)
{
	for (unsigned int i = 0; i < 1000; i++)
		print_line(&shared_text, "thread %lu line %u\n", (unsigned long)thread, i);
	return NULL;
}

/* Lines of several CPUs are whole, and each CPU's are in order. */
HOST_TEST(text_threads)
{
	pthread_t threads[NR_THREADS];
	unsigned int next[NR_THREADS] = { 0 };
	char line[32], *at = arena;

	for (uintptr_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, print_lines, (void *)i), 0);
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	while (at < arena + shared_text.len) {
		unsigned int thread = at[7] - '0';

		assert_true(thread < NR_THREADS);
		snprintf(line, sizeof(line), "thread %u line %u\n", thread, next[thread]++);
		assert_memory_equal(at, line, strlen(line));
		at += strlen(line);
	}
	for (unsigned int i = 0; i < NR_THREADS; i++)
		assert_int_equal(next[i], 1000);
	assert_int_equal(shared_text.bytes_lost, 0);
}

static __thread unsigned int this_cpu;
static unsigned int nr_calls[NR_THREADS];
static bool stop;

static void count_call(void *arg)
{
	assert_null(arg);
	nr_calls[this_cpu]++; /* atomic only by the contract */
}

static void *tick(void *cpu)
{
	this_cpu = (uintptr_t)cpu;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		battery_cpu_tick(this_cpu);
		sched_yield();
	}
	return NULL;
}

static void *call_cpus(void *cpus)
{
	for (unsigned int i = 0; i < 20; i++)
		battery_run_on_cpus(count_call, (unsigned long)cpus);
	return NULL;
}

/* Two callers: each call runs once on each of its CPUs, and has run when its caller goes on. */
HOST_TEST(cpus)
{
	pthread_t threads[NR_THREADS], other;

	for (uintptr_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, tick, (void *)i), 0);
	battery_run_on_cpus(count_call, 0xf);
	for (unsigned int i = 0; i < NR_THREADS; i++)
		assert_int_equal(nr_calls[i], 1);
	assert_int_equal(pthread_create(&other, NULL, call_cpus, (void *)0xful), 0);
	call_cpus((void *)1ul);
	pthread_join(other, NULL);
	for (unsigned int i = 0; i < NR_THREADS; i++)
		assert_int_equal(nr_calls[i], i ? 21 : 41);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
}

HOST_TEST(clock)
{
	unsigned long start = battery_cycles();

	assert_true(battery_cycles() - start < 1ul << 40);
	assert_int_equal(battery_cycles_to_ns(3, 2000000000), 2);
	assert_int_equal(battery_cycles_to_ns(10, 10000000), 1000);
	assert_int_equal(battery_cycles_to_ns(24000000ul * 86400 * 365 * 100 + 12, 24000000),
			 1000000000ul * 86400 * 365 * 100 + 500);
	assert_int_equal(battery_cycles_to_ns(17999999999ul, 18000000000ul), 1000000000);
	assert_int_equal(battery_cycles_to_ns(1, 3), 333333333);
}
