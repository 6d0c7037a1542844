/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FUTEX_H
#define LEGO_FUTEX_H

#include <lego/kernel.h>

struct task;

void futex_init(void);

/*
 * Wakes up to nr waiters on a word of the current address space. Returns the number woken, or
 * -EFAULT or -EINVAL.
 */
long futex_wake(u32 __user *addr, unsigned int nr);

/*
 * Marks the mutexes in an exiting thread's robust list and wakes waiters; passes on the
 * priority-inheriting ones that others wait for. Called by the thread itself.
 */
void futex_exit(struct task *task);

#endif
