// SPDX-License-Identifier: BSD-2-Clause
/* The file error_log: the last commands that were refused, and where they are wrong. */

#include "trace.h"

#define NR_ERRORS   8
#define WHERE_BYTES 64

static struct entry {
	u64 cycles; /* 0: no error yet */
	struct trace_filter_error error;
	char where[WHERE_BYTES];
	char command[TRACE_FILTER_BYTES]; /* its beginning */
} entries[NR_ERRORS];			  /* guarded by trace_lock */
static u32 nr_errors;

void trace_log_error(const char *where, const char *command, const struct trace_filter_error *error)
{
	struct entry *entry;

	poll_lock(&trace_lock);
	entry = &entries[nr_errors++ % NR_ERRORS];
	entry->cycles = os_cycles();
	entry->error = *error;
	os_snprintf(entry->where, sizeof(entry->where), "%s", where);
	os_snprintf(entry->command, sizeof(entry->command), "%s", command);
	poll_unlock(&trace_lock);
}

int trace_show_errors(os_text_t *text, const void *unused)
{
	poll_lock(&trace_lock);
	for (u32 i = 0; i < NR_ERRORS; i++) {
		const struct entry *entry = &entries[(nr_errors + i) % NR_ERRORS];
		u64 us = os_cycles_to_ns(entry->cycles) / 1000;

		if (!entry->cycles)
			continue;
		os_text_printf(text, "[%5lu.%06lu] %s: error: %s\n", us / 1000000, us % 1000000,
			       entry->where, entry->error.what);
		os_text_printf(text, "  Command: %s\n           %*s^\n", entry->command,
			       (int)entry->error.at, "");
	}
	poll_unlock(&trace_lock);
	return 0;
}

int trace_clear_errors(const void *unused)
{
	poll_lock(&trace_lock);
	memset(entries, 0, sizeof(entries));
	poll_unlock(&trace_lock);
	return 0;
}
