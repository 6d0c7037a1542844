// SPDX-License-Identifier: BSD-2-Clause
/*
 * The console: a queue of bytes that the UART's interrupt sends. The interrupt is on while the
 * queue may have bytes. Code that leaves bytes in the queue turns it on, and the handler that finds
 * the queue empty turns it off. So printk() can empty the queue without waking writers, which it
 * could not do under the locks of its callers.
 *
 * A serial line that takes no bytes is stalled. Callers with interrupts on, and all callers in a
 * panic, wait until it has been stalled for console_wait=. Other callers wait until it has been
 * stalled for SHORT_WAIT_NS.
 */

#include <lego/console.h>

#include <asm/irqflags.h>
#include <asm/uart.h>
#include <lego/errno.h>
#include <lego/irq.h>
#include <lego/lock_check.h>
#include <lego/params.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/smp.h>
#include <lego/spinlock.h>
#include <lego/time.h>

#define SHORT_WAIT_NS	(100 * NSEC_PER_MSEC)
#define MAX_EARLY_POLLS 5000000 /* a microsecond or more each */

/* Guards the variables below and the UART's transmitter; taken with interrupts off. */
static DEFINE_SPINLOCK(lock);
static u8 queue[CONSOLE_QUEUE_BYTES];
static u32 head, tail; /* next to send, next to put; never reset */
static u32 log_tail;   /* end of the log's last line */

static bool is_stalled; /* the UART had no room at the last check */
static u64 stalled_since_ns;
static struct console_loss loss;
static u64 nr_lost_bytes;

static u64 max_wait_ns = 10 * NSEC_PER_SEC;

static int owner = -1; /* CPU inside the lock */
static bool lock_busted;

struct wait_queue console_room_wait = WAIT_QUEUE_INIT(console_room_wait);
static struct wake_timer room_wake = WAKE_TIMER_INIT(room_wake, console_room_wait);

static int set_wait(const char *value)
{
	u64 ms;

	if (parse_u64(value, &ms) || ms > 3600000)
		return -EINVAL;
	max_wait_ns = ms * NSEC_PER_MSEC;
	return 0;
}
/*
 * How long printing waits for a serial line that accepts nothing, then lines go to `dmesg` only:
 * 10000 by default.
 */
BOOT_PARAM(console_wait, "console_wait", "<milliseconds, at most an hour>", set_wait);

bool console_lock(void)
{
	int cpu = smp_processor_id();

	if (READ_ONCE(lock_busted))
		return true;
	if (in_nmi() || READ_ONCE(owner) == cpu) {
		if (!spin_trylock(&lock))
			return false;
	} else {
		spin_lock(&lock);
	}
	WRITE_ONCE(owner, cpu);
	return true;
}

void console_unlock(void)
{
	if (READ_ONCE(lock_busted))
		return;
	WRITE_ONCE(owner, -1);
	spin_unlock(&lock);
}

static u32 nr_queued(void)
{
	return READ_ONCE(tail) - READ_ONCE(head);
}

size_t console_room(void)
{
	return CONSOLE_QUEUE_BYTES - nr_queued();
}

/* Puts text into the queue. The lock is held, and there is room. */
static void console_put(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		queue[(tail + i) % CONSOLE_QUEUE_BYTES] = text[i];
	WRITE_ONCE(tail, tail + n);
}

/* Returns whether the UART has room, and records the time of a stall. Lock held. */
static bool uart_is_ready(void)
{
	bool ready = uart_has_room();

	if (ready == is_stalled) {
		u64 now_ns = clock_monotonic_ns();

		if (ready && loss.nr_lines)
			loss.stall_ns += now_ns - stalled_since_ns;
		stalled_since_ns = now_ns;
		is_stalled = !ready;
	}
	return ready;
}

/* Sends as many bytes as the UART takes at once. Returns false if it takes none. Lock held. */
static bool send_piece(void)
{
	if (!uart_is_ready())
		return false;
	for (u32 n = min(nr_queued(), UART_FIFO_BYTES); n; n--) {
		uart_send(queue[head % CONSOLE_QUEUE_BYTES]);
		WRITE_ONCE(head, head + 1);
	}
	return true;
}

static bool is_stalled_for(u64 ns)
{
	return is_stalled && clock_monotonic_ns() - stalled_since_ns >= ns;
}

