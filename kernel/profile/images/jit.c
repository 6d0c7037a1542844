// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of functions that a program compiles while it runs. Such programs write them to
 * /tmp/perf-<pid>.map, for perf. Here is the list of processes that have had code of no file;
 * their maps are read when an export is made, so they take no memory. Reports do not have these
 * names.
 *
 * Format: tools/perf/Documentation/jit-interface.txt of Linux.
 */

#include "images.h"

#include "../profiler.h"
#include "../table.h"

#define MAX_PROCESSES 64
#define LINE_BYTES    500
#define MAP_BYTES     (1u << 20) /* of a map are printed */

static os_lock_t lock = OS_LOCK_INIT;
static int pids[MAX_PROCESSES];
static u32 nr_pids;

static bool is_known(int pid, u32 nr)
{
	while (nr--) {
		if (pids[nr] == pid)
			return true;
	}
	return false;
}

void image_jit_add(int pid)
{
	unsigned long flags;
	u32 nr = pf_load_acquire(&nr_pids);

	if (is_known(pid, nr) || nr == MAX_PROCESSES)
		return;
	flags = os_lock(&lock);
	nr = nr_pids;
	if (!is_known(pid, nr) && nr < MAX_PROCESSES) {
		pids[nr] = pid;
		pf_store_release(&nr_pids, nr + 1);
	}
	os_unlock(&lock, flags);
}

enum {
	PID,
	LINE,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[PID] = { NULL, "pid", COLUMN_COUNT },
	[LINE] = { NULL, "line", COLUMN_TEXT },
};

/* Prints the lines of a file. One that is longer than LINE_BYTES is cut. */
static void print_lines(int pid, os_file_t *file)
{
	static char line[LINE_BYTES + 1];
	bool is_rest = false, ends;
	s64 nr;

	for (u64 at = 0, n; at < MAP_BYTES; at += n + ends, is_rest = !ends) {
		nr = os_file_read(file, line, LINE_BYTES, at);
		if (nr <= 0)
			return;
		for (n = 0; n < (u64)nr && line[n] != '\n'; n++)
			;
		ends = n < (u64)nr;
		line[n] = '\0';
		if (!is_rest)
			table_row((struct cell[NR_COLUMNS]){
				[PID] = cell_nr(pid), [LINE] = cell_text(line) });
	}
	table_note("the map of process %d is cut after %u bytes", pid, MAP_BYTES);
}

static void print_maps(const void *unused)
{
	static const struct table table = TABLE(columns);
	u32 nr = pf_load_acquire(&nr_pids);
	char path[40];

	table_begin(&table, "Functions of JIT compilers");
	for (u32 i = 0; i < nr; i++) {
		os_file_t *file;

		os_snprintf(path, sizeof(path), "/tmp/perf-%d.map", pids[i]);
		file = os_file_open(path);
		if (file) {
			print_lines(pids[i], file);
			os_file_close(file);
		}
	}
	table_end_without_total();
	if (nr == MAX_PROCESSES)
		table_note("only the first %u processes with code of no file are here", nr);
}

static const struct profiler_file files[] = {
	{ "profile/jit_maps.json", .print = print_maps, .is_json = true },
	{ 0 },
};

PROFILER(jit) = {
	.name = "jit",
	.place = 81,
	.files = PROFILER_FILES(files),
};
