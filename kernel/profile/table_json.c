// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints tables as JSON; table.h describes the format. A line is printed in chunks, so it can have
 * any length. But it must go to a text: on the console, other lines could come between two chunks.
 */

#include "table.h"

#include "report.h"

#define CHUNK_BYTES 256
#define MAX_INTEGER (1ull << 53) /* larger ones lose digits in programs that read doubles */

static char chunk[CHUNK_BYTES];
static u32 chunk_len;

static void flush_chunk(void)
{
	chunk[chunk_len] = '\0';
	report_printf("%s", chunk);
	chunk_len = 0;
}

static void put_json_char(char c)
{
	if (chunk_len == sizeof(chunk) - 1)
		flush_chunk();
	chunk[chunk_len++] = c;
}

static void json_put(const char *text)
{
	for (; *text; text++)
		put_json_char(*text);
}

static void put_string(const char *text)
{
	char escape[8];

	put_json_char('"');
	for (; *text; text++) {
		u8 c = *text;

		if (c < ' ' || c > '~') {
			os_snprintf(escape, sizeof(escape), "\\u%04x", c);
			json_put(escape);
			continue;
		}
		if (c == '"' || c == '\\')
			put_json_char('\\');
		put_json_char(c);
	}
	put_json_char('"');
}

static void put_integer(u64 nr)
{
	char text[24];

	os_snprintf(text, sizeof(text), nr > MAX_INTEGER ? "\"%lu\"" : "%lu", nr);
	json_put(text);
}

static void put_address(u64 address)
{
	char text[24];

	os_snprintf(text, sizeof(text), "\"0x%016lx\"", address);
	json_put(text);
}

static void put_counts(const struct table_count *counts, u32 nr)
{
	json_put("{");
	for (u32 i = 0; i < nr; i++) {
		json_put(i ? "," : "");
		put_string(counts[i].name);
		json_put(":");
		put_integer(counts[i].nr);
	}
	json_put("}");
}

static void put_addresses(const u64 *addresses, u32 nr)
{
	json_put("[");
	for (u32 i = 0; i < nr; i++) {
		json_put(i ? "," : "");
		put_address(addresses[i]);
	}
	json_put("]");
}

static void put_value(const struct column *column, const struct cell *cell)
{
	if (cell->state == CELL_BLANK || cell->state == CELL_DASH)
		json_put("null");
	else if (column->kind == COLUMN_TEXT)
		put_string(cell->text);
	else if (column->kind == COLUMN_ADDRESS)
		put_address(cell->nr);
	else if (column->kind == COLUMN_ADDRESSES)
		put_addresses(cell->addresses, cell->whole);
	else if (column->kind == COLUMN_COUNTS)
		put_counts(cell->counts, cell->whole);
	else
		put_integer(cell->nr);
}

static void print_row(const struct table *table, const struct cell *cells)
{
	const char *before = "{";

	for (u32 i = 0; i < table->nr_columns; i++) {
		if (!table->columns[i].key)
			continue;
		json_put(before);
		put_string(table->columns[i].key);
		json_put(":");
		put_value(&table->columns[i], &cells[i]);
		before = ",";
	}
	json_put("}\n");
	flush_chunk();
}

static void print_object(const char *key, const char *text)
{
	json_put("{");
	put_string(key);
	json_put(":");
	put_string(text);
	json_put("}\n");
	flush_chunk();
}

static void json_restart(void)
{
	chunk_len = 0;
}

static void json_begin(const char *title)
{
	print_object("table", title);
}

static void print_head(const struct table *table)
{
}

static void json_end(const struct table *table, const struct cell *totals)
{
}

static void print_note(const char *note)
{
	print_object("note", note);
}

const struct table_sink table_json = {
	.begin = json_begin,
	.head = print_head,
	.row = print_row,
	.end = json_end,
	.note = print_note,
	.restart = json_restart,
};
