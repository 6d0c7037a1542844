// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints working sets: in a report that of one process, in the file those of all, and as JSON all
 * processes, their regions, and how these were used over time.
 */

#include "working_set.h"

#include "../table.h"

enum {
	BYTES,
	ACCESSED,
	WRITTEN,
	IDLE,
	AGE,
	KIND,
	START,
	END,
	PID,
	NAME,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[BYTES] = { "resident.bytes", "resident_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },
	[ACCESSED] = { "accessed %", "accessed_hundredths", COLUMN_PERCENT, 10 },
	[WRITTEN] = { "written %", "written_hundredths", COLUMN_PERCENT, 9 },
	[IDLE] = { "idle.seconds", "idle_ns", COLUMN_SECONDS, 14 },
	[AGE] = { "age", "age_periods", COLUMN_COUNT, 7 },
	[KIND] = { "memory", "kind", COLUMN_TEXT, 12, .total = TOTAL_LABEL, .left = true },
	[START] = { "from", "start", COLUMN_ADDRESS, 16 },
	[END] = { "to", "end", COLUMN_ADDRESS, 16 },
	[PID] = { NULL, "pid", COLUMN_COUNT },
	[NAME] = { NULL, "program", COLUMN_TEXT },
};

static const char *const kind_names[OS_NR_MEMORY_KINDS + 1] = {
	OS_MEMORY_KINDS,
	[REGION_MIXED] = "several",
};

static struct working_set_view view; /* of the one reader */
static struct working_set_moment moment;

static u64 bytes_of(u64 nr_pages)
{
	return nr_pages * OS_PAGE_BYTES;
}

/* Prints "12.3 MiB" into text, rounded to nearest. */
#define MIB_BYTES 32
static const char *print_mib(char text[MIB_BYTES], u64 nr_pages)
{
	u64 tenths = (bytes_of(nr_pages) * 10 + (1ul << 19)) >> 20;

	os_snprintf(text, MIB_BYTES, "%lu.%lu MiB", tenths / 10, tenths % 10);
	return text;
}

/* Most used first: by the product of size and share. */
static int compare_rows(const void *a_, const void *b_)
{
	const struct working_set_row *a = a_, *b = b_;

	return compare_u64(b->nr_pages * b->accessed, a->nr_pages * a->accessed) ?:
		       compare_u64(b->nr_pages, a->nr_pages)			 ?:
		       compare_u64(a->start, b->start);
}

static void print_row(const struct working_set_row *row)
{
	if (!row->nr_pages)
		return;
	table_row((struct cell[NR_COLUMNS]){
		[BYTES] = cell_nr(bytes_of(row->nr_pages)),
		[ACCESSED] = cell_percent(row->accessed, REGIONS_WHOLE),
		[WRITTEN] = cell_percent(row->written, REGIONS_WHOLE),
		[IDLE] = row->accessed_ns ? cell_nr(view.ns - row->accessed_ns) : cell_dash(),
		[AGE] = cell_nr(row->age),
		[KIND] = cell_text(kind_names[row->kind]),
		[START] = cell_nr(row->start),
		[END] = cell_nr(row->end),
		[PID] = cell_nr(view.pid),
		[NAME] = cell_text(view.name),
	});
}

/* Says what sampling costs, and what it has not seen. */
static void print_cost(void)
{
	struct working_set_cost cost;
	u32 nr_without = working_set_nr_without_slot(), percent;
	u64 tenths;

	working_set_read_cost(&cost);
	tenths = os_cycles_to_ns(cost.elapsed_cycles) / pf_max(cost.nr_rounds, 1ull) /
		 (NS_PER_MSEC / 10);
	percent = report_percent(pf_min(cost.cycles, cost.elapsed_cycles), cost.elapsed_cycles);
	if (cost.nr_rounds)
		table_note("a page of each region is sampled every %lu.%lu ms, which takes "
			   "%u.%02u %% of a CPU; %lu samples",
			   tenths / 10, tenths % 10, percent / 100, percent % 100, cost.nr_samples);
	else
		table_note("what sampling costs is not known yet");
	if (cost.nr_changed)
		table_note("%lu samples do not tell: the page was unmapped, copied or protected",
			   cost.nr_changed);
	if (nr_without)
		table_note("not sampled: %u processes, no room", nr_without);
}

static void print_view(u32 top)
{
	const struct table table = TABLE(columns, .top = top);
	char used[MIB_BYTES], used_long[MIB_BYTES], resident[MIB_BYTES];

	os_sort(view.rows, view.nr_rows, sizeof(view.rows[0]), compare_rows);
	table_begin_top(&table, "Working Set", top);
	table_note("%s (pid %u) has used %s of its %s in the last 10 s, %s in the last second",
		   view.name, view.pid, print_mib(used_long, view.long_pages),
		   print_mib(resident, view.resident_pages), print_mib(used, view.short_pages));
	table_head();
	for (u32 i = 0; i < view.nr_rows; i++)
		print_row(&view.rows[i]);
	table_end();
	table_note_others(table_nr_others(), table_others_sum(BYTES), "bytes");
}

static bool copy_view(u32 slot)
{
	const struct working_set_slot *found = working_set_slot_at(slot);

	if (!found || !working_set_copy(found, &view))
		return false;
	report_make_printable(view.name);
	return true;
}

/* Returns the slot with the largest working set, or WORKING_SET_SLOTS. */
static u32 largest_slot(u32 *nr_known)
{
	u32 found = WORKING_SET_SLOTS;
	u64 most = 0;

	*nr_known = 0;
	for (u32 i = 0; i < WORKING_SET_SLOTS; i++) {
		if (!copy_view(i))
			continue;
		++*nr_known;
		if (found == WORKING_SET_SLOTS || view.long_pages > most) {
			found = i;
			most = view.long_pages;
		}
	}
	return found;
}

enum {
	M_NODE, /* the first one, which a table without nodes leaves out */
	M_SHORT,
	M_LONG,
	M_RESIDENT,
	M_RAM,
	M_START,
	M_END,
	M_NS,
	M_NR_COLUMNS,
};

static const struct column memory_columns[M_NR_COLUMNS] = {
	[M_NODE] = { "node", "node", COLUMN_COUNT, 4 },
	[M_SHORT] = { "used.1s.bytes", "used_1s_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },
	[M_LONG] = { "used.10s.bytes", "used_10s_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },
	[M_RESIDENT] = { "resident.bytes", "resident_bytes", COLUMN_COUNT, 14, .total = TOTAL_SUM },
	[M_RAM] = { "ram.bytes", "ram_bytes", COLUMN_COUNT, 14, .total = TOTAL_END },
	[M_START] = { "from", "start", COLUMN_ADDRESS, 16 },
	[M_END] = { "to", "end", COLUMN_ADDRESS, 16 },
	[M_NS] = { NULL, "sampled_ns", COLUMN_COUNT },
};

static struct working_set_memory memory;

static void print_block(const struct working_set_block *block, u32 first_column)
{
	u64 used_short = block->nr[WORKING_SET_USED_SHORT];
	u64 used_long = used_short + block->nr[WORKING_SET_USED_LONG];

	table_row((struct cell[M_NR_COLUMNS]){
			  [M_NODE] = block->node == OS_NO_NODE ? cell_dash() : cell_nr(block->node),
			  [M_SHORT] = cell_nr(bytes_of(used_short)),
			  [M_LONG] = cell_nr(bytes_of(used_long)),
			  [M_RESIDENT] =
				  cell_nr(bytes_of(used_long + block->nr[WORKING_SET_RESIDENT])),
			  [M_RAM] = cell_nr(bytes_of(block->nr_pages)),
			  [M_START] = cell_nr(block->start),
			  [M_END] = cell_nr(block->end),
			  [M_NS] = cell_nr(memory.ns),
		  } +
		  first_column);
}

/* Adds up the blocks of a node, or of all nodes. */
static struct working_set_block sum_of(bool is_of_all, u32 node)
{
	struct working_set_block sum = { 0 };

	for (u32 i = 0; i < memory.nr_blocks; i++) {
		const struct working_set_block *block = &memory.blocks[i];

		if (!is_of_all && block->node != node)
			continue;
		sum.nr_pages += block->nr_pages;
		for (u32 level = WORKING_SET_RESIDENT; level < WORKING_SET_LEVELS; level++)
			sum.nr[level] += block->nr[level];
	}
	return sum;
}

static void note_sum(const char *whose, const struct working_set_block *sum)
{
	u64 used_short = sum->nr[WORKING_SET_USED_SHORT];
	u64 used_long = used_short + sum->nr[WORKING_SET_USED_LONG];
	char used[MIB_BYTES], used_10s[MIB_BYTES], resident[MIB_BYTES], ram[MIB_BYTES];

	table_note(
		"%s %s: programs have %s, and have used %s in the last 10 s, %s in the last second",
		whose, print_mib(ram, sum->nr_pages),
		print_mib(resident, used_long + sum->nr[WORKING_SET_RESIDENT]),
		print_mib(used_10s, used_long), print_mib(used, used_short));
}

/* Prints a sum for each node, where its first block is. */
static void note_nodes(void)
{
	for (u32 i = 0; i < memory.nr_blocks; i++) {
		u32 node = memory.blocks[i].node, first = 0;
		struct working_set_block sum;
		char whose[MIB_BYTES] = "memory without a node,";

		while (memory.blocks[first].node != node)
			first++;
		if (first != i)
			continue;
		sum = sum_of(false, node);
		if (node != OS_NO_NODE)
			os_snprintf(whose, sizeof(whose), "node %u, with", node);
		note_sum(whose, &sum);
	}
}

static bool is_of_programs(const struct working_set_block *block)
{
	return block->nr[WORKING_SET_RESIDENT] || block->nr[WORKING_SET_USED_LONG] ||
	       block->nr[WORKING_SET_USED_SHORT];
}

/* Prints the blocks that programs have memory in. Without nodes, their column is left out. */
static void print_memory_table(void)
{
	u32 first_column = memory.has_nodes ? 0 : M_SHORT;
	const struct table table = { .columns = memory_columns + first_column,
				     .nr_columns = M_NR_COLUMNS - first_column };
	struct working_set_block all = sum_of(true, 0);
	char whose[2 * MIB_BYTES];

	table_begin(&table, "Working Set: physical memory");
	os_snprintf(whose, sizeof(whose), "at %lu.%03lu s, of the machine's",
		    memory.ns / NS_PER_SEC, memory.ns % NS_PER_SEC / NS_PER_MSEC);
	note_sum(whose, &all);
	if (memory.has_nodes)
		note_nodes();
	table_head();
	for (u32 i = 0; i < memory.nr_blocks; i++) {
		if (is_of_programs(&memory.blocks[i]))
			print_block(&memory.blocks[i], first_column);
	}
	table_end();
	if (memory.nr_outside)
		table_note("%lu mapped pages are not in RAM", memory.nr_outside);
}

static void print_memory(void)
{
	if (working_set_copy_memory(&memory))
		print_memory_table();
	else if (memory.no_room)
		table_note("physical memory is not shown: no room");
}

static void print_off(void)
{
	struct off_snapshot off = off_time_since_reset(&working_set_off_time);

	report_print_off("sampling of used memory", "off", &off);
}

/* Prints nothing if it is off, and nothing is known from before. */
void report_print_working_set(const struct report *report)
{
	const struct table table = TABLE(columns);
	u32 nr_known = 1, slot;

	if (report->proc)
		slot = os_process_profile(report->proc)->working_set.slot - 1;
	else
		slot = largest_slot(&nr_known);
	if (slot < WORKING_SET_SLOTS && copy_view(slot)) {
		print_view(report->top);
	} else if (!working_set_off_time.is_off) {
		table_begin(&table, "Working Set");
		table_note("too short: not sampled %u times", WORKING_SET_SAMPLES);
	} else {
		return;
	}
	if (nr_known > 1)
		table_note("%u other processes have smaller working sets", nr_known - 1);
	print_cost();
	print_off();
	if (!report->proc)
		print_memory();
}

void report_print_working_sets(void)
{
	bool any = false;

	for (u32 i = 0; i < WORKING_SET_SLOTS; i++) {
		if (!copy_view(i))
			continue;
		print_view(REPORT_TOP_ALL);
		any = true;
	}
	if (any)
		print_cost();
	else
		report_printf("no process was sampled\n");
	print_off();
	if (any)
		print_memory();
}

void report_print_working_set_regions(void)
{
	const struct table table = TABLE(columns);

	table_begin(&table, "Working Set");
	for (u32 i = 0; i < WORKING_SET_SLOTS; i++) {
		if (!copy_view(i))
			continue;
		for (u32 row = 0; row < view.nr_rows; row++)
			print_row(&view.rows[row]);
	}
	table_end_without_total();
}

enum {
	P_PID,
	P_NAME,
	P_SHORT,
	P_LONG,
	P_RESIDENT,
	P_NS,
	P_NR_COLUMNS,
};

static const struct column process_columns[P_NR_COLUMNS] = {
	[P_PID] = { NULL, "pid", COLUMN_COUNT },
	[P_NAME] = { NULL, "program", COLUMN_TEXT },
	[P_SHORT] = { NULL, "used_1s_bytes", COLUMN_COUNT },
	[P_LONG] = { NULL, "used_10s_bytes", COLUMN_COUNT },
	[P_RESIDENT] = { NULL, "resident_bytes", COLUMN_COUNT },
	[P_NS] = { NULL, "sampled_ns", COLUMN_COUNT },
};

void report_print_working_set_processes(void)
{
	const struct table table = TABLE(process_columns);

	table_begin(&table, "Working Sets");
	for (u32 i = 0; i < WORKING_SET_SLOTS; i++) {
		if (!copy_view(i))
			continue;
		table_row((struct cell[P_NR_COLUMNS]){
			[P_PID] = cell_nr(view.pid),
			[P_NAME] = cell_text(view.name),
			[P_SHORT] = cell_nr(bytes_of(view.short_pages)),
			[P_LONG] = cell_nr(bytes_of(view.long_pages)),
			[P_RESIDENT] = cell_nr(bytes_of(view.resident_pages)),
			[P_NS] = cell_nr(view.ns),
		});
	}
	table_end_without_total();
	print_cost();
}

enum {
	H_PID,
	H_NS,
	H_START,
	H_END,
	H_ACCESSED,
	H_WRITTEN,
	H_NR_COLUMNS,
};

static const struct column history_columns[H_NR_COLUMNS] = {
	[H_PID] = { NULL, "pid", COLUMN_COUNT },
	[H_NS] = { NULL, "ns", COLUMN_COUNT },
	[H_START] = { NULL, "start", COLUMN_ADDRESS },
	[H_END] = { NULL, "end", COLUMN_ADDRESS },
	[H_ACCESSED] = { NULL, "accessed_percent", COLUMN_COUNT },
	[H_WRITTEN] = { NULL, "written_percent", COLUMN_COUNT },
};

void report_print_working_set_memory(void)
{
	const struct table table = TABLE(memory_columns);
	bool is_known = working_set_copy_memory(&memory);

	table_begin(&table, "Working Set: physical memory");
	for (u32 i = 0; is_known && i < memory.nr_blocks; i++)
		print_block(&memory.blocks[i], 0);
	table_end_without_total();
}

static void print_moment(void)
{
	for (u32 i = 0; i < moment.nr_cells; i++) {
		const struct working_set_cell *cell = &moment.cells[i];

		table_row((struct cell[H_NR_COLUMNS]){
			[H_PID] = cell_nr(view.pid),
			[H_NS] = cell_nr(moment.ns),
			[H_START] = cell_nr(cell->start),
			[H_END] = cell_nr(cell->start + bytes_of(cell->nr_pages)),
			[H_ACCESSED] = cell_nr(cell->accessed),
			[H_WRITTEN] = cell_nr(cell->written),
		});
	}
}

void report_print_working_set_history(void)
{
	const struct table table = TABLE(history_columns);

	table_begin(&table, "Working Sets over time");
	for (u32 i = 0; i < WORKING_SET_SLOTS; i++) {
		const struct working_set_slot *slot = working_set_slot_at(i);

		if (!slot || !copy_view(i))
			continue;
		for (u32 n = 0; working_set_copy_moment(slot, n, &moment); n++)
			print_moment();
	}
	table_end_without_total();
}
