// SPDX-License-Identifier: BSD-2-Clause
/*
 * hold_long() holds a lock for 5 ms each time, and a worker waits for the lock. The program has its
 * own lock, on a futex, because libc's code has no frame pointers.
 */
#include "diagnosis.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#define NR_ROUNDS 20

uint32_t shared_lock; /* 0: free, 1: taken, 2: taken, and threads may wait for it */
static volatile int is_over;

/* This function makes no frame, so only call frame information leads to lock() and unlock(). */
static long NOINLINE futex(int op, uint32_t value)
{
	register long timeout asm("r10") = 0;
	long ret;

	asm volatile("syscall"
		     : "=a"(ret)
		     : "0"(SYS_futex), "D"(&shared_lock), "S"(op), "d"(value), "r"(timeout)
		     : "rcx", "r11", "memory");
	return ret;
}

void NOINLINE lock(void)
{
	uint32_t seen = 0;

	if (__atomic_compare_exchange_n(&shared_lock, &seen, 1, 0, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&shared_lock, 2, __ATOMIC_ACQUIRE))
		futex(FUTEX_WAIT_PRIVATE, 2);
}

void NOINLINE unlock(void)
{
	if (__atomic_exchange_n(&shared_lock, 0, __ATOMIC_RELEASE) == 2)
		futex(FUTEX_WAKE_PRIVATE, 1);
}

void NOINLINE hold_long(void)
{
	lock();
	sleep_ms(5);
	unlock();
}

void NOINLINE hold_shortly(void)
{
	lock();
	unlock();
}

static void *work_with_it(void *unused)
{
	while (!is_over) {
		hold_shortly();
		work(1000);
	}
	return unused;
}

int main(void)
{
	pthread_t worker = start(work_with_it, NULL);

	for (int i = 0; i < NR_ROUNDS; i++) {
		hold_long();
		sleep_ms(1);
	}
	is_over = 1;
	pthread_join(worker, NULL);
	return 0;
}
