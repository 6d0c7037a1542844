// SPDX-License-Identifier: BSD-2-Clause
/* Tests the printer of tables and its two sinks: known output to the byte. */

#include "unit.h"

#include "../../kernel/profile/table.h"

enum {
	SHARE,
	TIME,
	CALLS,
	ADDRESS,
	NAME,
	LONGEST,
	P50,
	ERRORS,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[SHARE] = { "%", NULL, COLUMN_PERCENT, 6, TOTAL_SUM },
	[TIME] = { "seconds", "time_ns", COLUMN_SECONDS, 11, TOTAL_SUM },
	[CALLS] = { "calls", "calls", COLUMN_COUNT, 5, TOTAL_SUM },
	[ADDRESS] = { "address", "address", COLUMN_ADDRESS, 16 },
	[NAME] = { "name", "name", COLUMN_TEXT, 6, TOTAL_LABEL, .wide_width = 8, .left = true },
	[LONGEST] = { "max", "max_bound_ns", COLUMN_BOUND, 9, TOTAL_DASH, .wide = true },
	[P50] = { "p50.ns", "p50_bound_ns", COLUMN_BOUND_NS, 8, .wide = true },
	[ERRORS] = { " errors", "errors", COLUMN_COUNTS, 7, TOTAL_END, .left = true, .wide = true },
};

static const struct table_count counts[] = { { "ENOENT", 12 }, { "other", 3 } };
static struct table table;
static os_text_t text;

static int setup(void **state)
{
	table = (struct table){ .columns = columns, .nr_columns = NR_COLUMNS, .dense = true };
	memset(&text, 0, sizeof(text));
	host_log_clear();
	host_panicking = false;
	table_set_sink(&table_text);
	table_text_restart();
	return 0;
}

static struct cell *row(const char *name, u64 ns, u64 all_ns, u64 calls)
{
	static struct cell cells[NR_COLUMNS];

	memset(cells, 0, sizeof(cells));
	cells[SHARE] = cell_percent(ns, all_ns);
	cells[TIME] = cell_nr(ns);
	cells[CALLS] = cell_nr(calls);
	cells[ADDRESS] = cell_nr(0xffffffff81000000);
	cells[NAME] = cell_text(name);
	cells[LONGEST] = cell_nr(10001);
	cells[P50] = cell_nr(8191);
	cells[ERRORS] = cell_counts(counts, ARRAY_SIZE(counts));
	return cells;
}

