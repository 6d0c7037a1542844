/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TTY_TERMIOS_H
#define TTY_TERMIOS_H

/* Linux's struct termios and its flags, in the layout of the system calls. */

#include <lego/types.h>

#define NR_CONTROL_CHARS 19

struct termios {
	u32 input_flags, output_flags, control_flags, local_flags;
	u8 line;
	u8 control_chars[NR_CONTROL_CHARS];
};

/* TCGETS2: with speeds in bits per second. */
struct termios2 {
	struct termios termios;
	u32 input_speed, output_speed;
};

struct winsize {
	u16 nr_rows, nr_columns, x_pixels, y_pixels;
};

/* Indexes of control_chars; a character of 0 is disabled. */
enum control_char {
	VINTR,
	VQUIT,
	VERASE,
	VKILL,
	VEOF,
	VTIME,
	VMIN,
	VSWTC,
	VSTART,
	VSTOP,
	VSUSP,
	VEOL,
	VREPRINT,
	VDISCARD,
	VWERASE,
	VLNEXT,
	VEOL2,
};

/* input_flags */
#define PARMRK 0000010
#define ISTRIP 0000040
#define INLCR  0000100
#define IGNCR  0000200
#define ICRNL  0000400
#define IUCLC  0001000
#define IXON   0002000
#define IXANY  0004000
#define IUTF8  0040000

/* output_flags */
#define OPOST  0000001
#define OLCUC  0000002
#define ONLCR  0000004
#define OCRNL  0000010
#define ONOCR  0000020
#define ONLRET 0000040
#define TABDLY 0014000
#define XTABS  0014000

/* control_flags */
#define B115200 0010002
#define CS8	0000060
#define CREAD	0000200
#define HUPCL	0002000
#define CLOCAL	0004000

/* local_flags */
#define ISIG	0000001
#define ICANON	0000002
#define ECHO	0000010
#define ECHOE	0000020
#define ECHOK	0000040
#define ECHONL	0000100
#define NOFLSH	0000200
#define TOSTOP	0000400
#define ECHOCTL 0001000
#define ECHOPRT 0002000
#define ECHOKE	0004000
#define IEXTEN	0100000

#endif
