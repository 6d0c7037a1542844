/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WAITS_REPORT_TIMES_H
#define PROFILE_WAITS_REPORT_TIMES_H

/* The first columns of all tables of waits. */

#include "../table.h"
#include "waits.h"

enum {
	SECONDS,
	FOR_CPU,
	TIMES,
	LONGEST,
	IN_FLIGHT,
	NR_TIME_COLUMNS,
};

/* clang-format off */
#define TIME_COLUMNS                                                               \
	[SECONDS] = { "seconds", "wait_ns", COLUMN_SECONDS, 13, TOTAL_SUM },        \
	[FOR_CPU] = { "for.a.CPU", "ready_ns", COLUMN_SECONDS, 13, TOTAL_SUM },     \
	[TIMES] = { "times", "waits", COLUMN_COUNT, 9, TOTAL_SUM },                 \
	[LONGEST] = { "longest", "longest_ns", COLUMN_SECONDS, 13, TOTAL_END },     \
	[IN_FLIGHT] = { NULL, "in_flight", COLUMN_COUNT }
/* clang-format on */

/* Fills in the cells of these columns. */
void report_set_wait_times(struct cell cells[NR_TIME_COLUMNS], const struct wait_row *row);

#endif
