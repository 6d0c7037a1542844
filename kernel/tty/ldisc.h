/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TTY_LDISC_H
#define TTY_LDISC_H

/*
 * The line discipline: what Linux's N_TTY does with the bytes of a terminal, and nothing else. No
 * locks, no sleeping, no user memory: the caller keeps others out.
 */

#include "termios.h"
#include <lego/kernel.h>

#define LDISC_BYTES 4096 /* a line's longest, with its newline; power of two */

struct ldisc {
	struct termios termios;

	/* To the terminal: a byte of echo; and: drop all output that has not left yet. */
	void (*echo)(u8 byte);
	void (*discard_output)(void);

	/*
	 * Input. tail <= line_start <= head, counted without end: complete lines, then the line
	 * that is being edited. Without ICANON, all up to head can be read. A set bit in line_ends
	 * marks a line's last byte; if that byte is 0, it stands for VEOF and is not read.
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

/* Linux's settings for a new terminal. */
void ldisc_init(struct ldisc *ldisc, void (*echo)(u8 byte), void (*discard_output)(void));

/* Replace the settings; switching ICANON makes what was typed so far readable. */
void ldisc_set_termios(struct ldisc *ldisc, const struct termios *termios);

/*
 * Is there room for a byte more? A full buffer of one unfinished line has, so that the line can be
 * ended or killed: its last byte is replaced.
 */
bool ldisc_has_room(const struct ldisc *ldisc);

/* A byte was typed; there is room. Returns the signal for the foreground group, or 0. */
int ldisc_receive(struct ldisc *ldisc, u8 byte);

/* Can read() take something? with: how many bytes it has to be without ICANON. */
bool ldisc_readable(const struct ldisc *ldisc, u32 nr_bytes);

/*
 * Take input: of the first line, or without ICANON all there is, at most size bytes. Only when
 * ldisc_readable(ldisc, 1): 0 then means the end of the file.
 */
size_t ldisc_read(struct ldisc *ldisc, u8 *buf, size_t size);

/* Bytes that can be read: FIONREAD. */
size_t ldisc_nr_readable(const struct ldisc *ldisc);

/* Drop all input. */
void ldisc_flush_input(struct ldisc *ldisc);

/*
 * Turn bytes that a program writes into those for the terminal: at most room of them in out, their
 * number in *nr_out. Returns how many bytes were used up.
 */
size_t ldisc_output(struct ldisc *ldisc, const u8 *buf, size_t n, u8 *out, size_t room,
		    size_t *nr_out);

#define LDISC_MAX_EXPANSION 8 /* bytes that one byte can become: a tab */

/* How a read() waits, by VMIN and VTIME: Linux's four cases. */
struct ldisc_wait {
	size_t nr_wanted; /* return once there are so many */
	u64 first_ns;	  /* how long to wait for the first byte; ~0: for ever */
	u64 next_ns;	  /* and for each further one */
};

void ldisc_get_wait(const struct ldisc *ldisc, struct ldisc_wait *wait);

#endif
