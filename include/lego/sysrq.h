/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SYSRQ_H
#define LEGO_SYSRQ_H

/* Serial BREAK, then within 5 s a letter. Commands register at link time. */

#include <lego/kernel.h>

struct sysrq_key {
	char letter; /* a to z */
	const char *help;
	void (*run)(void); /* interrupt context, interrupts off */
};

#define SYSRQ_KEY(ident, letter_, help_, run_)                                         \
	static const struct sysrq_key sysrq_key_##ident __used __section("sysrq_keys") \
		__aligned(8) = { .letter = letter_, .help = help_, .run = run_ }

/* From the UART's interrupt: a BREAK, or a byte. True when sysrq consumed the byte. */
void sysrq_break(void);
bool sysrq_byte(u8 byte);

/* A BREAK was seen, and the next byte will be taken for its key. Any context. */
bool sysrq_is_armed(void);

/* Run a key's command at once: /proc/sysrq-trigger. False: no such key. Any context but NMI. */
bool sysrq_run(u8 letter);

#endif
