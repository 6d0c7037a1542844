// SPDX-License-Identifier: BSD-2-Clause
#include <lego/console.h>

#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/string.h>
#include <lego/uaccess.h>
#include <lego/wait.h>

/*
 * Input goes through a ring: the UART's interrupt fills it, readers empty it, lock guards both
 * ends. There is no line editing and no echo; a carriage return is read as a newline.
 */

#define INPUT_BYTES 1024 /* power of two */

static char input[INPUT_BYTES];
static u32 input_head, input_tail;  /* next to read, next to write */
static DEFINE_SPINLOCK(input_lock); /* taken with interrupts off */
static struct wait_queue input_wait = WAIT_QUEUE_INIT(input_wait);

void console_receive(u8 byte)
{
	unsigned long flags = spin_lock_irqsave(&input_lock);
	bool room = input_tail - input_head < INPUT_BYTES;

	if (room)
		input[input_tail++ % INPUT_BYTES] = byte == '\r' ? '\n' : byte;
	spin_unlock_irqrestore(&input_lock, flags);
	if (room)
		wake_up_all(&input_wait);
}

static size_t take(char *buf, size_t n)
{
	unsigned long flags = spin_lock_irqsave(&input_lock);
	size_t taken = 0;

	while (taken < n && input_head != input_tail)
		buf[taken++] = input[input_head++ % INPUT_BYTES];
	spin_unlock_irqrestore(&input_lock, flags);
	return taken;
}

static ssize_t read(struct file *file, void *buf, size_t n, u64 pos)
{
	size_t taken;
	int error;

	for (;;) {
		taken = take(buf, n);
		if (taken || !n)
			return taken;
		if (file->flags & O_NONBLOCK)
			return -EAGAIN;
		error = wait_event_interruptible(&input_wait,
						 READ_ONCE(input_head) != READ_ONCE(input_tail));
		if (error)
			return error;
	}
}

static ssize_t write(struct file *file, const void *buf, size_t n, u64 pos)
{
	console_write(buf, n);
	return n;
}

/* Linux's struct termios and struct winsize as the kernel calls see them. */
struct termios {
	u32 input_flags, output_flags, control_flags, local_flags;
	u8 line;
	u8 control_chars[19];
};

struct winsize {
	u16 nr_rows, nr_columns, x_pixels, y_pixels;
};

#define TCGETS	   0x5401
#define TIOCGWINSZ 0x5413
#define ICRNL	   0000400
#define OPOST	   0000001
#define ONLCR	   0000004
#define B115200	   0010002
#define CS8	   0000060
#define CREAD	   0000200
#define CLOCAL	   0004000

static long ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	static const struct termios termios = {
		.input_flags = ICRNL,
		.output_flags = OPOST | ONLCR,
		.control_flags = B115200 | CS8 | CREAD | CLOCAL,
	};
	static const struct winsize winsize; /* 0 by 0: not known */

	switch (command) {
	case TCGETS:
		return copy_to_user((void __user *)arg, &termios, sizeof(termios));
	case TIOCGWINSZ:
		return copy_to_user((void __user *)arg, &winsize, sizeof(winsize));
	default:
		return -ENOTTY;
	}
}

const struct file_ops console_file_ops = { .read = read, .write = write, .ioctl = ioctl };
