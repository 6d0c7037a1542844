/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

/*
 * What the tests of kernel/profile/ share: cmocka, the host's side of the seam, tasks to play
 * with.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../kernel/profile/internal.h"

struct process {
	int pid;
	char comm[16];
	struct profile_process profile;
};

struct task {
	struct process *proc;
	struct profile_task profile;
};

struct pt_regs {
	u64 pc;
	bool user;
	bool irqs_off;
	/* What a walk along the stack finds behind pc. */
	const u64 *callers;
	u32 nr_callers;	     /* in the kernel */
	u32 nr_user_callers; /* behind them */
	enum stack_cut cut;
	u64 sp;
};

extern __thread struct task *host_current;

/* What printk() printed since the last host_log_clear(). */
extern char host_log[1 << 20];
void host_log_clear(void);

/* The n-th os_zalloc() from now and all later ones fail; 0: none. */
extern int host_fail_alloc;
extern int host_nr_allocated;

/* Called in the middle of a walk along a stack; NULL: nothing. */
extern void (*host_on_walk)(void);

/* Called by os_wait_turn(), after each line by printk() and after each to a text; NULL: nothing. */
extern void (*host_on_wait)(void);
extern void (*host_on_line)(void);
extern void (*host_on_text)(void);

/* The value of a boot parameter goes to its handler; its result comes back. */
int host_set_param(const char *name, const char *value);

/* A file that os_add_file() made: its text (static buffer), and what a write returns. */
const char *host_file_read(const char *path);
int host_file_write(const char *path, const char *text);

/* The same for the file that os_add_process_file() made. */
const char *host_process_file_read(struct process *proc);
int host_process_file_write(struct process *proc, const char *text);

/* Press a key of the sysrq; run the workers that were woken since. */
void host_sysrq(char letter);
void host_run_workers(void);

/* A call of the current task that takes so long; its time is not known before exit. */
void host_call(u64 nr, u64 cycles, long ret);

/* The line of the log that ends in this text (a row's name), or fails. Static buffer. */
const char *host_line(const char *end);

#define assert_log(text) assert_string_equal(host_log, text)

#endif
