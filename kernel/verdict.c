// SPDX-License-Identifier: BSD-2-Clause
/* Counts warnings, keeps the message of a panic, and sends the line that <lego/verdict.h> shows. */

#include <lego/verdict.h>

#include <lego/atomic.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/console.h>
#include <lego/printk.h>
#include <lego/profile.h>
#include <lego/string.h>

static unsigned int nr_warnings;
static const char *panic_why;
static bool sent;

void verdict_count_warning(void)
{
	__atomic_fetch_add(&nr_warnings, 1, __ATOMIC_RELAXED);
}

void verdict_set_panic(const char *why)
{
	panic_why = why;
}

static bool is_bug(const char *why)
{
	return why && !strncmp(why, "BUG: ", 5);
}

/*
 * Keeps the text on one line: the message of a panic may contain a program's name, which may
 * contain any bytes.
 */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

void verdict_send(int status)
{
	static char line[512];
	unsigned int nr_cut = 0;
	size_t len;

	/* The machine may end twice: it may panic during power off. The first line is enough. */
	if (xchg(&sent, true))
		return;
	profile_count_cut_reports(&nr_cut);
	len = scnprintf(line, sizeof(line) - 1,
			"verdict: status=%d panic=%d bugs=%d warnings=%u reports_cut=%u "
			"console_lost=%llu",
			status, panic_in_progress(), is_bug(panic_why), READ_ONCE(nr_warnings),
			nr_cut, (unsigned long long)console_nr_lost_bytes());
	if (panic_why)
		len += scnprintf(line + len, sizeof(line) - 1 - len, " why=%s", panic_why);
	make_printable(line);
	line[len++] = '\n';
	machine_tell(line, len);
}
