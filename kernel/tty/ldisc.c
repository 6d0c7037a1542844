// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every input byte is processed once, in the order of the checks in ldisc_receive(): flow control,
 * signals, newline mapping, line editing. Echo goes through the same output processing as the
 * output of programs, so that the column is known when a tab is erased.
 */

#include "ldisc.h"

#include <lego/signal.h>
#include <lego/string.h>

#define MASK	      (LDISC_BYTES - 1)
#define DECISECOND_NS 100000000ULL
#define FOREVER_NS    (~0ULL)
#define TAB_COLUMNS   8

static bool input_flag(const struct ldisc *ldisc, u32 flag)
{
	return ldisc->termios.input_flags & flag;
}

static bool output_flag(const struct ldisc *ldisc, u32 flag)
{
	return ldisc->termios.output_flags & flag;
}

static bool local_flag(const struct ldisc *ldisc, u32 flag)
{
	return ldisc->termios.local_flags & flag;
}

static bool is(const struct ldisc *ldisc, u8 byte, enum control_char which)
{
	return byte && byte == ldisc->termios.control_chars[which];
}

/* Returns whether byte is this control character, which is special only with IEXTEN. */
static bool is_extended(const struct ldisc *ldisc, u8 byte, enum control_char which)
{
	return local_flag(ldisc, IEXTEN) && is(ldisc, byte, which);
}

static bool is_control(u8 byte)
{
	return byte < 0x20 || byte == 0x7f;
}

