/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SIGNAL_H
#define ASM_SIGNAL_H

/* Entry to and return from signal handlers. All in process context, interrupts on. */

#include <lego/signal.h>

/*
 * Handles regs from a system call that a signal has interrupted: restarts the call, or makes it
 * return -EINTR. action is the signal's; NULL: no handler runs. Afterwards regs no longer count as
 * those of a call.
 */
void signal_settle_call(struct pt_regs *regs, const struct kernel_sigaction *action);

/*
 * Puts a signal frame for rt_sigreturn() on the user's stack, and makes *regs enter the handler.
 * rt_sigreturn() restores mask. -EFAULT: there is no room, or no SA_RESTORER to return by.
 */
int signal_push_frame(struct pt_regs *regs, int sig, const struct kernel_sigaction *action,
		      const struct siginfo *info, u64 mask);

#endif
