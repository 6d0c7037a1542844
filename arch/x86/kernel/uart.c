// SPDX-License-Identifier: BSD-2-Clause
/*
 * COM1, a 16550. The log's output is polled, a FIFO's worth at a time; the terminal's goes out, and
 * input comes in, by interrupt.
 *
 * Reading the line status clears its break bit, so whoever reads it, sender or receiver,
 * notes a BREAK in break_due. The BREAK also stands in the receive FIFO as a NUL, and there
 * the receiver places it among the bytes. The receive FIFO's trigger level is 1, so that the
 * NUL alone interrupts.
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
 * What one interrupt does at most, so that a babbling line cannot keep the CPU: rounds of a FIFO's
 * worth each way.
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

/* Returns false if that does not happen. */
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
 * With the lock. Turning the send interrupt on raises it at once when there is room, and when the
 * sender has found nothing to send it is off: so none is lost.
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
 * The break bit does not count: several BREAKs, with keys behind them, may stand in the FIFO when
 * it is read. So each NUL is a BREAK from when the bit was seen until the FIFO is empty.
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

/* The FIFO is empty. If no NUL was in it, it was full when the BREAK came. */
static void end_breaks(void)
{
	if (READ_ONCE(break_due) && xchg(&break_due, false) && !READ_ONCE(break_found))
		sysrq_break();
}

/*
 * While nobody has room, bytes are taken only to find a BREAK among them, and the key behind it:
 * the console keeps what stood before it.
 */
static bool may_receive(void)
{
	return !READ_ONCE(throttled) || (READ_ONCE(break_due) && !READ_ONCE(break_found)) ||
	       sysrq_is_armed();
}

static void receive(void)
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
	/* A key is waited for, or no longer. */
	if (READ_ONCE(throttled))
		uart_throttle(true);
}

/*
 * The line to the IOAPIC is edge triggered: it has to be seen low before the next interrupt
 * can come.
 */
static void serve_uart(void)
{
	for (int i = 0; i < MAX_ROUNDS; i++) {
		if (inb(UART_IDENTIFY) & IDENTIFY_NONE)
			return;
		receive();
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
		receive();
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
