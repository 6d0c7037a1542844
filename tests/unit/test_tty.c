// SPDX-License-Identifier: BSD-2-Clause
/* Tests kernel/tty/ldisc.c: typed input, its echo, and what a program reads. */

#include "unit_test.h"

#include "../../kernel/tty/ldisc.h"
#include <lego/signal.h>
#include <lego/string.h>

static struct ldisc ldisc;
static char echoed[1 << 16];
static size_t nr_echoed, nr_discarded;

static void echo(u8 byte)
{
	assert_true(nr_echoed < sizeof(echoed) - 1);
	echoed[nr_echoed++] = byte;
	echoed[nr_echoed] = '\0';
}

static void discard(void)
{
	nr_discarded++;
}

static void clear_echo(void)
{
	nr_echoed = 0;
	echoed[0] = '\0';
}

static int set_up(void **state)
{
	ldisc_init(&ldisc, echo, discard);
	clear_echo();
	nr_discarded = 0;
	return 0;
}

/* Returns the last signal. */
static int type_bytes(const void *bytes, size_t n)
{
	int last = 0, sig;

	for (size_t i = 0; i < n; i++) {
		assert_true(ldisc_has_room(&ldisc));
		sig = ldisc_receive(&ldisc, ((const u8 *)bytes)[i]);
		last = sig ? sig : last;
	}
	return last;
}

static int type(const char *text)
{
	return type_bytes(text, strlen(text));
}

static void change(u32 *flags, u32 off, u32 on)
{
	struct termios termios = ldisc.termios;
	u32 *copy = (u32 *)((char *)&termios + ((char *)flags - (char *)&ldisc.termios));

	*copy = (*copy & ~off) | on;
	ldisc_set_termios(&ldisc, &termios);
}

#define change_input(off, on)  change(&ldisc.termios.input_flags, off, on)
#define change_output(off, on) change(&ldisc.termios.output_flags, off, on)
#define change_local(off, on)  change(&ldisc.termios.local_flags, off, on)

static void expect_read_of(size_t size, const char *want)
{
	char buf[2 * LDISC_BYTES] = "";
	size_t n;

	assert_true(ldisc_readable(&ldisc, 1));
	n = ldisc_read(&ldisc, (u8 *)buf, size);
	assert_int_equal(n, strlen(want));
	assert_memory_equal(buf, want, n);
}

static void expect_read(const char *want)
{
	expect_read_of(2 * LDISC_BYTES, want);
}

static void expect_nothing(void)
{
	assert_false(ldisc_readable(&ldisc, 1));
	assert_int_equal(ldisc_nr_readable(&ldisc), 0);
}

#define expect_echo(want)                          \
	do {                                       \
		assert_string_equal(echoed, want); \
		clear_echo();                      \
	} while (0)

#define TEST(name) HOST_TEST_WITH(name, set_up, NULL)

TEST(line)
{
	type("one");
	expect_nothing();
	expect_echo("one");
	type("\rtwo\nthree");
	expect_echo("\r\ntwo\r\nthree");
	assert_int_equal(ldisc_nr_readable(&ldisc), 8);
	expect_read("one\n");
	expect_read_of(2, "tw");
	expect_read("o\n");
	expect_nothing();
}

TEST(end_of_file)
{
	type("\4");
	expect_read("");
	expect_nothing();
	type("part\4");
	assert_int_equal(ldisc_nr_readable(&ldisc), 4);
	expect_read("part");
	expect_nothing();
	/*
	 * A read that ends at an end-of-file mark consumes it; one that ends at a newline leaves
	 * it.
	 */
	type("part\4");
	expect_read_of(4, "part");
	expect_nothing();
	type("line\n\4");
	expect_read_of(5, "line\n");
	expect_read("");
	expect_nothing();
	type("a\4\4b\n");
	expect_read("a");
	expect_read("");
	expect_read("b\n");
	expect_echo("partpartline\r\nab\r\n");
}

