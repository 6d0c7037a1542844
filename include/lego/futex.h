/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FUTEX_H
#define LEGO_FUTEX_H

#include <lego/kernel.h>

struct task;

void futex_init(void);

/* Wake up to nr waiters on a word of the current address space. Number woken, or -EFAULT/-EINVAL.
 */
long futex_wake(u32 __user *addr, unsigned int nr);

/* Mark and wake what a dying thread's robust list holds. In the thread's own context. */
void futex_exit_robust(struct task *task);

#endif