/* Sends until there is room for n bytes. Returns false if the line is stalled. Lock held. */
static bool make_room(size_t n)
{
	u64 wait_ns = lock_busted ? max_wait_ns : SHORT_WAIT_NS;
	u32 max_polls = is_stalled ? 1 : MAX_EARLY_POLLS;

	while (console_room() < n) {
		if (send_piece())
			continue;
		if (uart_has_irq() ? is_stalled_for(wait_ns) : !max_polls--)
			return false;
		cpu_relax();
	}
	return true;
}

/* Returns true in contexts where nothing else may send the queued bytes later. */
static bool must_send(void)
{
	return !uart_has_irq() || READ_ONCE(lock_busted) || in_nmi() || lock_check_reporting();
}

/* Returns whether the last byte, sent or queued, has left the cursor inside a line. */
static bool is_cursor_in_line(void)
{
	return tail && queue[(tail - 1) % CONSOLE_QUEUE_BYTES] != '\n';
}

void console_put_line(const char *prefix, size_t prefix_len, const char *text, size_t len)
{
	size_t n = 2 * is_cursor_in_line() + prefix_len + len + 2;

	if (loss.nr_lines || !make_room(n)) {
		loss.nr_lines++;
		nr_lost_bytes += prefix_len + len + 2;
		return;
	}
	if (is_cursor_in_line())
		console_put("\r\n", 2);
	console_put(prefix, prefix_len);
	console_put(text, len);
	console_put("\r\n", 2);
	log_tail = tail;
	if (must_send())
		make_room(CONSOLE_QUEUE_BYTES);
}

bool console_take_loss(struct console_loss *taken)
{
	if (!loss.nr_lines)
		return false;
	while (nr_queued() && send_piece())
		;
	if (nr_queued())
		return false;
	*taken = loss;
	loss = (struct console_loss){};
	return true;
}

u64 console_nr_lost_bytes(void)
{
	return READ_ONCE(nr_lost_bytes);
}

/* Takes the lock for callers that are never in an NMI. They cannot fail to get it. */
static unsigned long lock_irqsave(void)
{
	unsigned long flags = local_irq_save();

	console_lock();
	return flags;
}

static void unlock_irqrestore(unsigned long flags)
{
	console_unlock();
	local_irq_restore(flags);
}

/*
 * Sends some bytes and unlocks. Returns how many of n bytes the caller must still send, or 0 if it
 * must give up.
 */
static u32 drain_piece(u32 n, bool may_wait)
{
	u32 before = head;

	send_piece();
	n = min(n - min(n, head - before), nr_queued());
	if (n && (!may_wait || is_stalled_for(max_wait_ns))) {
		uart_send_irq(true);
		n = 0;
	}
	console_unlock();
	return n;
}

void console_drain(void)
{
	bool may_wait = !irqs_disabled();
	u32 n = nr_queued();
	unsigned long flags;

	if (must_send())
		return;
	while (n) {
		flags = local_irq_save();
		if (!console_lock())
			n = 0;
		else
			n = drain_piece(n, may_wait);
		local_irq_restore(flags);
		cpu_relax();
	}
}

void console_bust_lock(void)
{
	WRITE_ONCE(lock_busted, true);
	make_room(CONSOLE_QUEUE_BYTES);
}

bool console_is_empty(void)
{
	return !nr_queued();
}

size_t console_queue(const u8 *buf, size_t n, size_t keep_bytes)
{
	unsigned long flags = lock_irqsave();
	size_t room = console_room();

	room = room > keep_bytes ? room - keep_bytes : 0;
	n = min(n, room);
	console_put((const char *)buf, n);
	if (!uart_has_irq())
		make_room(CONSOLE_QUEUE_BYTES);
	else if (n)
		uart_send_irq(true);
	unlock_irqrestore(flags);
	return n;
}

void console_discard(void)
{
	unsigned long flags = lock_irqsave();
	u32 nr_kept = log_tail - head;

	/* The log's last line may already have been sent. */
	WRITE_ONCE(tail, head + (nr_kept <= nr_queued() ? nr_kept : 0));
	unlock_irqrestore(flags);
}

void console_transmit(void)
{
	unsigned long flags = lock_irqsave();
	bool was_empty = !nr_queued(), has_lost;
	u32 n;

	if (was_empty)
		uart_send_irq(false);
	else
		send_piece();
	n = nr_queued();
	has_lost = loss.nr_lines;
	unlock_irqrestore(flags);
	if (!n && has_lost)
		printk_say_loss();
	if (n <= CONSOLE_QUEUE_BYTES / 2)
		wake_up_in_steps(&room_wake, true);
}
