/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TTY_INTERNAL_H
#define TTY_INTERNAL_H

/*
 * What the files of kernel/tty/ share. Lock order: tty->lock, then the console's and the UART's;
 * process_tree_lock is not taken inside them, nor they inside it.
 */

#include "ldisc.h"
#include <lego/fs.h>
#include <lego/spinlock.h>
#include <lego/tty.h>
#include <lego/wait.h>

#define TTY_HELD_BYTES 64

struct tty {
	/* Guards this group; taken with interrupts off. */
	spinlock_t lock;
	struct ldisc ldisc;
	bool output_off; /* TCOOFF */
	/* Typed when there was no room: what the UART had to give up to find a BREAK behind it. */
	u8 held[TTY_HELD_BYTES];
	u32 nr_held;
	struct winsize winsize;
	u32 nr_received, nr_sent, nr_overrun; /* TIOCGICOUNT */

	struct wait_queue read_wait;  /* woken when there is something to read */
	struct wait_queue write_wait; /* woken when writers may go on after a stop */

	/*
	 * Guarded by process_tree_lock, as is process->tty; read without where an old value does
	 * no harm. 0: none.
	 */
	pid_t session;
	pid_t foreground;
};

extern struct tty console_tty;

/* Signals that the input has raised, as a set: sent once the lock is dropped. */
void tty_send_signals(struct tty *tty, u64 signals);

/*
 * Take in what was held back, now that there may be room, and let the line bring more. With
 * tty->lock; returns the signals.
 */
u64 tty_resume_input(struct tty *tty);

/* Wake who waits for what may have changed: after a change of settings or input. No locks. */
void tty_wake(struct tty *tty);

/* Wait until all output has left: 0 or -ERESTARTSYS. */
int tty_wait_sent(struct tty *tty);

long tty_ioctl(struct file *file, unsigned int command, unsigned long arg);

/*
 * job.c: the caller wants to change the terminal (SIGTTOU) or read from it (SIGTTIN). 0 when it is
 * in the foreground, or the terminal is not its controlling one; else its group gets the signal and
 * the result is -ERESTARTSYS, or -EIO when the signal would do nothing.
 */
int tty_check_foreground(struct tty *tty, int sig);

/* A session leader without a terminal opens this one: it becomes its controlling terminal. */
void tty_open_controlling(struct tty *tty);

/* ioctl()s of job control; -ENOTTY for others. */
long tty_job_ioctl(struct tty *tty, unsigned int command, unsigned long arg, bool may_read);

/* A number of Linux's, by its place in the tty's range. */
#define TCGETS	    0x5401
#define TCSETS	    0x5402
#define TCSETSW	    0x5403
#define TCSETSF	    0x5404
#define TCSBRK	    0x5409
#define TCXONC	    0x540a
#define TCFLSH	    0x540b
#define TIOCSCTTY   0x540e
#define TIOCGPGRP   0x540f
#define TIOCSPGRP   0x5410
#define TIOCOUTQ    0x5411
#define TIOCSTI	    0x5412
#define TIOCGWINSZ  0x5413
#define TIOCSWINSZ  0x5414
#define FIONREAD    0x541b
#define TIOCNOTTY   0x5422
#define TIOCGETD    0x5424
#define TCSBRKP	    0x5425
#define TIOCGSID    0x5429
#define TCGETS2	    0x802c542a
#define TCSETS2	    0x402c542b
#define TCSETSW2    0x402c542c
#define TCSETSF2    0x402c542d
#define TIOCGDEV    0x80045432
#define TIOCGICOUNT 0x545d

#endif