static bool is_word(u8 byte)
{
	u8 lower = byte | 0x20;

	return (byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z') || byte == '_';
}

/*
 * Returns whether byte is the second or a later one of a UTF-8 character, which has no column of
 * its own.
 */
static bool is_continuation(const struct ldisc *ldisc, u8 byte)
{
	return input_flag(ldisc, IUTF8) && (byte & 0xc0) == 0x80;
}

void ldisc_init(struct ldisc *ldisc, void (*echo)(u8 byte), void (*discard_output)(void))
{
	static const struct termios defaults = {
		.input_flags = ICRNL | IXON,
		.output_flags = OPOST | ONLCR,
		.control_flags = B115200 | CS8 | CREAD | HUPCL | CLOCAL,
		.local_flags = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
		.control_chars = {
			[VINTR] = 'C' - '@', [VQUIT] = '\\' - '@', [VERASE] = 0x7f,
			[VKILL] = 'U' - '@', [VEOF] = 'D' - '@', [VMIN] = 1,
			[VSTART] = 'Q' - '@', [VSTOP] = 'S' - '@', [VSUSP] = 'Z' - '@',
			[VREPRINT] = 'R' - '@', [VDISCARD] = 'O' - '@', [VWERASE] = 'W' - '@',
			[VLNEXT] = 'V' - '@',
		},
	};

	memset(ldisc, 0, sizeof(*ldisc));
	ldisc->termios = defaults;
	ldisc->echo = echo;
	ldisc->discard_output = discard_output;
}

/* Output */

/* Stores the bytes to which one byte expands in out. Returns their number. */
static size_t output_byte(struct ldisc *ldisc, u8 byte, u8 out[LDISC_MAX_EXPANSION])
{
	size_t nr_spaces;

	if (!output_flag(ldisc, OPOST))
		goto out_as_is;
	switch (byte) {
	case '\n':
		if (output_flag(ldisc, ONLCR)) {
			ldisc->column = ldisc->start_column = 0;
			out[0] = '\r';
			out[1] = '\n';
			return 2;
		}
		if (output_flag(ldisc, ONLRET))
			ldisc->column = 0;
		ldisc->start_column = ldisc->column;
		break;
	case '\r':
		if (output_flag(ldisc, ONOCR) && !ldisc->column)
			return 0;
		if (output_flag(ldisc, OCRNL)) {
			byte = '\n';
			if (!output_flag(ldisc, ONLRET))
				break;
		}
		ldisc->column = ldisc->start_column = 0;
		break;
	case '\t':
		nr_spaces = TAB_COLUMNS - ldisc->column % TAB_COLUMNS;
		ldisc->column += nr_spaces;
		if ((ldisc->termios.output_flags & TABDLY) == XTABS) {
			memset(out, ' ', nr_spaces);
			return nr_spaces;
		}
		break;
	case '\b':
		if (ldisc->column)
			ldisc->column--;
		break;
	default:
		if (is_control(byte))
			break;
		if (output_flag(ldisc, OLCUC) && byte >= 'a' && byte <= 'z')
			byte -= 'a' - 'A';
		if (!is_continuation(ldisc, byte))
			ldisc->column++;
		break;
	}
out_as_is:
	out[0] = byte;
	return 1;
}

size_t ldisc_output(struct ldisc *ldisc, const u8 *buf, size_t n, u8 *out, size_t room,
		    size_t *nr_out)
{
	u8 bytes[LDISC_MAX_EXPANSION];
	size_t used, len;

	*nr_out = 0;
	for (used = 0; used < n; used++) {
		u32 column = ldisc->column, start_column = ldisc->start_column;

		len = output_byte(ldisc, buf[used], bytes);
		if (*nr_out + len > room) {
			ldisc->column = column;
			ldisc->start_column = start_column;
			break;
		}
		memcpy(out + *nr_out, bytes, len);
		*nr_out += len;
	}
	return used;
}

/* Echo */

static void echo_plain(struct ldisc *ldisc, u8 byte)
{
	u8 out[LDISC_MAX_EXPANSION];
	size_t len = output_byte(ldisc, byte, out);

	for (size_t i = 0; i < len; i++)
		ldisc->echo(out[i]);
}

static void echo_string(struct ldisc *ldisc, const char *text)
{
	for (; *text; text++)
		echo_plain(ldisc, *text);
}

/* Echoes a control character as ^X. */
static void echo_byte(struct ldisc *ldisc, u8 byte)
{
	if (local_flag(ldisc, ECHOCTL) && is_control(byte) && byte != '\t') {
		echo_plain(ldisc, '^');
		byte ^= 0x40;
	}
	echo_plain(ldisc, byte);
}

static void end_erasing(struct ldisc *ldisc)
{
	if (ldisc->erasing)
		echo_plain(ldisc, '/');
	ldisc->erasing = false;
}

static void echo_typed(struct ldisc *ldisc, u8 byte)
{
	if (!local_flag(ldisc, ECHO))
		return;
	end_erasing(ldisc);
	if (ldisc->head == ldisc->line_start)
		ldisc->start_column = ldisc->column;
	if (byte == '\n')
		echo_plain(ldisc, byte);
	else
		echo_byte(ldisc, byte);
}

/* The input buffer */

static void mark_line_end(struct ldisc *ldisc, u32 at, bool on)
{
	u8 bit = 1 << at % 8;

	if (on)
		ldisc->line_ends[(at & MASK) / 8] |= bit;
	else
		ldisc->line_ends[(at & MASK) / 8] &= ~bit;
}

static bool is_line_end(const struct ldisc *ldisc, u32 at)
{
	return ldisc->line_ends[(at & MASK) / 8] >> at % 8 & 1;
}

static bool is_end_of_file(const struct ldisc *ldisc, u32 at)
{
	return is_line_end(ldisc, at) && !ldisc->buf[at & MASK];
}

/* One byte is reserved for the end of a line that fills the buffer. */
bool ldisc_has_room(const struct ldisc *ldisc)
{
	if (ldisc->head - ldisc->tail < LDISC_BYTES - 1)
		return true;
	return local_flag(ldisc, ICANON) && ldisc->line_start == ldisc->tail;
}

static void put_byte(struct ldisc *ldisc, u8 byte)
{
	if (ldisc->head - ldisc->tail == LDISC_BYTES)
		ldisc->head--;
	ldisc->buf[ldisc->head++ & MASK] = byte;
}

static void put_typed(struct ldisc *ldisc, u8 byte)
{
	/* With PARMRK, a byte of 0377 starts a mark, so a 0377 in the input is doubled. */
	if (byte == 0377 && input_flag(ldisc, PARMRK))
		put_byte(ldisc, byte);
	put_byte(ldisc, byte);
}

static void end_line(struct ldisc *ldisc, u8 byte)
{
	put_byte(ldisc, byte);
	mark_line_end(ldisc, ldisc->head - 1, true);
	ldisc->line_start = ldisc->head;
}

void ldisc_flush_input(struct ldisc *ldisc)
{
	ldisc->tail = ldisc->line_start = ldisc->head;
	memset(ldisc->line_ends, 0, sizeof(ldisc->line_ends));
	ldisc->literal_next = false;
	ldisc->erasing = false;
}

void ldisc_set_termios(struct ldisc *ldisc, const struct termios *termios)
{
	u32 changed = ldisc->termios.local_flags ^ termios->local_flags;

	ldisc->termios = *termios;
	if (!input_flag(ldisc, IXON))
		ldisc->stopped = false;
	if (!(changed & ICANON))
		return;
	memset(ldisc->line_ends, 0, sizeof(ldisc->line_ends));
	ldisc->line_start = ldisc->tail;
	ldisc->literal_next = false;
	ldisc->erasing = false;
	if (local_flag(ldisc, ICANON) && ldisc->head != ldisc->tail) {
		mark_line_end(ldisc, ldisc->head - 1, true);
		ldisc->line_start = ldisc->head;
	}
}

/* Line editing */

/* Erases a tab. Its width depends on the text before it in the line. */
static void echo_erased_tab(struct ldisc *ldisc)
{
	u32 nr_columns = 0, at;

	for (at = ldisc->head; at != ldisc->line_start; at--) {
		u8 byte = ldisc->buf[(at - 1) & MASK];

		if (byte == '\t')
			break;
		if (is_control(byte))
			nr_columns += local_flag(ldisc, ECHOCTL) ? 2 : 0;
		else if (!is_continuation(ldisc, byte))
			nr_columns++;
	}
	if (at == ldisc->line_start)
		nr_columns += ldisc->start_column;
	for (u32 n = TAB_COLUMNS - nr_columns % TAB_COLUMNS; n; n--)
		echo_plain(ldisc, '\b');
}

/* Prints the erased bytes backwards between \ and /, for ECHOPRT. */
static void echo_printed(struct ldisc *ldisc, u32 nr_bytes)
{
	if (!ldisc->erasing)
		echo_plain(ldisc, '\\');
	ldisc->erasing = true;
	echo_byte(ldisc, ldisc->buf[ldisc->head & MASK]);
	for (u32 i = 1; i < nr_bytes; i++)
		ldisc->echo(ldisc->buf[(ldisc->head + i) & MASK]);
}

/* Echoes that a character of nr_bytes at head has been erased. */
static void echo_erased(struct ldisc *ldisc, enum control_char which, u32 nr_bytes)
{
	u8 byte = ldisc->buf[ldisc->head & MASK];

	if (local_flag(ldisc, ECHOPRT))
		echo_printed(ldisc, nr_bytes);
	else if (which == VERASE && !local_flag(ldisc, ECHOE))
		echo_byte(ldisc, ldisc->termios.control_chars[VERASE]);
	else if (byte == '\t')
		echo_erased_tab(ldisc);
	else if (!is_control(byte))
		echo_string(ldisc, "\b \b");
	else if (local_flag(ldisc, ECHOCTL))
		echo_string(ldisc, "\b \b\b \b");
}

/* Returns the number of bytes of the line's last character; 0 if there is no complete one. */
static u32 last_character_bytes(const struct ldisc *ldisc)
{
	u32 at = ldisc->head;

	while (at != ldisc->line_start) {
		if (!is_continuation(ldisc, ldisc->buf[--at & MASK]))
			return ldisc->head - at;
	}
	return 0;
}

static void kill_line(struct ldisc *ldisc)
{
	ldisc->head = ldisc->line_start;
	if (!local_flag(ldisc, ECHO))
		return;
	end_erasing(ldisc);
	echo_byte(ldisc, ldisc->termios.control_chars[VKILL]);
	if (local_flag(ldisc, ECHOK))
		echo_plain(ldisc, '\n');
}

/*
 * Erases a character (VERASE), a word and the non-word bytes after it (VWERASE), or the line
 * (VKILL).
 */
static void erase_input(struct ldisc *ldisc, enum control_char which)
{
	const u32 visibly = ECHO | ECHOK | ECHOKE | ECHOE;
	bool in_word = false;
	u32 nr_bytes;

	if (ldisc->head == ldisc->line_start)
		return;
	if (which == VKILL && (ldisc->termios.local_flags & visibly) != visibly) {
		kill_line(ldisc);
		return;
	}
	while ((nr_bytes = last_character_bytes(ldisc))) {
		bool word = is_word(ldisc->buf[(ldisc->head - nr_bytes) & MASK]);

		if (which == VWERASE && in_word && !word)
			break;
		in_word |= word;
		ldisc->head -= nr_bytes;
		if (local_flag(ldisc, ECHO))
			echo_erased(ldisc, which, nr_bytes);
		if (which == VERASE)
			break;
	}
	if (ldisc->head == ldisc->line_start)
		end_erasing(ldisc);
}

static void reprint(struct ldisc *ldisc, u8 key)
{
	end_erasing(ldisc);
	echo_byte(ldisc, key);
	echo_plain(ldisc, '\n');
	for (u32 at = ldisc->line_start; at != ldisc->head; at++)
		echo_byte(ldisc, ldisc->buf[at & MASK]);
}

/* Handles an editing character. Returns false if the byte is not one. */
static bool edit(struct ldisc *ldisc, u8 byte)
{
	if (is(ldisc, byte, VERASE)) {
		erase_input(ldisc, VERASE);
	} else if (is_extended(ldisc, byte, VWERASE)) {
		erase_input(ldisc, VWERASE);
	} else if (is(ldisc, byte, VKILL)) {
		erase_input(ldisc, VKILL);
	} else if (is_extended(ldisc, byte, VLNEXT)) {
		ldisc->literal_next = true;
		if (local_flag(ldisc, ECHO)) {
			end_erasing(ldisc);
			if (local_flag(ldisc, ECHOCTL))
				echo_string(ldisc, "^\b");
		}
	} else if (is_extended(ldisc, byte, VREPRINT) && local_flag(ldisc, ECHO)) {
		reprint(ldisc, byte);
	} else if (byte == '\n') {
		if (local_flag(ldisc, ECHO) || local_flag(ldisc, ECHONL)) {
			end_erasing(ldisc);
			echo_plain(ldisc, byte);
		}
		end_line(ldisc, byte);
	} else if (is(ldisc, byte, VEOF)) {
		end_line(ldisc, 0);
	} else if (is(ldisc, byte, VEOL) || is_extended(ldisc, byte, VEOL2)) {
		echo_typed(ldisc, byte);
		end_line(ldisc, byte);
	} else {
		return false;
	}
	return true;
}

/* Receiving */

static int signal_of(const struct ldisc *ldisc, u8 byte)
{
	if (!local_flag(ldisc, ISIG))
		return 0;
	if (is(ldisc, byte, VINTR))
		return SIGINT;
	if (is(ldisc, byte, VQUIT))
		return SIGQUIT;
	return is(ldisc, byte, VSUSP) ? SIGTSTP : 0;
}

static void signal_typed(struct ldisc *ldisc, u8 byte)
{
	if (!local_flag(ldisc, NOFLSH)) {
		ldisc_flush_input(ldisc);
		ldisc->discard_output();
	}
	if (input_flag(ldisc, IXON))
		ldisc->stopped = false;
	if (local_flag(ldisc, ECHO)) {
		end_erasing(ldisc);
		echo_byte(ldisc, byte);
	}
}

static bool flow_control(struct ldisc *ldisc, u8 byte)
{
	if (!input_flag(ldisc, IXON))
		return false;
	if (is(ldisc, byte, VSTART))
		ldisc->stopped = false;
	else if (is(ldisc, byte, VSTOP))
		ldisc->stopped = true;
	else
		return false;
	return true;
}

int ldisc_receive(struct ldisc *ldisc, u8 byte)
{
	int signal;

	if (input_flag(ldisc, ISTRIP))
		byte &= 0x7f;
	if (input_flag(ldisc, IUCLC) && local_flag(ldisc, IEXTEN) && byte >= 'A' && byte <= 'Z')
		byte += 'a' - 'A';
	if (ldisc->literal_next) {
		ldisc->literal_next = false;
		goto out_plain;
	}
	if (flow_control(ldisc, byte))
		return 0;
	signal = signal_of(ldisc, byte);
	if (signal) {
		signal_typed(ldisc, byte);
		return signal;
	}
	if (input_flag(ldisc, IXON) && input_flag(ldisc, IXANY))
		ldisc->stopped = false;
	if (byte == '\r') {
		if (input_flag(ldisc, IGNCR))
			return 0;
		if (input_flag(ldisc, ICRNL))
			byte = '\n';
	} else if (byte == '\n' && input_flag(ldisc, INLCR)) {
		byte = '\r';
	}
	if (local_flag(ldisc, ICANON) && edit(ldisc, byte))
		return 0;
out_plain:
	echo_typed(ldisc, byte);
	put_typed(ldisc, byte);
	return 0;
}

/* Reading */

bool ldisc_readable(const struct ldisc *ldisc, u32 nr_bytes)
{
	if (local_flag(ldisc, ICANON))
		return ldisc->line_start != ldisc->tail;
	return ldisc->head - ldisc->tail >= max(nr_bytes, 1U);
}

static size_t read_line(struct ldisc *ldisc, u8 *buf, size_t size)
{
	size_t n = 0;

	while (n < size && ldisc->tail != ldisc->line_start) {
		bool last = is_line_end(ldisc, ldisc->tail);
		bool end_of_file = is_end_of_file(ldisc, ldisc->tail);

		mark_line_end(ldisc, ldisc->tail, false);
		if (!end_of_file)
			buf[n++] = ldisc->buf[ldisc->tail & MASK];
		ldisc->tail++;
		if (last)
			return n;
	}
	/*
	 * The buffer ends where VEOF was typed: the next read must not return the end of the file
	 * for it.
	 */
	if (n && ldisc->tail != ldisc->line_start && is_end_of_file(ldisc, ldisc->tail))
		mark_line_end(ldisc, ldisc->tail++, false);
	return n;
}

size_t ldisc_read(struct ldisc *ldisc, u8 *buf, size_t size)
{
	size_t n = 0;

	if (local_flag(ldisc, ICANON))
		return read_line(ldisc, buf, size);
	while (n < size && ldisc->tail != ldisc->head)
		buf[n++] = ldisc->buf[ldisc->tail++ & MASK];
	ldisc->line_start = ldisc->tail;
	return n;
}

size_t ldisc_nr_readable(const struct ldisc *ldisc)
{
	size_t n = 0;

	if (!local_flag(ldisc, ICANON))
		return ldisc->head - ldisc->tail;
	for (u32 at = ldisc->tail; at != ldisc->line_start; at++)
		n += !is_end_of_file(ldisc, at);
	return n;
}

void ldisc_get_wait(const struct ldisc *ldisc, struct ldisc_wait *wait)
{
	u8 min = ldisc->termios.control_chars[VMIN];
	u64 time_ns = ldisc->termios.control_chars[VTIME] * DECISECOND_NS;

	wait->nr_wanted = 1;
	wait->first_ns = wait->next_ns = FOREVER_NS;
	if (local_flag(ldisc, ICANON))
		return;
	if (!min) {
		wait->first_ns = wait->next_ns = time_ns;
		return;
	}
	wait->nr_wanted = min;
	if (time_ns)
		wait->next_ns = time_ns;
}
