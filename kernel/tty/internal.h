/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TTY_INTERNAL_H
#define TTY_INTERNAL_H

/*
 * Shared by the files of kernel/tty/. Lock order: tty->lock, then the console's and the UART's.
 * process_tree_lock and these locks are never nested.
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
	/*
	 * Bytes that were received when the input buffer was full. The UART's handler must read
	 * them anyway, because a BREAK may follow.
	 */
	u8 held[TTY_HELD_BYTES];
	u32 nr_held;
	struct winsize winsize;
	u32 nr_received, nr_sent, nr_overrun; /* TIOCGICOUNT */

	struct wait_queue read_wait;  /* woken when there is something to read */
	struct wait_queue write_wait; /* woken when input or settings may let writers continue */
	struct wake_timer read_wake, write_wake;

	/*
	 * Guarded by process_tree_lock, as is process->tty. Read without the lock where an old
	 * value is harmless. 0: none.
	 */
	pid_t session;
	pid_t foreground;
};

extern struct tty console_tty;

/* Sends the signals that the input has raised, given as a set. Called after the lock is dropped. */
void tty_send_signals(struct tty *tty, u64 signals);

/*
 * Processes the held bytes now that there may be room, and lets the line send more. Called with
 * tty->lock. Returns the signals.
 */
u64 tty_resume_input(struct tty *tty);

/* Wakes all waiters that a change of settings or input may concern. Called without locks. */
void tty_wake(struct tty *tty);

/* Waits until all output is sent. 0 or -ERESTARTSYS. */
int tty_wait_sent(struct tty *tty);

long tty_ioctl(struct file *file, unsigned int command, unsigned long arg);

/*
 * Checks whether the caller may change the terminal (SIGTTOU) or read from it (SIGTTIN). Returns 0
 * if it is in the foreground, or the terminal is not its controlling one. Otherwise its group gets
 * the signal and the result is -ERESTARTSYS, or -EIO if the signal would have no effect. In job.c.
 */
int tty_check_foreground(struct tty *tty, int sig);

/* Makes this the controlling terminal of the caller, if that is a session leader without one. */
void tty_open_controlling(struct tty *tty);

/* Handles the ioctl()s of job control; -ENOTTY for others. */
long tty_job_ioctl(struct tty *tty, unsigned int command, unsigned long arg, bool may_read);

/* Linux's numbers of the requests, ordered by their low byte. */
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
