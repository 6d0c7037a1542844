// SPDX-License-Identifier: BSD-2-Clause
#include <lego/console.h>

#include <asm/irqflags.h>
#include <asm/uart.h>
#include <lego/irq.h>
#include <lego/percpu.h>
#include <lego/smp.h>
#include <lego/spinlock.h>

/*
 * The terminal's bytes wait in a ring which the UART's interrupt empties, a FIFO's worth at a time.
 * That interrupt is on as long as it may find something to do: it is turned on by who puts bytes
 * into the ring, and off by the handler that finds it empty. So a printk() that empties the ring
 * itself need not wake writers, which it could not do under the locks it is called with.
 */

#define DRAIN_BYTES 128 /* sent at once with interrupts off */

/* Guards what follows and the UART's transmitter; taken with interrupts off. */
static DEFINE_SPINLOCK(lock);
static u8 ring[CONSOLE_QUEUE_BYTES];
static u32 ring_head, ring_tail; /* next to send, next to put; counted without end */
static bool cursor_in_line;	 /* the last byte sent was not a newline */

static int owner = -1; /* CPU inside the lock */
static bool lock_busted;

struct wait_queue console_room_wait = WAIT_QUEUE_INIT(console_room_wait);

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
	return READ_ONCE(ring_tail) - READ_ONCE(ring_head);
}

/* The bytes at the head that lie together, at most max. */
static u32 queued_chunk(u32 max_bytes)
{
	u32 n = min(nr_queued(), (u32)CONSOLE_QUEUE_BYTES - ring_head % CONSOLE_QUEUE_BYTES);

	return min(n, max_bytes);
}

static void advance(u32 n)
{
	if (!n)
		return;
	cursor_in_line = ring[(ring_head + n - 1) % CONSOLE_QUEUE_BYTES] != '\n';
	WRITE_ONCE(ring_head, ring_head + n);
}

/* Polls. With the lock. */
static void send_queued(u32 max_bytes)
{
	u32 n;

	while (max_bytes && (n = queued_chunk(max_bytes))) {
		uart_write_raw(ring + ring_head % CONSOLE_QUEUE_BYTES, n);
		advance(n);
		max_bytes -= n;
	}
}

void console_begin_line(void)
{
	send_queued(CONSOLE_QUEUE_BYTES);
	if (cursor_in_line)
		uart_write("\n", 1);
	cursor_in_line = false;
}

void console_print(const char *text, size_t len)
{
	uart_write(text, len);
}

void console_drain(void)
{
	u32 n = nr_queued();

	while (n && !irqs_disabled()) {
		unsigned long flags = local_irq_save();
		u32 chunk = min(n, (u32)DRAIN_BYTES);

		if (console_lock()) {
			send_queued(chunk);
			console_unlock();
		}
		local_irq_restore(flags);
		n = min(n - chunk, nr_queued());
	}
}

void console_bust_lock(void)
{
	WRITE_ONCE(lock_busted, true);
	send_queued(CONSOLE_QUEUE_BYTES);
}

/* The lock for who is never in an NMI: always taken. */
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

size_t console_room(void)
{
	return CONSOLE_QUEUE_BYTES - nr_queued();
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
	for (size_t i = 0; i < n; i++)
		ring[(ring_tail + i) % CONSOLE_QUEUE_BYTES] = buf[i];
	WRITE_ONCE(ring_tail, ring_tail + n);
	if (!uart_has_irq())
		send_queued(CONSOLE_QUEUE_BYTES);
	else if (n)
		uart_send_irq(true);
	unlock_irqrestore(flags);
	return n;
}

void console_discard(void)
{
	unsigned long flags = lock_irqsave();

	WRITE_ONCE(ring_head, ring_tail);
	unlock_irqrestore(flags);
}

void console_transmit(void)
{
	unsigned long flags = lock_irqsave();
	u32 n = nr_queued();
	bool was_empty = !n;

	if (n) {
		n = queued_chunk(CONSOLE_QUEUE_BYTES);
		advance(uart_try_send(ring + ring_head % CONSOLE_QUEUE_BYTES, n));
		n = nr_queued();
	}
	if (was_empty)
		uart_send_irq(false);
	unlock_irqrestore(flags);
	if (n <= CONSOLE_QUEUE_BYTES / 2)
		wake_up_all(&console_room_wait);
}
