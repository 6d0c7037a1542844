// SPDX-License-Identifier: BSD-2-Clause
/*
 * The terminal's settings. The line itself stays at 115200 8N1. As with Linux's drivers for such
 * hardware, asking for another speed succeeds, but reading the settings returns the real one.
 */

#include "internal.h"

#include <asm/uart.h>
#include <lego/console.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/signal.h>
#include <lego/string.h>
#include <lego/uaccess.h>

#define SPEED		      115200
#define CHANGEABLE_CONTROL    (CREAD | HUPCL | CLOCAL)
#define BREAK_NS	      (250 * NSEC_PER_MSEC)
#define BREAK_UNIT_NS	      (100 * NSEC_PER_MSEC) /* of TCSBRKP */
#define MAX_BREAK_NS	      (10 * NSEC_PER_SEC)
#define TTY_DEVICE_NUMBER     (4 << 8 | 64)
#define LINE_DISCIPLINE_N_TTY 0

enum {
	TCOOFF,
	TCOON,
	TCIOFF,
	TCION,
};

enum {
	TCIFLUSH,
	TCOFLUSH,
	TCIOFLUSH,
};

static long get_termios(struct tty *tty, void __user *arg, size_t size)
{
	struct termios2 copy = { .input_speed = SPEED, .output_speed = SPEED };
	unsigned long flags = spin_lock_irqsave(&tty->lock);

	copy.termios = tty->ldisc.termios;
	spin_unlock_irqrestore(&tty->lock, flags);
	return copy_to_user(arg, &copy, size);
}

/* Drops the input. Called with tty->lock; returns the signals. */
static u64 flush_input(struct tty *tty)
{
	tty->nr_held = 0;
	ldisc_flush_input(&tty->ldisc);
	return tty_resume_input(tty);
}

static long set_termios(struct tty *tty, const void __user *arg, bool wait, bool flush)
{
	struct termios termios;
	unsigned long flags;
	u64 signals;
	int error = tty_check_foreground(tty, SIGTTOU);

	if (error)
		return error;
	if (copy_from_user(&termios, arg, sizeof(termios)))
		return -EFAULT;
	if (wait)
		error = tty_wait_sent(tty);
	if (error)
		return error;
	flags = spin_lock_irqsave(&tty->lock);
	termios.control_flags = (termios.control_flags & CHANGEABLE_CONTROL) |
				(tty->ldisc.termios.control_flags & ~CHANGEABLE_CONTROL);
	termios.line = LINE_DISCIPLINE_N_TTY;
	ldisc_set_termios(&tty->ldisc, &termios);
	signals = flush ? flush_input(tty) : tty_resume_input(tty);
	spin_unlock_irqrestore(&tty->lock, flags);
	tty_send_signals(tty, signals);
	tty_wake(tty);
	return 0;
}

static long flush_queues(struct tty *tty, unsigned long which)
{
	unsigned long flags;
	u64 signals = 0;
	int error = tty_check_foreground(tty, SIGTTOU);

	if (error)
		return error;
	if (which > TCIOFLUSH)
		return -EINVAL;
	flags = spin_lock_irqsave(&tty->lock);
	if (which != TCOFLUSH)
		signals = flush_input(tty);
	spin_unlock_irqrestore(&tty->lock, flags);
	if (which != TCIFLUSH) {
		console_discard();
		wake_up_all(&console_room_wait);
	}
	tty_send_signals(tty, signals);
	tty_wake(tty);
	return 0;
}

static void set_output_off(struct tty *tty, bool off)
{
	unsigned long flags = spin_lock_irqsave(&tty->lock);

	tty->output_off = off;
	spin_unlock_irqrestore(&tty->lock, flags);
	tty_wake(tty);
}

static void send_control_char(struct tty *tty, enum control_char which)
{
	u8 byte = READ_ONCE(tty->ldisc.termios.control_chars[which]);

	if (byte)
		console_queue(&byte, 1, 0);
}

static long control_flow(struct tty *tty, unsigned long action)
{
	int error = tty_check_foreground(tty, SIGTTOU);

	if (error)
		return error;
	switch (action) {
	case TCOOFF:
	case TCOON:
		set_output_off(tty, action == TCOOFF);
		return 0;
	case TCIOFF:
		send_control_char(tty, VSTOP);
		return 0;
	case TCION:
		send_control_char(tty, VSTART);
		return 0;
	default:
		return -EINVAL;
	}
}

