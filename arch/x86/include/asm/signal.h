/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SIGNAL_H
#define ASM_SIGNAL_H

/* How a signal handler is entered and left. All in process context, interrupts on. */

#include <lego/signal.h>

/*
 * If regs come from a system call that a signal has interrupted: have it made again, or let it
 * return -EINTR. action is what the signal does to the thread, NULL: no handler runs. Once it is
 * settled regs are no longer those of a call.
 */
void signal_settle_call(struct pt_regs *regs, const struct kernel_sigaction *action);

/*
 * Put what rt_sigreturn() needs on the user's stack and let *regs enter the handler; mask comes
 * back afterwards. -EFAULT when there is no place, or nothing to return by (SA_RESTORER).
 */
int signal_push_frame(struct pt_regs *regs, int sig, const struct kernel_sigaction *action,
		      const struct siginfo *info, u64 mask);

#endif
