// SPDX-License-Identifier: BSD-2-Clause
/*
 * The terminal as a file. Input goes through the line discipline in the UART's interrupt, so that
 * echo and signals do not wait for a reader. When its buffer is full, the UART stops taking bytes
 * until a reader has made room. Output goes through the discipline into the console's queue.
 */

#include "internal.h"

#include <asm/uart.h>
#include <lego/console.h>
#include <lego/errno.h>
#include <lego/params.h>
#include <lego/poll.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/signal.h>
#include <lego/string.h>

/* The bytes of a write stay together up to this many, if the queue has room for their expansion. */
#define CHUNK_BYTES 1024
#define OUT_BYTES   (2 * CHUNK_BYTES) /* every byte may be a newline */
/* Bytes of the queue that writers leave free for echo. */
#define ECHO_KEEP_BYTES 512
#define ECHO_BYTES	64

static void echo_byte(u8 byte);
static void discard_output(void);

struct tty console_tty = {
	.lock = SPINLOCK_INIT,
	.read_wait = WAIT_QUEUE_INIT(console_tty.read_wait),
	.write_wait = WAIT_QUEUE_INIT(console_tty.write_wait),
	.read_wake = WAKE_TIMER_INIT(console_tty.read_wake, console_tty.read_wait),
	.write_wake = WAKE_TIMER_INIT(console_tty.write_wake, console_tty.write_wait),
};

/* Echo to be queued; guarded by console_tty.lock. */
static u8 echo_buf[ECHO_BYTES];
static u32 nr_echo;
static u32 nr_echo_lost;

static void flush_echo(void)
{
	size_t n = console_queue(echo_buf, nr_echo, 0);

	nr_echo_lost += nr_echo - n;
	console_tty.nr_sent += n;
	nr_echo = 0;
}

static void echo_byte(u8 byte)
{
	if (nr_echo == ECHO_BYTES)
		flush_echo();
	echo_buf[nr_echo++] = byte;
}

static void discard_output(void)
{
	nr_echo = 0;
	console_discard();
}

/* Sets the size of the terminal, which a serial line cannot ask for. */
static int set_size(const char *value)
{
	const char *rows = strchr(value, 'x');
	char columns[8] = "";
	u64 nr_columns, nr_rows;

	if (!rows || (size_t)(rows - value) >= sizeof(columns))
		return -EINVAL;
	memcpy(columns, value, rows - value);
	if (parse_u64(columns, &nr_columns) || parse_u64(rows + 1, &nr_rows) ||
	    nr_columns != (u16)nr_columns || nr_rows != (u16)nr_rows)
		return -EINVAL;
	console_tty.winsize.nr_columns = nr_columns;
	console_tty.winsize.nr_rows = nr_rows;
	return 0;
}
/* Size of the terminal: unknown (0x0) by default. `make shell` sets the size of yours. */
BOOT_PARAM(tty_size, "tty_size", "<columns>x<rows>", set_size);

void tty_init(void)
{
	ldisc_init(&console_tty.ldisc, echo_byte, discard_output);
}

/* Input */

/* Processes an input byte. Called with tty->lock. Returns the signal as a set. */
static u64 receive(struct tty *tty, u8 byte)
{
	int sig = ldisc_receive(&tty->ldisc, byte);

	return sig ? SIGNAL_BIT(sig) : 0;
}

u64 tty_resume_input(struct tty *tty)
{
	u64 signals = 0;
	u32 n = 0;

	while (n < tty->nr_held && ldisc_has_room(&tty->ldisc))
		signals |= receive(tty, tty->held[n++]);
	tty->nr_held -= n;
	for (u32 i = 0; i < tty->nr_held; i++)
		tty->held[i] = tty->held[i + n];
	flush_echo();
	uart_throttle(tty->nr_held || !ldisc_has_room(&tty->ldisc));
	return signals;
}

/* Without a session on the terminal, init is in the foreground. */
void tty_send_signals(struct tty *tty, u64 signals)
{
	pid_t group = READ_ONCE(tty->foreground);

	for (int sig = 1; signals; sig++, signals >>= 1) {
		if (signals & 1 && group)
			signal_send_group(group, sig, NULL);
		else if (signals & 1)
			signal_send_init(sig);
	}
}

