/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_TTY_H
#define LEGO_TTY_H

/*
 * The terminal: the serial line with Linux's line discipline and job control. There is one
 * terminal: /dev/console and /dev/ttyS0 and, for processes whose controlling terminal it is,
 * /dev/tty. It never hangs up: a process that has it open when its session ends can still use it.
 */

#include <lego/types.h>

struct file_ops;
struct tty;
struct process;

/*
 * Operations of 4:64 /dev/ttyS0, 5:1 /dev/console and 5:0 /dev/tty. Opening /dev/console never
 * makes it a controlling terminal, and job control does not stop its readers and writers.
 */
extern const struct file_ops tty_file_ops;
extern const struct file_ops console_file_ops;
extern const struct file_ops controlling_tty_file_ops;

/* Boot CPU, once. */
void tty_init(void);

/*
 * Called when a session leader with a controlling terminal exits: sends SIGHUP and SIGCONT to its
 * foreground group, and detaches the terminal. Process context, no locks held.
 */
void tty_session_exit(struct process *leader);

/* Returns the foreground process group; 0: none. Any context but NMI. */
pid_t tty_foreground_pgid(const struct tty *tty);

/* Returns the device number of /dev/ttyS0, for /proc/<pid>/stat; 0 for no terminal. */
u32 tty_number(const struct tty *tty);

#endif