static void print_two(void)
{
	table_begin(&table, "Table of %s", "all");
	table_note("of %u CPUs", 4);
	table_head();
	table_row(row("open", 2000000000, 3000000001, 7));
	table_row(row("close", 1000000001, 3000000001, 1));
	table_end();
	table_note("a remark");
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/* Times are rounded before they are added up. JSON has them exactly. */
TEST(microseconds)
{
	table.usecs = true;
	table.columns = columns;
	table.nr_columns = CALLS;
	table_begin(&table, "Short times");
	table_head();
	table_row(row("open", 1000001499, 2000002998, 0));
	table_row(row("close", 1000001499, 2000002998, 0));
	table_end();
	assert_log("Short times\n"
		   "     %     seconds\n"
		   "------ -----------\n"
		   " 50.00    1.000001\n"
		   " 50.00    1.000001\n"
		   "------ -----------\n"
		   "100.00    2.000002\n");
	host_log_clear();
	report_to(&text);
	table_set_sink(&table_json);
	table_begin(&table, "Short times");
	table_row(row("open", 1000001499, 2000002998, 0));
	report_to(NULL);
	assert_non_null(strstr(text.buf, "{\"time_ns\":1000001499}"));
}

TEST(narrow)
{
	print_two();
	assert_log("Table of all\n"
		   "of 4 CPUs\n"
		   "     %     seconds calls          address name\n"
		   "------ ----------- ----- ---------------- ------\n"
		   " 66.67 2.000000000     7 ffffffff81000000 open\n"
		   " 33.33 1.000000001     1 ffffffff81000000 close\n"
		   "------ ----------- ----- ---------------- ------\n"
		   "100.00 3.000000001     8                  total\n"
		   "a remark\n");
}

TEST(wide)
{
	table.wide = true;
	print_two();
	assert_log(
		"Table of all\n"
		"of 4 CPUs\n"
		"     %     seconds calls          address name           max   p50.ns  errors\n"
		"------ ----------- ----- ---------------- -------- --------- -------- -------\n"
		" 66.67 2.000000000     7 ffffffff81000000 open       <= 11us <=  8191  ENOENT 12, "
		"other 3\n"
		" 33.33 1.000000001     1 ffffffff81000000 close      <= 11us <=  8191  ENOENT 12, "
		"other 3\n"
		"------ ----------- ----- ---------------- -------- --------- --------\n"
		"100.00 3.000000001     8                  total            -\n"
		"a remark\n");
}

/* Each line is an object. Percentages are left out: they follow from the times. */
TEST(json)
{
	report_to(&text);
	table_set_sink(&table_json);
	print_two();
	report_to(NULL);
	assert_string_equal(
		text.buf, "{\"table\":\"Table of all\"}\n"
			  "{\"note\":\"of 4 CPUs\"}\n"
			  "{\"time_ns\":2000000000,\"calls\":7,\"address\":\"0xffffffff81000000\","
			  "\"name\":\"open\",\"max_bound_ns\":10001,\"p50_bound_ns\":8191,"
			  "\"errors\":{\"ENOENT\":12,\"other\":3}}\n"
			  "{\"time_ns\":1000000001,\"calls\":1,\"address\":\"0xffffffff81000000\","
			  "\"name\":\"close\",\"max_bound_ns\":10001,\"p50_bound_ns\":8191,"
			  "\"errors\":{\"ENOENT\":12,\"other\":3}}\n"
			  "{\"note\":\"a remark\"}\n");
	assert_log("");
}

/* Integers above 2^53 are strings, because doubles cannot hold them. Names may have any bytes. */
TEST(json_values)
{
	struct cell *cells = row("a\"b\\c\n\x01\x7f\xc3\xa4/", (1ull << 53) + 1, 1, 1ull << 53);

	report_to(&text);
	table_set_sink(&table_json);
	table_begin(&table, NULL);
	table_head();
	cells[LONGEST] = cell_dash();
	cells[P50] = (struct cell){ 0 };
	cells[ERRORS] = cell_counts(counts, 0);
	table_row(cells);
	cells[NAME] = cell_repeated("again");
	cells[TIME] = cell_nr(~0ull);
	cells[ADDRESS] = cell_nr(0);
	table_row(cells);
	table_end();
	report_to(NULL);
	assert_string_equal(text.buf,
			    "{\"time_ns\":\"9007199254740993\",\"calls\":9007199254740992,"
			    "\"address\":\"0xffffffff81000000\","
			    "\"name\":\"a\\\"b\\\\c\\u000a\\u0001\\u007f\\u00c3\\u00a4/\","
			    "\"max_bound_ns\":null,\"p50_bound_ns\":null,\"errors\":{}}\n"
			    "{\"time_ns\":\"18446744073709551615\",\"calls\":9007199254740992,"
			    "\"address\":\"0x0000000000000000\",\"name\":\"again\","
			    "\"max_bound_ns\":null,\"p50_bound_ns\":null,\"errors\":{}}\n");
}

/* A line of JSON may be longer than any line of text. */
TEST(json_of_long_text)
{
	char name[2000], *end;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	report_to(&text);
	table_set_sink(&table_json);
	table_begin(&table, NULL);
	table_row(row(name, 1, 1, 1));
	report_to(NULL);
	end = strstr(text.buf, name);
	assert_non_null(end);
	assert_ptr_equal(strstr(end, "\",\"max_bound_ns\""), end + strlen(name));
}

TEST(without_rows)
{
	table_begin(&table, "Empty");
	table_head();
	table_end();
	assert_log("Empty\n"
		   "     %     seconds calls          address name\n"
		   "------ ----------- ----- ---------------- ------\n"
		   "------ ----------- ----- ---------------- ------\n"
		   "  0.00 0.000000000     0                  total\n");
}

TEST(cells_without_a_value)
{
	struct cell *cells = row("open", 5, 5, 1);

	table_begin(&table, NULL);
	cells[CALLS] = cell_dash();
	cells[ADDRESS] = (struct cell){ 0 };
	cells[NAME] = cell_repeated("open");
	table_row(cells);
	table_end_without_total();
	assert_log("100.00 0.000000005     -\n"
		   "------ ----------- ----- ---------------- ------\n");
}

/* A sum that does not fit saturates. A number too long for its column is printed whole. */
TEST(huge_numbers_are_whole)
{
	table_begin(&table, NULL);
	table_row(row("one", ~0ull, ~0ull, ~0ull));
	table_row(row("two", 1, ~0ull, 1));
	table_end();
	assert_log("100.00 18446744073.709551615 18446744073709551615 ffffffff81000000 one\n"
		   "  0.00 0.000000001     1 ffffffff81000000 two\n"
		   "------ ----------- ----- ---------------- ------\n"
		   "100.00 18446744073.709551615 18446744073709551615                  total\n");
}

TEST(rows_beyond_top)
{
	table.top = 2;
	table_begin(&table, NULL);
	for (u64 i = 1; i <= 5; i++)
		table_row(row("row", i, 15, 10 * i));
	assert_int_equal(table_nr_others(), 3);
	assert_int_equal(table_others_sum(TIME), 12);
	assert_int_equal(table_others_sum(CALLS), 120);
	table_summary_row(row("[3 others]", table_others_sum(TIME), 15, table_others_sum(CALLS)));
	table_end();
	assert_log("  6.67 0.000000001    10 ffffffff81000000 row\n"
		   " 13.33 0.000000002    20 ffffffff81000000 row\n"
		   " 80.00 0.000000012   120 ffffffff81000000 [3 others]\n"
		   "------ ----------- ----- ---------------- ------\n"
		   "100.00 0.000000015   150                  total\n");

	table_begin(&table, NULL);
	assert_int_equal(table_nr_others(), 0);
	assert_int_equal(table_others_sum(TIME), 0);
}

TEST(long_and_unprintable_names)
{
	table_begin(&table, NULL);
	table_row(row("exactl", 1, 1, 1));
	table_row(row("a\nname\x1b[1m\xff", 1, 1, 1));
	table.shorten = true;
	table_row(row("exactl", 1, 1, 1));
	table_row(row("too long", 1, 1, 1));
	assert_log("100.00 0.000000001     1 ffffffff81000000 exactl\n"
		   "100.00 0.000000001     1 ffffffff81000000 a?name?[1m?\n"
		   "100.00 0.000000001     1 ffffffff81000000 exactl\n"
		   "100.00 0.000000001     1 ffffffff81000000 too l~\n");
}

/* In text, counts that do not fit are summed up as "other". JSON has all of them. */
TEST(many_counts)
{
	static struct table_count many[100];
	struct cell *cells;
	const char *at;
	u64 sum = 0;

	for (u32 i = 0; i < ARRAY_SIZE(many); i++) {
		snprintf(many[i].name, sizeof(many[i].name), "ERROR%u", i);
		many[i].nr = i + 1;
	}
	table.wide = true;
	table_begin(&table, NULL);
	cells = row("open", 1, 1, 1);
	cells[ERRORS] = cell_counts(many, ARRAY_SIZE(many));
	table_row(cells);
	assert_true(strlen(host_log) < 250);
	for (at = strstr(host_log, "ERROR0"); at; at = strchr(at, ','))
		sum += atoi(strchr(at += strspn(at, ", "), ' '));
	assert_int_equal(sum, 5050);

	report_to(&text);
	table_set_sink(&table_json);
	table_row(cells);
	report_to(NULL);
	assert_non_null(strstr(text.buf, ",\"ERROR99\":100}}\n"));
}

/* Bounds are rounded up, to at most four digits. */
TEST(bounds)
{
	static const struct {
		u64 ns;
		const char *text;
	} bounds[] = {
		{ 0, "   <= 0ns" },	      { 9999, "<= 9999ns" },
		{ 10000, "  <= 10us" },	      { 10001, "  <= 11us" },
		{ 9999000000, "<= 9999ms" },  { 9999000001, "   <= 10s" },
		{ 10000000001, "   <= 11s" }, { ~0ull, "<= 18446744074s" },
	};
	static const struct column bound = { .heading = "", .kind = COLUMN_BOUND, .width = 9 };

	table = (struct table){ .columns = &bound, .nr_columns = 1 };
	for (u32 i = 0; i < ARRAY_SIZE(bounds); i++) {
		char wanted[64];
		struct cell cell = cell_nr(bounds[i].ns);

		host_log_clear();
		table_begin(&table, NULL);
		table_row(&cell);
		snprintf(wanted, sizeof(wanted), "%s\n", bounds[i].text);
		assert_log(wanted);
	}
}

TEST(gaps_and_rules)
{
	table.dense = false;
	table.no_rules = true;
	table_begin(&table, NULL);
	table_head();
	table_row(row("open", 1, 1, 1));
	table_end_without_total();
	assert_log("     %      seconds  calls           address  name\n"
		   "100.00  0.000000001      1  ffffffff81000000  open\n");
}

TEST(empty_line_between_tables)
{
	table_begin(&table, "One");
	table_begin(&table, "Two");
	table_begin(&table, NULL);
	table_text_restart();
	table_begin(&table, "Three");
	assert_log("One\n\nTwo\nThree\n");
}

static void panic_now(void)
{
	host_on_text = NULL;
	host_panicking = true;
	table_begin(&table, "In a panic");
	table_row(row("panic", 1, 1, 1));
	table_end();
}

/* A panic in the middle of a JSON table prints text on the console, with its own sums. */
TEST(panic_within_a_table)
{
	report_to(&text);
	table_set_sink(&table_json);
	table_begin(&table, "Table");
	table_row(row("open", 7, 7, 7));
	host_on_text = panic_now;
	table_row(row("open", 7, 7, 7));
	assert_true(host_panicking);
	report_to(NULL);
	assert_ptr_equal(strstr(host_log, "In a panic\n"
					  "100.00 0.000000001     1 ffffffff81000000 panic\n"
					  "------ ----------- ----- ---------------- ------\n"
					  "100.00 0.000000001     1                  total\n"),
			 host_log);
}