void tty_wake(struct tty *tty)
{
	if (ldisc_readable(&tty->ldisc, 1))
		wake_up_in_steps(&tty->read_wake, false);
	if (!tty->ldisc.stopped && !tty->output_off)
		wake_up_in_steps(&tty->write_wake, false);
}

static void defer_byte(struct tty *tty, u8 byte)
{
	if (tty->nr_held < TTY_HELD_BYTES)
		tty->held[tty->nr_held++] = byte;
	else
		tty->nr_overrun++;
}

void console_receive(u8 byte)
{
	struct tty *tty = &console_tty;
	unsigned long flags = spin_lock_irqsave(&tty->lock);
	u64 signals = 0;
	u32 nr_lost;

	tty->nr_received++;
	if (tty->nr_held || !ldisc_has_room(&tty->ldisc)) {
		defer_byte(tty, byte);
	} else {
		signals = receive(tty, byte);
		flush_echo();
	}
	if (tty->nr_held || !ldisc_has_room(&tty->ldisc))
		uart_throttle(true);
	nr_lost = nr_echo_lost;
	nr_echo_lost = 0;
	spin_unlock_irqrestore(&tty->lock, flags);

	tty_send_signals(tty, signals);
	tty_wake(tty);
	if (nr_lost)
		printk("tty: no room for %u bytes of echo\n", nr_lost);
}

/* Takes available input. Returns -EAGAIN if there is none; 0 is the end of the file. */
static ssize_t take_input(struct tty *tty, u8 *buf, size_t n)
{
	unsigned long flags = spin_lock_irqsave(&tty->lock);
	ssize_t taken = -EAGAIN;
	u64 signals = 0;

	if (ldisc_readable(&tty->ldisc, 1)) {
		taken = ldisc_read(&tty->ldisc, buf, n);
		signals = tty_resume_input(tty);
	}
	spin_unlock_irqrestore(&tty->lock, flags);
	tty_send_signals(tty, signals);
	return taken;
}

static void get_wait(struct tty *tty, struct ldisc_wait *wait)
{
	unsigned long flags = spin_lock_irqsave(&tty->lock);

	ldisc_get_wait(&tty->ldisc, wait);
	spin_unlock_irqrestore(&tty->lock, flags);
}

/* Waits for input. Returns 0 when there is some or *left_ns have passed. */
static int wait_for_input(struct tty *tty, u64 *left_ns)
{
	return WAIT_EVENT(&tty->read_wait, false, ldisc_readable(&tty->ldisc, 1) || !*left_ns,
			  TASK_INTERRUPTIBLE, task_interrupted(current), -ERESTARTSYS,
			  *left_ns = schedule_timeout_ns(*left_ns));
}

static ssize_t read_tty(struct file *file, void *buf, size_t n, u64 pos)
{
	struct tty *tty = &console_tty;
	struct ldisc_wait wait;
	size_t total = 0;
	ssize_t done = 0;
	u64 left_ns;

	if (file->ops != &console_file_ops)
		done = tty_check_foreground(tty, SIGTTIN);
	if (done || !n)
		return done;
	get_wait(tty, &wait);
	left_ns = wait.first_ns;
	for (;;) {
		done = take_input(tty, (u8 *)buf + total, n - total);
		if (done >= 0) {
			total += done;
			if (!done || total >= min(wait.nr_wanted, n))
				break;
			left_ns = wait.next_ns;
			continue;
		}
		done = 0;
		if (!left_ns)
			break;
		done = -EAGAIN;
		if (file->flags & O_NONBLOCK)
			break;
		done = wait_for_input(tty, &left_ns);
		if (done)
			break;
	}
	return total ? (ssize_t)total : done;
}

/* Output */

static bool may_write(struct tty *tty)
{
	return !READ_ONCE(tty->ldisc.stopped) && !READ_ONCE(tty->output_off);
}

