// SPDX-License-Identifier: BSD-2-Clause
/*
 * Logs why a write to a file of /proc failed: a shell shows its user only "invalid argument". The
 * line names the file, the text and what the file accepts.
 *
 * A program chooses the text, and how often it writes. So the text is quoted, escaped and
 * truncated, and at most MAX_LINES lines are logged in a period; further writes are only counted.
 */
#include "internal.h"

#include <lego/printk.h>
#include <lego/spinlock.h>
#include <lego/time.h>

#define MAX_SHOWN_BYTES	 80
#define MAX_QUOTED_BYTES (MAX_SHOWN_BYTES * 4 + 1) /* each as \xff */
#define PERIOD_S	 5
#define MAX_LINES	 8 /* in a period */

static DEFINE_SPINLOCK(lock); /* guards the variables below */
static u64 period_start_ns;
static u32 nr_lines; /* in this period */
static u64 nr_unlogged;

/* Returns true if the log has room for the longest line, and one about its neighbours. */
static bool has_room(void)
{
	return process_is_root(current->proc) || (log_take_user_line() && log_take_user_line());
}

/*
 * Returns true if this write gets a line in the log. Then sets *nr to the number of the line in
 * this period, and *unlogged to the number of writes before it that got none.
 */
static bool take_line(u32 *nr, u64 *unlogged)
{
	u64 now_ns = clock_monotonic_ns();
	unsigned long flags = spin_lock_irqsave(&lock);
	bool taken;

	if (now_ns - period_start_ns >= PERIOD_S * NSEC_PER_SEC) {
		period_start_ns = now_ns;
		nr_lines = 0;
	}
	taken = nr_lines < MAX_LINES && has_room();
	if (taken) {
		*nr = ++nr_lines;
		*unlogged = nr_unlogged;
		nr_unlogged = 0;
	} else {
		nr_unlogged++;
	}
	spin_unlock_irqrestore(&lock, flags);
	return taken;
}

void proc_log_refused(const struct proc_file *file, int pid, const char *bytes, size_t n)
{
	char quoted[MAX_QUOTED_BYTES], directory[16] = "";
	u64 unlogged;
	u32 nr;

	if (!file->accepts || !take_line(&nr, &unlogged))
		return;
	if (unlogged)
		printk("/proc: %llu refused writes before this one were not logged\n",
		       (unsigned long long)unlogged);
	if (pid)
		scnprintf(directory, sizeof(directory), "%d/", pid);
	/* The text of a shell's echo ends in a newline. */
	if (n && bytes[n - 1] == '\n')
		n--;
	escape_bytes(quoted, sizeof(quoted), bytes, min(n, (size_t)MAX_SHOWN_BYTES));
	printk("%s/%s%s: \"%s\"%s is not valid; accepted: %s\n", file->root ?: "/proc", directory,
	       file->path, quoted, n > MAX_SHOWN_BYTES ? "..." : "", file->accepts);
	if (nr == MAX_LINES)
		printk("/proc: %d refused writes within %d s: the next ones are only counted\n",
		       MAX_LINES, PERIOD_S);
}
