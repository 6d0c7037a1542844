/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TTY_LDISC_H
#define TTY_LDISC_H

/*
 * The line discipline: Linux's N_TTY processing of a terminal's bytes, without a device. No locks,
 * no sleeping, no user memory; the caller prevents concurrent calls.
 */

#include "termios.h"
#include <lego/kernel.h>

#define LDISC_BYTES 4096 /* maximum length of a line, with its newline; power of two */

struct ldisc {
	struct termios termios;

	/* Callbacks to the terminal: echo one byte, and drop all output that is not sent yet. */
	void (*echo)(u8 byte);
	void (*discard_output)(void);

	/*
	 * Input. tail <= line_start <= head are never reset: complete lines, then the line that is
	 * being edited. Without ICANON, all bytes up to head can be read. A set bit in line_ends
	 * marks a line's last byte. If that byte is 0, it stands for VEOF and is not read.
	 */
	u8 buf[LDISC_BYTES];
	u8 line_ends[LDISC_BYTES / 8];
	u32 head, line_start, tail;
	bool literal_next; /* VLNEXT was typed */
	bool erasing;	   /* ECHOPRT: between \ and / */

	u32 column;	  /* of the terminal's cursor */
	u32 start_column; /* where the line that is being edited starts */
	bool stopped;	  /* by VSTOP: writers wait */
};

/* Starts a discipline with Linux's settings for a new terminal. */
void ldisc_init(struct ldisc *ldisc, void (*echo)(u8 byte), void (*discard_output)(void));

/* Replaces the settings. Switching ICANON makes all input so far readable. */
void ldisc_set_termios(struct ldisc *ldisc, const struct termios *termios);

/*
 * Returns whether there is room for one more byte. A buffer full of one unfinished line has room,
 * so that the line can be ended or killed: its last byte is replaced.
 */
bool ldisc_has_room(const struct ldisc *ldisc);

/*
 * Processes one input byte, for which there is room. Returns the signal for the foreground group,
 * or 0.
 */
int ldisc_receive(struct ldisc *ldisc, u8 byte);

/* Returns whether read() has input. nr_bytes: how many bytes it needs without ICANON. */
bool ldisc_readable(const struct ldisc *ldisc, u32 nr_bytes);

/*
 * Takes at most size bytes of input: of the first line or, without ICANON, of all. Must be called
 * only if ldisc_readable(ldisc, 1); then a result of 0 means the end of the file.
 */
size_t ldisc_read(struct ldisc *ldisc, u8 *buf, size_t size);

/* Returns how many bytes can be read, for FIONREAD. */
size_t ldisc_nr_readable(const struct ldisc *ldisc);

/* Drops all input. */
void ldisc_flush_input(struct ldisc *ldisc);

/*
 * Processes the output of a program into out, at most room bytes, and stores their number in
 * *nr_out. Returns how many input bytes were used.
 */
size_t ldisc_output(struct ldisc *ldisc, const u8 *buf, size_t n, u8 *out, size_t room,
		    size_t *nr_out);

#define LDISC_MAX_EXPANSION 8 /* the longest expansion of one byte: a tab */

/* How long a read() waits, by VMIN and VTIME: Linux's four cases. */
struct ldisc_wait {
	size_t nr_wanted; /* read() returns when there are this many bytes */
	u64 first_ns;	  /* time limit for the first byte; ~0: for ever */
	u64 next_ns;	  /* time limit for each further byte */
};

void ldisc_get_wait(const struct ldisc *ldisc, struct ldisc_wait *wait);

#endif
