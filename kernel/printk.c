// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel log. Text is collected in a line buffer for each CPU and context (thread, interrupt,
 * NMI), so lines never mix. A whole line goes into the log and into the console's queue, under the
 * console lock. A caller with interrupts on then waits until the UART has taken the line, so a
 * message is printed even if the machine dies right after it. For other callers the UART's
 * interrupt sends the line. A caller that must not wait for the lock (an NMI, or a fault inside
 * this code) puts the line into a small lock-free queue, which the next holder of the lock prints
 * first. If that queue is full, the lost line is counted and reported.
 */

#include <lego/printk.h>

#include "log.h"
#include <asm/irqflags.h>
#include <lego/atomic.h>
#include <lego/console.h>
#include <lego/irq.h>
#include <lego/kernel.h>
#include <lego/percpu.h>
#include <lego/sched.h>
#include <lego/string.h>
#include <lego/time.h>

#define LINE_BYTES     1024 /* longer lines are truncated and end in "..." */
#define NR_DEFERRED    32
#define DEFERRED_BYTES 256

enum context {
	CONTEXT_THREAD,
	CONTEXT_IRQ,
	CONTEXT_NMI,
#ifdef CONFIG_DEBUG_LOCKS
	CONTEXT_LOCK_REPORT, /* may come from inside printk() itself */
#endif
	NR_CONTEXTS
};

struct line {
	size_t len;
	char text[LINE_BYTES];
};

struct line_set {
	struct line lines[NR_CONTEXTS];
};

static DEFINE_PER_CPU(struct line_set, line_set);

struct deferred {
	bool ready;
	u16 len;
	u64 time_ns;
	char text[DEFERRED_BYTES];
};

static struct deferred deferred[NR_DEFERRED];
static u32 deferred_head; /* next slot to print; written with the console lock */
static u32 deferred_tail; /* next slot to claim; lock-free */
static unsigned int nr_deferred_lost;

/* Stores and prints one line; text has no newline. Console lock held. */
static void emit_line(u64 time_ns, const char *text, size_t len)
{
	char prefix[32];
	int prefix_len = scnprintf(prefix, sizeof(prefix), "[%5llu.%06llu] ",
				   (unsigned long long)(time_ns / NSEC_PER_SEC),
				   (unsigned long long)(time_ns % NSEC_PER_SEC / NSEC_PER_USEC));

	log_append(prefix, prefix_len);
	log_append(text, len);
	log_append("\n", 1);

	if (!log_is_loud())
		return;
	console_put_line(prefix, prefix_len, text, len);
}

/* Prints the lines in the lock-free queue. Console lock held. */
static void emit_deferred(void)
{
	unsigned int nr_lost;

	for (;;) {
		struct deferred *slot = &deferred[deferred_head % NR_DEFERRED];

		/* Pairs with the release in defer(): the text is complete. */
		if (!smp_load_acquire(&slot->ready))
			break;
		emit_line(slot->time_ns, slot->text, slot->len);
		slot->ready = false;
		/* Pairs with the acquire in defer(): the slot may be claimed again. */
		smp_store_release(&deferred_head, deferred_head + 1);
	}

	nr_lost = READ_ONCE(nr_deferred_lost) ? xchg(&nr_deferred_lost, 0) : 0;
	if (nr_lost) {
		char text[64];
		int len = scnprintf(text, sizeof(text), "printk: %u lines lost in NMIs", nr_lost);

		emit_line(clock_monotonic_ns(), text, len);
	}
}

