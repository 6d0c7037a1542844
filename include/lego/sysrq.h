/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SYSRQ_H
#define LEGO_SYSRQ_H

/* Sysrq keys: a serial BREAK, then a letter within 5 s. Commands register at link time. */

#include <lego/kernel.h>

/* The contexts in which a key's function may run. */
enum sysrq_context {
	SYSRQ_ANY,     /* in a thread; in the interrupt if the thread does not get to it */
	SYSRQ_THREAD,  /* in a thread only: it may sleep */
	SYSRQ_AT_ONCE, /* in the interrupt, or in the writer of /proc/sysrq-trigger */
};

struct sysrq_key {
	char letter; /* a to z */
	enum sysrq_context context;
	const char *help;
	void (*run)(void);
};

#define __SYSRQ_KEY(ident, letter_, help_, run_, context_)                                        \
	static const struct sysrq_key sysrq_key_##ident __used __section("sysrq_keys") __aligned( \
		8) = { .letter = letter_, .context = context_, .help = help_, .run = run_ }

#define SYSRQ_KEY(ident, letter, help, run) __SYSRQ_KEY(ident, letter, help, run, SYSRQ_ANY)
#define SYSRQ_KEY_THREAD(ident, letter, help, run) \
	__SYSRQ_KEY(ident, letter, help, run, SYSRQ_THREAD)
#define SYSRQ_KEY_AT_ONCE(ident, letter, help, run) \
	__SYSRQ_KEY(ident, letter, help, run, SYSRQ_AT_ONCE)

/*
 * Starts the thread that handles keys. Until then, interrupts handle them. Process context, once.
 */
void sysrq_start(void);

/*
 * Called by the UART's interrupt for a BREAK, and for a byte. Returns true if sysrq consumed the
 * byte.
 */
void sysrq_break(void);
bool sysrq_byte(u8 byte);

/* Returns true after a BREAK, when the next byte will be a key. Any context. */
bool sysrq_is_armed(void);

/*
 * Handles a key at once, for /proc/sysrq-trigger. Returns false if there is no such key. Process
 * context.
 */
bool sysrq_run(u8 letter);

/* Lets the thread that handles keys list what each thread waits for. Any context but NMI. */
void sysrq_list_waits(void);

/* Waits until all typed keys are handled. Called before the machine ends. Process context. */
void sysrq_finish(void);

#endif
