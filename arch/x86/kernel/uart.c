// SPDX-License-Identifier: BSD-2-Clause
/*
 * COM1, a 16550. The log is sent by polling, one FIFO at a time; the terminal sends and receives by
 * interrupt.
 *
 * Reading the line status clears its break bit, so every reader, sender or receiver, records a
 * BREAK in break_due. The BREAK is also a NUL in the receive FIFO, which tells the receiver its
 * place among the bytes. The trigger level of the receive FIFO is 1, so that the NUL alone
 * interrupts.
 */
#include <asm/uart.h>

#include <asm/apic.h>
#include <asm/io.h>
#include <asm/irqflags.h>
#include <asm/processor.h>
#include <asm/vectors.h>
#include <lego/atomic.h>
#include <lego/console.h>
#include <lego/printk.h>
#include <lego/profile.h>
#include <lego/spinlock.h>
#include <lego/sysrq.h>

#define COM1	 0x3f8
#define COM1_IRQ 4
#define DIVISOR	 1 /* 115200 / 115200 */

enum uart_register {
	UART_DATA = COM1,
	UART_DIVISOR_LOW = COM1,
	UART_DIVISOR_HIGH = COM1 + 1,
	UART_INTERRUPTS = COM1 + 1,
	UART_IDENTIFY = COM1 + 2, /* reading */
	UART_FIFO = COM1 + 2,	  /* writing */
	UART_LINE = COM1 + 3,
	UART_MODEM = COM1 + 4,
	UART_STATUS = COM1 + 5,
	UART_SCRATCH = COM1 + 7,
};

#define INTERRUPT_RECEIVED 0x01
#define INTERRUPT_SEND	   0x02
#define INTERRUPT_LINE	   0x04
#define IDENTIFY_NONE	   0x01
#define FIFO_ENABLE_CLEAR  0x07
#define LINE_8N1	   0x03
#define LINE_BREAK	   0x40
#define LINE_DIVISOR	   0x80
#define MODEM_DTR_RTS_OUT2 0x0b /* OUT2 lets the interrupt line out of the chip */
#define STATUS_RECEIVED	   0x01
#define STATUS_BREAK	   0x10
#define STATUS_SEND_EMPTY  0x20
#define STATUS_SEND_DONE   0x40 /* and the last byte has left the chip */

/* A read of a port takes about a microsecond, and the longest wait for a live UART is 1.4 ms. */
#define MAX_POLLS 5000000

/*
 * The maximum number of rounds in one interrupt, each one FIFO in both directions, so that a noisy
 * line cannot occupy the CPU.
 */
#define MAX_ROUNDS   16
#define MAX_RECEIVED 16

static bool present;
static bool irq_enabled;
static bool break_due;	 /* a BREAK was seen, and the FIFO has not been empty since */
static bool break_found; /* the NUL of the last one was read */

/* Guards the interrupt enable register and what it is made of; taken with interrupts off. */
static DEFINE_SPINLOCK(interrupts_lock);
static bool send_wanted;
static bool throttled; /* read without the lock by the receiver */
static u8 interrupts;

static u8 read_status(void)
{
	u8 status = inb(UART_STATUS);

	if (status & STATUS_BREAK) {
		WRITE_ONCE(break_found, false);
		WRITE_ONCE(break_due, true);
	}
	return status;
}

void uart_early_init(void)
{
	/* The scratch register has no other use; a missing chip reads as all ones. */
	outb(0x5a, UART_SCRATCH);
	present = inb(UART_SCRATCH) == 0x5a;
	if (!present)
		return;
	outb(0, UART_INTERRUPTS);
	outb(LINE_DIVISOR, UART_LINE);
	outb(DIVISOR, UART_DIVISOR_LOW);
	outb(0, UART_DIVISOR_HIGH);
	outb(LINE_8N1, UART_LINE);
	outb(FIFO_ENABLE_CLEAR, UART_FIFO);
	outb(MODEM_DTR_RTS_OUT2, UART_MODEM);
}

bool uart_has_room(void)
{
	return !present || read_status() & STATUS_SEND_EMPTY;
}

void uart_send(u8 byte)
{
	if (present)
		outb(byte, UART_DATA);
}

/* Waits for status bits. Returns false after too many polls. */
static bool wait_for_status(u8 bits)
{
	for (int i = 0; present && i < MAX_POLLS; i++) {
		if (read_status() & bits)
			return true;
		cpu_relax();
	}
	return false;
}