/* Reports how many lines were lost. Console lock held. */
static void emit_loss(void)
{
	struct console_loss loss;
	char text[128];
	int len;

	if (!console_take_loss(&loss))
		return;
	len = scnprintf(text, sizeof(text),
			"console: %u lines were not printed, the serial line took nothing for "
			"%llu.%03llu s; dmesg has them",
			loss.nr_lines, (unsigned long long)(loss.stall_ns / NSEC_PER_SEC),
			(unsigned long long)(loss.stall_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	emit_line(clock_monotonic_ns(), text, len);
}

/* Leaves a line for the next holder of the console lock. Never waits. */
static void defer(u64 time_ns, const char *text, size_t len)
{
	u32 tail = READ_ONCE(deferred_tail), seen;
	struct deferred *slot;

	for (;;) {
		/* Pairs with the release in emit_deferred(): the slot has been read. */
		if (tail - smp_load_acquire(&deferred_head) >= NR_DEFERRED) {
			__atomic_fetch_add(&nr_deferred_lost, 1, __ATOMIC_RELAXED);
			return;
		}
		seen = cmpxchg(&deferred_tail, tail, tail + 1);
		if (seen == tail)
			break;
		tail = seen;
	}
	slot = &deferred[tail % NR_DEFERRED];
	slot->time_ns = time_ns;
	slot->len = min(len, sizeof(slot->text));
	memcpy(slot->text, text, slot->len);
	/* Pairs with the acquire in emit_deferred(). */
	smp_store_release(&slot->ready, true);
}

static void print_line(const char *text, size_t len)
{
	u64 now_ns = clock_monotonic_ns();

	if (!console_lock()) {
		defer(now_ns, text, len);
		return;
	}
	emit_loss();
	emit_deferred();
	emit_line(now_ns, text, len);
	console_unlock();
}

void printk_say_loss(void)
{
	unsigned long flags = local_irq_save();

	if (console_lock()) {
		emit_loss();
		console_unlock();
	}
	local_irq_restore(flags);
	console_drain();
}

static struct line *current_line(void)
{
	struct line_set *set = this_cpu_ptr(&line_set);

#ifdef CONFIG_DEBUG_LOCKS
	if (lock_check_reporting())
		return &set->lines[CONTEXT_LOCK_REPORT];
#endif
	if (in_nmi())
		return &set->lines[CONTEXT_NMI];
	return &set->lines[in_irq() ? CONTEXT_IRQ : CONTEXT_THREAD];
}

/* Prints the complete lines in the buffer and keeps the rest. */
static void print_whole_lines(struct line *line)
{
	size_t start = 0;

	for (size_t i = 0; i < line->len; i++) {
		if (line->text[i] == '\n') {
			print_line(line->text + start, i - start);
			start = i + 1;
		}
	}
	line->len -= start;
	memmove(line->text, line->text + start, line->len);
}

int vprintk(const char *fmt, va_list args)
{
	unsigned long flags;
	struct line *line;
	size_t room, len;

	console_drain();
	flags = local_irq_save();
	line = current_line();
	room = sizeof(line->text) - line->len;
	len = vsnprintf(line->text + line->len, room, fmt, args);
	if (len >= room) {
		memcpy(line->text + sizeof(line->text) - 5, "...\n", 5);
		line->len = sizeof(line->text) - 1;
	} else {
		line->len += len;
	}
	print_whole_lines(line);
	local_irq_restore(flags);
	console_drain();
	return len;
}

int printk(const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vprintk(fmt, args);
	va_end(args);
	return len;
}

/* Completes a line. The buffer has room for the newline, in place of the NUL of vsnprintf(). */
static void end_line(struct line *line)
{
	if (line->len && line->text[line->len - 1] != '\n')
		line->text[line->len++] = '\n';
	print_whole_lines(line);
}

void printk_bust_locks(void)
{
	struct line_set *set = this_cpu_ptr(&line_set);

	printk_console_on();
	console_bust_lock();
	emit_deferred();
	/* Print the lines that this CPU had begun, and start new ones. */
	for (size_t i = 0; i < NR_CONTEXTS; i++)
		end_line(&set->lines[i]);
}

#ifdef CONFIG_SELFTEST
void printk_hold_console(void)
{
	local_irq_disable();
	console_lock();
}
#endif