TEST(erase)
{
	type("\x7f");
	expect_echo("");
	type("ab\x7f\x7f\x7f"
	     "c\n");
	expect_echo("ab\b \b\b \bc\r\n");
	expect_read("c\n");
	/* A control character takes two columns. */
	type("\1\x7f\n");
	expect_echo("^A\b \b\b \b\r\n");
	expect_read("\n");
	/* Erase does not reach back into a finished line. */
	type("x\n\x7f\x7f\n");
	expect_read("x\n");
	expect_read("\n");
}

TEST(erase_tab)
{
	size_t nr_out;
	u8 out[64];

	assert_int_equal(ldisc_output(&ldisc, (const u8 *)"# ", 2, out, sizeof(out), &nr_out), 2);
	type("ab\t\x7f");
	expect_echo("ab\t\b\b\b\b");
	type("\t\t\x7f\n");
	expect_echo("\t\t\b\b\b\b\b\b\b\b\r\n");
}

TEST(erase_utf8)
{
	/* Without IUTF8, each byte is a character. */
	type("\xc3\xa4\x7f\n");
	expect_read("\xc3\n");
	change_input(0, IUTF8);
	clear_echo();
	type("a\xe2\x82\xac\xc3\xa4\x7f\x7f");
	expect_echo("a\xe2\x82\xac\xc3\xa4\b \b\b \b");
	type("\n");
	expect_read("a\n");
	/* A continuation byte without a first byte is not erased. */
	type("\x82\xac\x7f\n");
	expect_read("\x82\xac\n");
}

TEST(erase_word)
{
	type("two words, \x17");
	expect_echo("two words, \b \b\b \b\b \b\b \b\b \b\b \b\b \b");
	type("\x17\x17\n");
	expect_read("\n");
	change_local(IEXTEN, 0);
	type("a\x17\n");
	expect_read("a\x17\n");
}

TEST(kill)
{
	type("abc\x15");
	expect_echo("abc\b \b\b \b\b \b");
	change_local(ECHOKE, 0);
	type("abc\x15");
	expect_echo("abc^U\r\n");
	change_local(ECHOK, 0);
	type("abc\x15");
	expect_echo("abc^U");
	change_local(ECHO, 0);
	type("abc\x15"
	     "d\n");
	expect_echo("");
	expect_read("d\n");
}

TEST(echo_flags)
{
	change_local(ECHOE, 0);
	type("ab\x7f\n");
	expect_echo("ab^?\r\n");
	change_local(ECHOCTL, 0);
	type("\1\n");
	expect_echo("\1\r\n");
	change_local(ECHO, ECHONL);
	type("no\n");
	expect_echo("\r\n");
	change_local(ECHONL, 0);
	type("no\n");
	expect_echo("");
	change_local(0, ECHO | ECHOE | ECHOPRT);
	type("abc\x7f\x7fx\n");
	expect_echo("abc\\cb/x\r\n");
}

TEST(literal_next)
{
	assert_int_equal(type("\x16\3\x16\4\x16\x7f\x16\x16\n"), 0);
	expect_echo("^\b^C^\b^D^\b^?^\b^V\r\n");
	expect_read("\3\4\x7f\x16\n");
	/* After the literal-next key, newline and carriage return are ordinary bytes. */
	type("a\x16\nb\x16\rc\n");
	expect_read("a\nb\rc\n");
}

TEST(reprint)
{
	type("ab\1\x12");
	expect_echo("ab^A^R\r\nab^A");
	type("\n");
	expect_read("ab\1\n");
}

TEST(end_of_line_chars)
{
	ldisc.termios.control_chars[VEOL] = ';';
	ldisc.termios.control_chars[VEOL2] = '|';
	type("a;b|c\n");
	expect_echo("a;b|c\r\n");
	expect_read("a;");
	expect_read("b|");
	expect_read("c\n");
}

TEST(disabled_chars)
{
	memset(ldisc.termios.control_chars, 0, sizeof(ldisc.termios.control_chars));
	assert_int_equal(type_bytes("\0\3\4\x7f\x15\n", 6), 0);
	assert_int_equal(ldisc_nr_readable(&ldisc), 6);
}

