// SPDX-License-Identifier: BSD-2-Clause
/*
 * The log is a ring of text; positions count all bytes ever written. syslog(2) copies it out in
 * chunks and puts Linux's "<6>" before each line, because this kernel has only one level. If the
 * ring has lost text meanwhile, the reader goes on at the next complete line.
 *
 * Everything needs root, as with Linux's dmesg_restrict=1: the log contains reports with kernel
 * addresses, and clearing it hides them from others.
 *
 * printk() may be called with any lock held, so it cannot wake readers. A reader that waits for
 * lines polls ten times a second.
 */

#include "log.h"

#include <asm/irqflags.h>
#include <lego/atomic.h>
#include <lego/console.h>
#include <lego/errno.h>
#include <lego/mutex.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define LOG_BYTES	(1UL << CONFIG_LOG_BUF_SHIFT)
#define LEVEL		"<6>"
#define LEVEL_BYTES	3
#define LOG_LEVEL	6
#define CONSOLE_DEFAULT 7
#define CONSOLE_QUIET	1
#define PIECE_BYTES	1024
#define LOOK_AGAIN_NS	(100 * NSEC_PER_MSEC)

enum syslog_action {
	SYSLOG_CLOSE,
	SYSLOG_OPEN,
	SYSLOG_READ,
	SYSLOG_READ_ALL,
	SYSLOG_READ_CLEAR,
	SYSLOG_CLEAR,
	SYSLOG_CONSOLE_OFF,
	SYSLOG_CONSOLE_ON,
	SYSLOG_CONSOLE_LEVEL,
	SYSLOG_SIZE_UNREAD,
	SYSLOG_SIZE_BUFFER,
};

/* Guarded by the console lock. */
static char ring[LOG_BYTES];
static u64 head_bytes; /* number of bytes ever written */

static int console_level = CONSOLE_DEFAULT;

/* The state of syslog(2), guarded by the mutex. */
static DEFINE_MUTEX(syslog_mutex);
static u64 clear_bytes;	   /* READ_ALL starts here */
static u64 consumed_bytes; /* READ goes on here */
static u32 nr_in_prefix;   /* characters of LEVEL that READ has returned of its current line */

/*
 * Lines that users' programs cause must not push out what root wants to read. So they use up this
 * room, each as many bytes as the longest of them has, and other lines give back a quarter of their
 * bytes.
 */
#define USER_ROOM_BYTES (LOG_BYTES / 4)
#define USER_LINE_BYTES 256
static u64 user_room = USER_ROOM_BYTES; /* atomic */

bool log_take_user_line(void)
{
	u64 room = READ_ONCE(user_room), seen;

	for (;; room = seen) {
		if (room < USER_LINE_BYTES)
			return false;
		seen = cmpxchg(&user_room, room, room - USER_LINE_BYTES);
		if (seen == room)
			return true;
	}
}

bool log_has_user_room(void)
{
	return READ_ONCE(user_room) >= USER_LINE_BYTES;
}

void log_append(const char *text, size_t len)
{
	if (READ_ONCE(user_room) < USER_ROOM_BYTES)
		__atomic_fetch_add(&user_room, len / 4, __ATOMIC_RELAXED);
	while (len) {
		size_t at = head_bytes % LOG_BYTES;
		size_t n = min(len, LOG_BYTES - at);

		memcpy(ring + at, text, n);
		head_bytes += n;
		text += n;
		len -= n;
	}
}

bool log_is_loud(void)
{
	return LOG_LEVEL < READ_ONCE(console_level);
}

void printk_console_on(void)
{
	WRITE_ONCE(console_level, CONSOLE_DEFAULT);
}

/* Returns pos or, if that text is lost, the start of the first complete line. Console lock held. */
static u64 skip_lost(u64 pos)
{
	if (head_bytes - pos <= LOG_BYTES)
		return pos;
	pos = head_bytes - LOG_BYTES;
	while (pos < head_bytes && ring[pos++ % LOG_BYTES] != '\n')
		;
	return pos;
}

/* Copies text from *pos on, or from the first complete line after it, up to end. */
static size_t copy_piece(u64 *pos, u64 end, char *buf, size_t size)
{
	unsigned long flags = local_irq_save();
	size_t n;

	console_lock();
	*pos = skip_lost(*pos);
	n = *pos < end ? min(size, (size_t)(end - *pos)) : 0;
	for (size_t i = 0; i < n; i++)
		buf[i] = ring[(*pos + i) % LOG_BYTES];
	console_unlock();
	local_irq_restore(flags);
	return n;
}

static u64 log_end(void)
{
	unsigned long flags = local_irq_save();
	u64 end;

	console_lock();
	end = head_bytes;
	console_unlock();
	local_irq_restore(flags);
	return end;
}

/* Returns the number of bytes from pos, the start of a line, to end, including the levels. */
static size_t count_bytes(u64 pos, u64 end, char *buf)
{
	size_t total = 0, n;

	while ((n = copy_piece(&pos, end, buf, PIECE_BYTES))) {
		for (size_t i = 0; i < n; i++)
			total += buf[i] == '\n' ? 1 + LEVEL_BYTES : 1;
		pos += n;
		cond_resched();
	}
	return total;
}

