// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the line of the critical path: the largest parts of the wall time. A part is the rows that
 * have the same name here: those of a function or call in all threads, or all page faults. If most
 * of a part is of one function of the program, the part's name ends with it. Functions are written
 * as in findings: main().
 */

#include "path.h"

#include <profile/stack_walk.h>

#define NR_PARTS  5  /* of the line */
#define MAX_NAMES 32 /* from which they are chosen */
#define MAX_SHOWN 64 /* characters of a name, and of a place: those of C++ can be longer */

struct part {
	char name[PATH_NAME_BYTES + 16];
	char place[PATH_NAME_BYTES + 32]; /* the program's function; or empty */
	u64 ns;
	u64 first_ns;		      /* of its first row, the longest */
	const struct path_row *first; /* NULL: not in use */
};

/* Of the one reader. */
static struct part parts[MAX_NAMES];
static u64 unknown_ns; /* before the first event that is known */

/* Copies the name of user code, with () if it is a function's: not of `file+0x1234` or `[file]`. */
static void copy_user_name(char *text, size_t size, const char *name)
{
	const char *at = name;

	while (*at && *at != '+')
		at++;
	if (*at || name[0] == '[')
		os_strscpy(text, name, size);
	else
		os_snprintf(text, size, "%.*s()", (int)size - 3, name);
}

static void name_row(const struct path_row *row, char *name, size_t size)
{
	const struct path_segment *segment = &row->example;
	const char *cause = path_cause_names[segment->cause];
	char function[PATH_NAME_BYTES];

	path_function_name(segment, function);
	switch (segment->cause) {
	case PATH_IN_FAULT:
		os_strscpy(name, "page faults", size);
		break;
	case PATH_IN_IRQ:
		os_strscpy(name, "interrupts", size);
		break;
	case PATH_IN_KERNEL:
		os_strscpy(name, "return to user mode", size);
		break;
	case PATH_IN_USER:
		if (function[0] == '-')
			os_strscpy(name, cause, size);
		else
			copy_user_name(name, size, function);
		break;
	case PATH_IN_CALL:
		os_strscpy(name, function[0] == '-' ? cause : function, size);
		break;
	case PATH_UNTIL_TIMER:
	case PATH_UNTIL_DEVICE:
	case PATH_UNKNOWN:
		os_snprintf(name, size, "%s (%s)", function, cause);
		break;
	default:
		os_strscpy(name, cause, size);
	}
}

/* Returns the part with this name, or the one that is free, or NULL. */
static struct part *find_part(const char *name)
{
	for (u32 i = 0; i < MAX_NAMES; i++) {
		if (!parts[i].first || !strcmp(parts[i].name, name))
			return &parts[i];
	}
	return NULL;
}

/* Sets the place of a part, if its longest row has at least half of its time. */
static void set_place(struct part *part)
{
	const struct path_row *row = part->first;
	char name[PATH_NAME_BYTES], place[PATH_NAME_BYTES + 2];
	bool is_own = row->example.cause == PATH_IN_FAULT && row->example.pc && !row->caller_pc;
	u64 share = is_own ? 10000 : row->caller_pc ? row->caller_share : 0;

	share = share * report_percent(part->first_ns, part->ns) / 10000;
	if (share < 5000)
		return;
	if (is_own)
		path_function_name(&row->example, name);
	else
		path_user_name(row->caller_map, row->caller_pc, name);
	copy_user_name(place, sizeof(place), name);
	os_snprintf(part->place, sizeof(part->place), " %s %s",
		    row->example.cause == PATH_IN_FAULT ? "in" : "called from", place);
	if (share < 9950)
		os_snprintf(part->place + strlen(part->place),
			    sizeof(part->place) - strlen(part->place), " (%lu %%)",
			    (share + 50) / 100);
}

static int compare_parts(const void *a, const void *b)
{
	return compare_u64(((const struct part *)b)->ns, ((const struct part *)a)->ns);
}

/* Adds a row to the part of its name. Parts without room are in the rest of the line. */
static void add_row(const struct path_row *row)
{
	char name[sizeof(parts[0].name)];
	struct part *part;

	name_row(row, name, sizeof(name));
	part = find_part(name);
	if (!part)
		return;
	if (!part->first) {
		os_strscpy(part->name, name, sizeof(name));
		part->first = row;
		part->first_ns = row->ns;
	}
	part->ns += row->ns;
}

void path_make_parts(const struct path_row *rows, u32 nr)
{
	memset(parts, 0, sizeof(parts));
	unknown_ns = 0;
	for (u32 i = 0; i < nr; i++) {
		if (rows[i].key.cause == PATH_NOT_RECORDED)
			unknown_ns = rows[i].ns; /* at the begin */
		else
			add_row(&rows[i]);
	}
	for (u32 i = 0; i < MAX_NAMES && parts[i].first; i++)
		set_place(&parts[i]);
	os_sort(parts, MAX_NAMES, sizeof(parts[0]), compare_parts);
}

void path_part_name(const struct path_row *row, char name[PATH_PART_BYTES])
{
	const struct part *part;

	name_row(row, name, sizeof(part->name));
	part = find_part(name);
	if (part && part->first)
		os_strscpy(name + strlen(name), part->place, sizeof(part->place));
}

/* Prints a time rounded down to milliseconds or, if the whole is short, microseconds. */
static size_t print_time(char *text, size_t size, u64 ns, bool is_short)
{
	if (is_short)
		return os_snprintf(text, size, "%lu.%06lu", ns / NS_PER_SEC,
				   ns % NS_PER_SEC / 1000);
	return os_snprintf(text, size, "%lu.%03lu", ns / NS_PER_SEC, ns % NS_PER_SEC / NS_PER_MSEC);
}

/* Prints a name, or its begin and `~`. */
static size_t print_short(char *text, size_t size, const char *name)
{
	if (strlen(name) <= MAX_SHOWN)
		return os_snprintf(text, size, "%s", name);
	return os_snprintf(text, size, "%.*s~", MAX_SHOWN - 1, name);
}

void path_print_line(const struct path_scope *scope)
{
	u64 total_ns = scope->end_ns - scope->begin_ns, unit;
	bool is_short;
	char line[896], time[32];
	size_t len = 0;

	total_ns -= unknown_ns;
	is_short = total_ns < NS_PER_SEC / 10;
	if (unknown_ns) {
		print_time(time, sizeof(time), unknown_ns, is_short);
		len = os_snprintf(line, sizeof(line), ", known from %s s on", time);
	}
	print_time(time, sizeof(time), total_ns, is_short);
	len += os_snprintf(line + len, sizeof(line) - len, ": %s s", time);
	/* What is rounded off is in the others, so that the parts sum up as printed. */
	unit = is_short ? 1000 : NS_PER_MSEC;
	total_ns -= total_ns % unit;
	for (u32 i = 0; i < NR_PARTS && parts[i].ns >= unit; i++) {
		print_time(time, sizeof(time), parts[i].ns, is_short);
		total_ns -= parts[i].ns - parts[i].ns % unit;
		len += os_snprintf(line + len, sizeof(line) - len, " %c ", i ? '+' : '=');
		len += print_short(line + len, sizeof(line) - len, parts[i].name);
		len += print_short(line + len, sizeof(line) - len, parts[i].place);
		len += os_snprintf(line + len, sizeof(line) - len, " %s", time);
	}
	print_time(time, sizeof(time), total_ns, is_short);
	if (total_ns)
		os_snprintf(line + len, sizeof(line) - len, " + others %s", time);
	report_printf("critical path%s\n", line);
}