TEST(signals)
{
	assert_int_equal(type("lost\nlost\3"), SIGINT);
	assert_int_equal(nr_discarded, 1);
	expect_echo("lost\r\nlost^C");
	expect_nothing();
	assert_int_equal(type("\x1c"), SIGQUIT);
	assert_int_equal(type("\x1a"), SIGTSTP);
	change_local(0, NOFLSH);
	assert_int_equal(type("kept\3\n"), SIGINT);
	assert_int_equal(nr_discarded, 3);
	expect_read("kept\n");
	change_local(ISIG, 0);
	assert_int_equal(type("\3\n"), 0);
	expect_read("\3\n");
}

TEST(input_mapping)
{
	change_input(ICRNL, INLCR);
	type("a\nb");
	expect_nothing();
	change_input(INLCR, ICRNL);
	type("\r");
	expect_read("a\rb\n");
	change_input(0, IGNCR);
	type("a\r\n");
	expect_read("a\n");
	change_input(0, ISTRIP);
	type("\xe1\n");
	expect_read("a\n");
	change_input(ISTRIP, IUCLC);
	type("AbZ[\n");
	expect_read("abz[\n");
	change_input(IUCLC, PARMRK);
	type("\xff\n");
	expect_read("\xff\xff\n");
}

TEST(flow_control)
{
	type("\x13");
	assert_true(ldisc.stopped);
	type("a\x11");
	assert_false(ldisc.stopped);
	type("\n");
	expect_read("a\n");
	type("\x13\3");
	assert_false(ldisc.stopped);
	change_input(0, IXANY);
	type("\x13x");
	assert_false(ldisc.stopped);
	type("\x13");
	change_input(IXON, 0);
	assert_false(ldisc.stopped);
	type("\x13\n");
	expect_read("x\x13\n");
}

TEST(raw)
{
	struct ldisc_wait wait;

	change_local(ICANON | ECHO | ISIG, 0);
	ldisc_get_wait(&ldisc, &wait);
	assert_int_equal(wait.nr_wanted, 1);
	type("a\3\4\x7f");
	expect_echo("");
	assert_true(ldisc_readable(&ldisc, 4));
	assert_false(ldisc_readable(&ldisc, 5));
	assert_int_equal(ldisc_nr_readable(&ldisc), 4);
	expect_read_of(1, "a");
	expect_read("\3\4\x7f");
	expect_nothing();
}

TEST(min_and_time)
{
	static const struct {
		u8 min, time;
		struct ldisc_wait want;
	} cases[] = {
		{ 0, 0, { 1, 0, 0 } },
		{ 0, 5, { 1, 500000000, 500000000 } },
		{ 3, 0, { 3, ~0ull, ~0ull } },
		{ 255, 255, { 255, ~0ull, 25500000000 } },
	};
	struct ldisc_wait wait;

	change_local(ICANON, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ldisc.termios.control_chars[VMIN] = cases[i].min;
		ldisc.termios.control_chars[VTIME] = cases[i].time;
		ldisc_get_wait(&ldisc, &wait);
		assert_int_equal(wait.nr_wanted, cases[i].want.nr_wanted);
		assert_int_equal(wait.first_ns, cases[i].want.first_ns);
		assert_int_equal(wait.next_ns, cases[i].want.next_ns);
	}
	/* VMIN and VTIME have no effect on lines. */
	change_local(0, ICANON);
	ldisc_get_wait(&ldisc, &wait);
	assert_int_equal(wait.nr_wanted, 1);
	assert_int_equal(wait.first_ns, ~0ull);
}

TEST(mode_switch)
{
	type("whole\npart");
	change_local(ICANON, 0);
	expect_read_of(3, "who");
	expect_read("le\npart");
	type("raw");
	change_local(0, ICANON);
	expect_read("raw");
	expect_nothing();
	type("\x7f\n");
	expect_read("\n");
	/* In raw mode, an end-of-file mark reads as a NUL. */
	type("a\4");
	change_local(ICANON, 0);
	assert_int_equal(ldisc_nr_readable(&ldisc), 2);
}