/* Returns the start of the first line from which the rest of the text fits into size. */
static u64 find_start(u64 pos, u64 end, size_t total, size_t size, char *buf)
{
	bool in_line = false;
	size_t n;

	while ((total > size || in_line) && (n = copy_piece(&pos, end, buf, PIECE_BYTES))) {
		for (size_t i = 0; i < n && (total > size || in_line); i++) {
			in_line = buf[i] != '\n';
			total -= min(total, in_line ? 1UL : 1UL + LEVEL_BYTES);
			pos++;
		}
	}
	return pos;
}

struct output {
	char __user *buf;
	size_t size, used;
};

static int syslog_put(struct output *out, const char *text, size_t n)
{
	if (copy_to_user(out->buf + out->used, text, n))
		return -EFAULT;
	out->used += n;
	return 0;
}

/*
 * Puts lines from *pos on, as long as there is room. *nr_prefix characters of the level have been
 * put already.
 */
static int put_lines(struct output *out, u64 *pos, u64 end, u32 *nr_prefix, char *buf)
{
	size_t n;
	int error;

	while (out->used < out->size && (n = copy_piece(pos, end, buf, PIECE_BYTES))) {
		size_t len = min((size_t)(LEVEL_BYTES - *nr_prefix), out->size - out->used);
		size_t line_bytes = 0;

		error = syslog_put(out, &LEVEL[*nr_prefix], len);
		if (error)
			return error;
		*nr_prefix += len;
		while (line_bytes < n && buf[line_bytes++] != '\n')
			;
		len = min(line_bytes, out->size - out->used);
		error = syslog_put(out, buf, len);
		if (error)
			return error;
		*pos += len;
		if (len && buf[len - 1] == '\n')
			*nr_prefix = 0;
		cond_resched();
	}
	return 0;
}

/* Root has read all that it wants to: users' lines may take the whole room again. */
static void clear_until(u64 end)
{
	clear_bytes = end;
	WRITE_ONCE(user_room, USER_ROOM_BYTES);
}

static long read_all(char __user *user_buf, size_t size, bool clear, char *buf)
{
	struct output out = { .buf = user_buf, .size = size };
	u64 end = log_end(), pos;
	u32 nr_prefix = 0;
	int error;

	pos = find_start(clear_bytes, end, count_bytes(clear_bytes, end, buf), size, buf);
	error = put_lines(&out, &pos, end, &nr_prefix, buf);
	if (!error && clear)
		clear_until(end);
	return error ?: (long)out.used;
}

/* Waits for text and reads it. The mutex is held, and released while there is no text. */
static long read_new(char __user *user_buf, size_t size, char *buf)
{
	struct output out = { .buf = user_buf, .size = size };
	u64 end;
	int error;

	while ((end = log_end()) == consumed_bytes) {
		mutex_unlock(&syslog_mutex);
		error = sleep_until_ns(clock_monotonic_ns() + LOOK_AGAIN_NS);
		mutex_lock(&syslog_mutex);
		if (error)
			return -ERESTARTSYS;
	}
	error = put_lines(&out, &consumed_bytes, end, &nr_in_prefix, buf);
	return error && !out.used ? error : (long)out.used;
}

static long read_log(int action, char __user *user_buf, int size)
{
	char *buf;
	long ret;

	if (!user_buf || size < 0)
		return -EINVAL;
	if (!size)
		return 0;
	if (!access_ok(user_buf, size))
		return -EFAULT;
	buf = kmalloc(PIECE_BYTES);
	if (!buf)
		return -ENOMEM;
	mutex_lock(&syslog_mutex);
	if (action == SYSLOG_READ)
		ret = read_new(user_buf, size, buf);
	else
		ret = read_all(user_buf, size, action == SYSLOG_READ_CLEAR, buf);
	mutex_unlock(&syslog_mutex);
	kfree(buf);
	return ret;
}

static long size_unread(void)
{
	char *buf = kmalloc(PIECE_BYTES);
	long ret;

	if (!buf)
		return -ENOMEM;
	mutex_lock(&syslog_mutex);
	ret = count_bytes(consumed_bytes, log_end(), buf) - nr_in_prefix;
	mutex_unlock(&syslog_mutex);
	kfree(buf);
	return max(ret, 0L);
}

static void clear_log(void)
{
	mutex_lock(&syslog_mutex);
	clear_until(log_end());
	mutex_unlock(&syslog_mutex);
}

SYSCALL_DEFINE3(syslog, int, action, char __user *, buf, int, len)
{
	static int saved_level; /* the level before CONSOLE_OFF; 0: the console is on */

	if (!process_is_root(current->proc))
		return -EPERM;
	switch (action) {
	case SYSLOG_CLOSE:
	case SYSLOG_OPEN:
		return 0;
	case SYSLOG_READ:
	case SYSLOG_READ_ALL:
	case SYSLOG_READ_CLEAR:
		return read_log(action, buf, len);
	case SYSLOG_CLEAR:
		clear_log();
		return 0;
	case SYSLOG_CONSOLE_OFF:
		if (!saved_level)
			saved_level = console_level;
		WRITE_ONCE(console_level, CONSOLE_QUIET);
		return 0;
	case SYSLOG_CONSOLE_ON:
		if (saved_level)
			WRITE_ONCE(console_level, saved_level);
		saved_level = 0;
		return 0;
	case SYSLOG_CONSOLE_LEVEL:
		if (len < 1 || len > 8)
			return -EINVAL;
		WRITE_ONCE(console_level, len);
		saved_level = 0;
		return 0;
	case SYSLOG_SIZE_UNREAD:
		return size_unread();
	case SYSLOG_SIZE_BUFFER:
		return LOG_BYTES;
	default:
		return -EINVAL;
	}
}