static long send_break(struct tty *tty, u64 duration_ns)
{
	int error = tty_check_foreground(tty, SIGTTOU);

	if (!error)
		error = tty_wait_sent(tty);
	if (error || !duration_ns)
		return error;
	uart_set_break(true);
	error = sleep_until_ns(clock_monotonic_ns() + min(duration_ns, MAX_BREAK_NS));
	uart_set_break(false);
	return error;
}

static long get_winsize(struct tty *tty, void __user *arg)
{
	unsigned long flags = spin_lock_irqsave(&tty->lock);
	struct winsize winsize = tty->winsize;

	spin_unlock_irqrestore(&tty->lock, flags);
	return copy_to_user(arg, &winsize, sizeof(winsize));
}

static long set_winsize(struct tty *tty, const void __user *arg)
{
	struct winsize winsize;
	unsigned long flags;
	bool changed;

	if (copy_from_user(&winsize, arg, sizeof(winsize)))
		return -EFAULT;
	flags = spin_lock_irqsave(&tty->lock);
	changed = memcmp(&tty->winsize, &winsize, sizeof(winsize));
	tty->winsize = winsize;
	spin_unlock_irqrestore(&tty->lock, flags);
	if (changed)
		tty_send_signals(tty, SIGNAL_BIT(SIGWINCH));
	return 0;
}

static int nr_readable(struct tty *tty)
{
	unsigned long flags = spin_lock_irqsave(&tty->lock);
	int n = ldisc_nr_readable(&tty->ldisc);

	spin_unlock_irqrestore(&tty->lock, flags);
	return n;
}

/* Linux's struct serial_icounter_struct. */
struct counters {
	s32 cts, dsr, rng, dcd;
	s32 received, sent;
	s32 frame, overrun, parity, breaks;
	s32 buffer_overrun;
	s32 reserved[9];
};

static long get_counters(struct tty *tty, void __user *arg)
{
	struct counters counters = {
		.received = READ_ONCE(tty->nr_received),
		.sent = READ_ONCE(tty->nr_sent),
		.buffer_overrun = READ_ONCE(tty->nr_overrun),
	};

	return copy_to_user(arg, &counters, sizeof(counters));
}

long tty_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct tty *tty = &console_tty;
	void __user *ptr = (void __user *)arg;

	switch (command) {
	case TCGETS:
		return get_termios(tty, ptr, sizeof(struct termios));
	case TCGETS2:
		return get_termios(tty, ptr, sizeof(struct termios2));
	case TCSETS:
	case TCSETS2:
		return set_termios(tty, ptr, false, false);
	case TCSETSW:
	case TCSETSW2:
		return set_termios(tty, ptr, true, false);
	case TCSETSF:
	case TCSETSF2:
		return set_termios(tty, ptr, true, true);
	case TCFLSH:
		return flush_queues(tty, arg);
	case TCXONC:
		return control_flow(tty, arg);
	case TCSBRK:
		return send_break(tty, arg ? 0 : BREAK_NS);
	case TCSBRKP:
		return send_break(tty, arg ? (u32)arg * BREAK_UNIT_NS : BREAK_NS);
	case TIOCGWINSZ:
		return get_winsize(tty, ptr);
	case TIOCSWINSZ:
		return set_winsize(tty, ptr);
	case FIONREAD:
		return put_user(nr_readable(tty), (int __user *)ptr);
	case TIOCOUTQ:
		return put_user((int)(CONSOLE_QUEUE_BYTES - console_room()), (int __user *)ptr);
	case TIOCGETD:
		return put_user(LINE_DISCIPLINE_N_TTY, (int __user *)ptr);
	case TIOCGDEV:
		return put_user(TTY_DEVICE_NUMBER, (u32 __user *)ptr);
	case TIOCGICOUNT:
		return get_counters(tty, ptr);
	case TIOCSTI:
		return -EPERM;
	default:
		return tty_job_ioctl(tty, command, arg, file_may_read(file));
	}
}