/* Writes as many bytes as there is room for after expansion. Returns their number. */
static size_t write_chunk(struct tty *tty, const u8 *buf, size_t n)
{
	u8 out[256];
	unsigned long flags = spin_lock_irqsave(&tty->lock);
	size_t used = 0, nr_out, room, step;

	while (used < n) {
		room = console_room();
		room = room > ECHO_KEEP_BYTES ? room - ECHO_KEEP_BYTES : 0;
		step = ldisc_output(&tty->ldisc, buf + used, n - used, out, min(room, sizeof(out)),
				    &nr_out);
		/* Only the lock's holder takes room, so everything fits. */
		tty->nr_sent += console_queue(out, nr_out, 0);
		if (!step)
			break;
		used += step;
	}
	spin_unlock_irqrestore(&tty->lock, flags);
	return used;
}

/* Returns whether n bytes can stay together, and at least one byte of any expansion fits. */
static bool has_room(size_t n)
{
	size_t nr_out = max(min(2 * n, (size_t)OUT_BYTES), (size_t)LDISC_MAX_EXPANSION);

	return console_room() >= nr_out + ECHO_KEEP_BYTES;
}

static int wait_to_write(struct tty *tty, size_t n)
{
	int error = 0;

	while (!error && !(may_write(tty) && has_room(n))) {
		error = wait_event_interruptible(&tty->write_wait, may_write(tty));
		if (!error)
			error = wait_event_interruptible(&console_room_wait, has_room(n));
	}
	return error;
}

static ssize_t write_tty(struct file *file, const void *buf, size_t n, u64 pos)
{
	struct tty *tty = &console_tty;
	size_t total = 0;
	int error = 0;

	if (file->ops != &console_file_ops && tty->ldisc.termios.local_flags & TOSTOP)
		error = tty_check_foreground(tty, SIGTTOU);
	while (!error && total < n) {
		size_t chunk = min(n - total, (size_t)CHUNK_BYTES), used;

		if (!(file->flags & O_NONBLOCK))
			error = wait_to_write(tty, chunk);
		else if (!may_write(tty))
			error = -EAGAIN;
		if (error)
			break;
		used = write_chunk(tty, (const u8 *)buf + total, chunk);
		total += used;
		if (!used && file->flags & O_NONBLOCK)
			error = -EAGAIN;
		cond_resched();
	}
	return total ? (ssize_t)total : error;
}

int tty_wait_sent(struct tty *tty)
{
	return wait_event_interruptible(&console_room_wait, console_is_empty());
}

static u32 poll_tty(struct file *file, struct poll_table *table)
{
	struct tty *tty = &console_tty;
	const u8 *chars = tty->ldisc.termios.control_chars;
	u32 events = 0;

	poll_wait(table, &tty->read_wait);
	poll_wait(table, &tty->write_wait);
	poll_wait(table, &console_room_wait);
	if (ldisc_readable(&tty->ldisc, chars[VTIME] ? 1 : chars[VMIN]))
		events |= POLLIN | POLLRDNORM;
	if (may_write(tty) && has_room(CHUNK_BYTES))
		events |= POLLOUT | POLLWRNORM;
	return events;
}

/* Opening */

static int open_tty(struct file *file)
{
	if (!(file->flags & O_NOCTTY) && file_may_read(file))
		tty_open_controlling(&console_tty);
	return 0;
}

static int open_controlling(struct file *file)
{
	return current->proc && READ_ONCE(current->proc->tty) ? 0 : -ENXIO;
}

pid_t tty_foreground_pgid(const struct tty *tty)
{
	return READ_ONCE(tty->foreground);
}

u32 tty_number(const struct tty *tty)
{
	return tty ? 4 << 8 | 64 : 0;
}

const struct file_ops tty_file_ops = {
	.read = read_tty,
	.write = write_tty,
	.ioctl = tty_ioctl,
	.poll = poll_tty,
	.open = open_tty,
};

const struct file_ops console_file_ops = {
	.read = read_tty,
	.write = write_tty,
	.ioctl = tty_ioctl,
	.poll = poll_tty,
};

const struct file_ops controlling_tty_file_ops = {
	.read = read_tty,
	.write = write_tty,
	.ioctl = tty_ioctl,
	.poll = poll_tty,
	.open = open_controlling,
};