TEST(long_line)
{
	static char line[LDISC_BYTES + 1];

	memset(line, 'x', LDISC_BYTES);
	line[LDISC_BYTES - 1] = '\n';
	for (int i = 0; i < 3 * LDISC_BYTES; i++)
		type("x");
	expect_nothing();
	type("\n");
	assert_false(ldisc_has_room(&ldisc));
	assert_int_equal(ldisc_nr_readable(&ldisc), LDISC_BYTES);
	expect_read(line);
	assert_true(ldisc_has_room(&ldisc));
	expect_nothing();
	/* A line that is too long can still be killed, and the next line is complete. */
	for (int i = 0; i < 2 * LDISC_BYTES; i++)
		type("x");
	nr_echoed = 0;
	type("\x15ok\n");
	expect_read("ok\n");
}

TEST(full)
{
	int nr_lines = 0;

	while (ldisc_has_room(&ldisc)) {
		type(nr_lines % 4 == 3 ? "\n" : "x");
		nr_lines++;
	}
	assert_int_equal(nr_lines, LDISC_BYTES - 1);
	clear_echo();
	expect_read("xxx\n");
	assert_true(ldisc_has_room(&ldisc));
	ldisc_flush_input(&ldisc);
	expect_nothing();
	change_local(ICANON | ECHO, 0);
	for (nr_lines = 0; ldisc_has_room(&ldisc); nr_lines++)
		type("\n");
	assert_int_equal(nr_lines, LDISC_BYTES - 1);
}

static void expect_output(const char *text, const char *want)
{
	u8 out[64];
	size_t nr_out, n = strlen(text);

	assert_int_equal(ldisc_output(&ldisc, (const u8 *)text, n, out, sizeof(out), &nr_out), n);
	assert_int_equal(nr_out, strlen(want));
	assert_memory_equal(out, want, nr_out);
}

TEST(output)
{
	size_t nr_out;
	u8 out[3];

	expect_output("a\nb\r\n", "a\r\nb\r\r\n");
	change_output(0, XTABS);
	expect_output("ab\tc\t", "ab      c       ");
	change_output(ONLCR, OLCUC);
	expect_output("\rab\n", "\rAB\n");
	change_output(OLCUC, OCRNL);
	expect_output("a\r", "a\n");
	change_output(OCRNL, ONOCR);
	ldisc.column = 0;
	expect_output("\ra\r\r", "a\r");
	change_output(OPOST, 0);
	expect_output("\r\n\t", "\r\n\t");

	/* Only part of the output fits. The column counts only that part. */
	change_output(ONOCR, OPOST | ONLCR);
	ldisc.column = 0;
	assert_int_equal(ldisc_output(&ldisc, (const u8 *)"ab\n", 3, out, 3, &nr_out), 2);
	assert_int_equal(nr_out, 2);
	assert_int_equal(ldisc.column, 2);
	assert_int_equal(ldisc_output(&ldisc, (const u8 *)"\n", 1, out, 3, &nr_out), 1);
	assert_int_equal(ldisc.column, 0);
}

static u32 random_u32(void)
{
	static u64 state = 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

/*
 * Types random bytes under random settings. The sanitizers watch, and no more bytes are read than
 * were typed.
 */
TEST(any_bytes)
{
	u64 nr_typed = 0, nr_read = 0;
	u8 buf[LDISC_BYTES];

	for (int i = 0; i < 300000; i++) {
		struct termios termios = ldisc.termios;
		size_t n;

		if (random_u32() % 1000 == 0) {
			termios.input_flags = random_u32();
			termios.output_flags = random_u32();
			termios.local_flags = random_u32();
			for (size_t c = 0; c < NR_CONTROL_CHARS; c++)
				termios.control_chars[c] = random_u32() % 32;
			ldisc_set_termios(&ldisc, &termios);
		}
		nr_echoed = 0;
		if (ldisc_has_room(&ldisc)) {
			ldisc_receive(&ldisc, random_u32() >> random_u32() % 8);
			nr_typed += 2; /* PARMRK may double a byte */
		}
		assert_true(ldisc.head - ldisc.tail <= LDISC_BYTES);
		assert_true(ldisc.line_start - ldisc.tail <= ldisc.head - ldisc.tail);
		if (random_u32() % 500 || !ldisc_readable(&ldisc, 1))
			continue;
		n = ldisc_read(&ldisc, buf, random_u32() % sizeof(buf) + 1);
		nr_read += n;
		assert_true(nr_read <= nr_typed);
	}
	assert_true(nr_read > 10000);
}
