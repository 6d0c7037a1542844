/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_ASSERT_H
#define LEGO_ASSERT_H

/*
 * Assertions of the debug kernel (CONFIG_DEBUG_ASSERTS): which locks a function's caller holds, in
 * which context it runs, and which counters must add up. A failed assertion panics and names the
 * file, line, function and condition. Assertions find the kernel's own mistakes and never check
 * input. They have no side effects: without the option the compiler checks their syntax and
 * generates no code.
 *
 * In a panic no assertion is checked, because stopped CPUs may have left data half changed.
 */

#include <asm/irqflags.h>
#include <lego/irq.h>
#include <lego/lock_check.h>

#ifdef CONFIG_DEBUG_ASSERTS

void assert_fail(const char *file, int line, const char *function, const char *what);

#define ASSERT_NAMED(cond, what)                                           \
	do {                                                               \
		if (__builtin_expect(!(cond), 0))                          \
			assert_fail(__FILE__, __LINE__, __func__, (what)); \
	} while (0)

/*
 * Tests only: while a task has set a trap, its failed assertions are recorded, and it goes on.
 * assert_trapped() returns the first one since the last call as "function: condition", or NULL.
 */
void assert_set_trap(bool on);
const char *assert_trapped(void);

#else

#define ASSERT_NAMED(cond, what) ((void)sizeof(!(cond)))

#endif

#define DEBUG_ASSERT(cond) ASSERT_NAMED(cond, #cond)

/*
 * This CPU holds the spinlock, or this task holds the mutex or the rw_mutex (for reading or
 * writing, or for writing only).
 */
#define ASSERT_HELD(lock) ASSERT_NAMED(lock_check_held(&(lock)->map), #lock " is held")

/* Neither this CPU nor this task holds the lock. */
#define ASSERT_NOT_HELD(lock) ASSERT_NAMED(!lock_check_owned(&(lock)->map), #lock " is not held")

#define ASSERT_IRQS_OFF() ASSERT_NAMED(irqs_disabled(), "interrupts are off")

/* The code does not run in an interrupt handler or an NMI. See also might_sleep(). */
#define ASSERT_PROCESS_CONTEXT() ASSERT_NAMED(!in_irq() && !in_nmi(), "process context")
#define ASSERT_NOT_NMI()	 ASSERT_NAMED(!in_nmi(), "not in an NMI")

#endif
