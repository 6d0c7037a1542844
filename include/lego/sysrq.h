/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SYSRQ_H
#define LEGO_SYSRQ_H

/* Serial BREAK, then within 5 s a letter. Commands register at link time. */

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

/* Starts the thread that obeys keys: process context, once. Until then interrupts obey them. */
void sysrq_start(void);

/* From the UART's interrupt: a BREAK, or a byte. True when sysrq consumed the byte. */
void sysrq_break(void);
bool sysrq_byte(u8 byte);

/* A BREAK was seen, and the next byte will be taken for its key. Any context. */
bool sysrq_is_armed(void);

/* Obeys a key at once, for /proc/sysrq-trigger: process context. Returns false if there is none. */
bool sysrq_run(u8 letter);

/* Waits until all keys that were typed are obeyed: process context, before the machine ends. */
void sysrq_finish(void);

#endif
