// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads who had the time of all CPUs, and prints it as the table accounts.json. The numbers are the
 * kernel's own (os_machine_times()); a kernel without them has no such file.
 */

#include "accounts.h"

#include "profiler.h"
#include "table.h"

u32 accounts_read(struct account accounts[NR_ACCOUNTS])
{
	struct profile_machine_times times = { 0 };

	os_machine_times(&times);
	memcpy(accounts,
	       (struct account[NR_ACCOUNTS]){
		       { "user code", times.threads.user },
		       { "system calls", times.threads.calls },
		       { "page faults", times.threads.faults },
		       { "other exceptions", times.threads.exceptions },
		       { "interrupts", times.threads.irqs },
		       { "NMIs", times.nmis },
		       { "kernel threads", times.kernel_threads },
		       { "reports", times.reports },
		       { "ends of threads", times.ends_of_threads },
		       { "idle", times.idle },
	       },
	       NR_ACCOUNTS * sizeof(struct account));
	return times.nr_cpus;
}

enum {
	OWNER,
	CYCLES,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[OWNER] = { NULL, "owner", COLUMN_TEXT },
	[CYCLES] = { NULL, "cycles", COLUMN_COUNT },
};

static const struct table table = TABLE(columns);

static void print_accounts(const void *unused)
{
	struct account accounts[NR_ACCOUNTS];
	u32 nr_cpus = accounts_read(accounts);

	table_begin(&table, "Time of %u CPU%s", nr_cpus, nr_cpus == 1 ? "" : "s");
	for (u32 i = 0; i < NR_ACCOUNTS; i++) {
		struct cell cells[NR_COLUMNS] = {
			[OWNER] = cell_text(accounts[i].owner),
			[CYCLES] = cell_nr(accounts[i].cycles),
		};

		table_row(cells);
	}
	table_end_without_total();
}

static const struct profiler_file files[] = {
	{ "profile/accounts.json", .print = print_accounts, .is_json = true },
	{ 0 },
};

PROFILER(accounts) = {
	.name = "accounts",
	.files = OS_HAS_CPU_TIMES ? files : NULL,
};