void uart_write(const char *text)
{
	for (; *text && wait_for_status(STATUS_SEND_EMPTY); text++) {
		if (*text == '\n')
			uart_send('\r');
		uart_send(*text);
	}
}

void uart_flush(void)
{
	wait_for_status(STATUS_SEND_DONE);
}

/*
 * Sets the interrupt enable register. The lock is held. Turning the send interrupt on raises it at
 * once if there is room, and it is turned off only when the sender has nothing to send, so no
 * wake-up is lost.
 */
static void update_interrupts(void)
{
	u8 wanted = INTERRUPT_LINE;

	if (!throttled || sysrq_is_armed())
		wanted |= INTERRUPT_RECEIVED;
	if (send_wanted)
		wanted |= INTERRUPT_SEND;
	if (!irq_enabled || wanted == interrupts)
		return;
	interrupts = wanted;
	outb(interrupts, UART_INTERRUPTS);
}

static void set_wanted(bool *flag, bool on)
{
	unsigned long flags = spin_lock_irqsave(&interrupts_lock);

	WRITE_ONCE(*flag, on);
	update_interrupts();
	spin_unlock_irqrestore(&interrupts_lock, flags);
}

bool uart_has_irq(void)
{
	return READ_ONCE(irq_enabled);
}

void uart_send_irq(bool on)
{
	set_wanted(&send_wanted, on);
}

void uart_throttle(bool on)
{
	set_wanted(&throttled, on);
}

void uart_set_break(bool on)
{
	if (present)
		outb(LINE_8N1 | (on ? LINE_BREAK : 0), UART_LINE);
}

/*
 * Handles a byte. Several BREAKs, each followed by a key, may be in the FIFO when the break bit is
 * read. So from then until the FIFO is empty, each NUL is a BREAK.
 */
static void receive_byte(u8 byte)
{
	if (!byte && READ_ONCE(break_due)) {
		WRITE_ONCE(break_found, true);
		sysrq_break();
	} else if (!sysrq_byte(byte)) {
		console_receive(byte);
	}
}

/* Called when the FIFO is empty. If it had no NUL, it was full when the BREAK came. */
static void end_breaks(void)
{
	if (READ_ONCE(break_due) && xchg(&break_due, false) && !READ_ONCE(break_found))
		sysrq_break();
}

/*
 * Returns true if a byte may be read. While the terminal has no room, bytes are read only to find a
 * BREAK and its key; the console keeps the bytes before it.
 */
static bool may_receive(void)
{
	return !READ_ONCE(throttled) || (READ_ONCE(break_due) && !READ_ONCE(break_found)) ||
	       sysrq_is_armed();
}

static void receive_bytes(void)
{
	for (int i = 0; i < MAX_RECEIVED; i++) {
		u8 status = read_status();

		if (!(status & STATUS_RECEIVED)) {
			end_breaks();
			break;
		}
		if (!may_receive())
			break;
		receive_byte(inb(UART_DATA));
	}
	/* Sysrq may wait for a key now, or no longer. */
	if (READ_ONCE(throttled))
		uart_throttle(true);
}

/*
 * Serves the UART until its interrupt line is low: the line is edge triggered, so it must be low
 * before the next interrupt can come.
 */
static void serve_uart(void)
{
	for (int i = 0; i < MAX_ROUNDS; i++) {
		if (inb(UART_IDENTIFY) & IDENTIFY_NONE)
			return;
		receive_bytes();
		console_transmit();
	}
	spin_lock(&interrupts_lock);
	outb(0, UART_INTERRUPTS);
	outb(interrupts, UART_INTERRUPTS);
	spin_unlock(&interrupts_lock);
}

static void uart_interrupt(struct pt_regs *regs)
{
	profile_trace(irq_handler_entry, COM1_IRQ, "ttyS0");
	apic_eoi();
	serve_uart();
	profile_trace(irq_handler_exit, COM1_IRQ, true);
}

void uart_poll_errors(void)
{
	if (READ_ONCE(break_due) && READ_ONCE(irq_enabled))
		receive_bytes();
}

void uart_enable_irq(void)
{
	unsigned long flags;

	if (!present)
		return;
	irq_set_handler(VECTOR_UART, uart_interrupt);
	if (ioapic_route_isa(COM1_IRQ, VECTOR_UART, 0)) {
		printk("uart: no IOAPIC pin for the interrupt: no input\n");
		return;
	}
	flags = spin_lock_irqsave(&interrupts_lock);
	WRITE_ONCE(irq_enabled, true);
	update_interrupts();
	spin_unlock_irqrestore(&interrupts_lock, flags);
}
