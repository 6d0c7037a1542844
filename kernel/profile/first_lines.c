// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps the first lines of the last report on the console, for exports: they say what dominates. At
 * power off the processes that the report was of are gone, so they cannot be made again. The lines
 * end with the first empty one. Only the one printer of reports writes and reads them.
 */

#include "report.h"

#if defined(CONFIG_PROFILE_EXPORT) || defined(UNIT_TEST)

#include "profiler.h"
#include "table.h"

#define MAX_BYTES 4096

static char lines[MAX_BYTES];
static u32 nr_bytes;
static bool is_open;

void report_first_lines_begin(void)
{
	nr_bytes = 0;
	is_open = true;
}

void report_first_lines_add(const char *fmt, va_list args)
{
	char *at = lines + nr_bytes;
	u32 room = MAX_BYTES - nr_bytes;
	u64 n;

	if (!is_open)
		return;
	n = os_vsnprintf(at, room, fmt, args);
	is_open = n < room && strcmp(at, "\n");
	if (is_open)
		nr_bytes += n;
}

void report_first_lines_end(void)
{
	is_open = false;
}

enum {
	LINE,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[LINE] = { NULL, "line", COLUMN_TEXT },
};

static const struct table table = TABLE(columns);

static void print_lines(const void *unused)
{
	static char line[1024]; /* os_printk() has no longer ones */
	u32 n = 0;

	table_begin(&table, "First lines of the last report on the console");
	for (u32 i = 0; i < nr_bytes; i++) {
		if (lines[i] != '\n') {
			line[n] = lines[i];
			n += n < sizeof(line) - 1;
			continue;
		}
		line[n] = '\0';
		n = 0;
		table_row((struct cell[NR_COLUMNS]){ [LINE] = cell_text(line) });
	}
	table_end_without_total();
}

static const struct profiler_file files[] = {
	{ "profile/first_lines.json", .print = print_lines, .is_json = true },
	{ 0 },
};

PROFILER(first_lines) = {
	.name = "first_lines",
	.files = files,
};

#endif
