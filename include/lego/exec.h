/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_EXEC_H
#define LEGO_EXEC_H

/* execve, for the first program of init and for the system calls. */

#include <asm/ptrace.h>

/*
 * Replaces the current process's program. argv and envp are kernel arrays ended by NULL. On
 * success, the other threads have ended, the old mm is freed, *regs enters the new program, and it
 * returns 0. On failure (negative errno) the old program is unchanged.
 */
int do_execve(const char *path, const char *const *argv, const char *const *envp,
	      struct pt_regs *regs);

#endif
