/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FINDINGS_H
#define PROFILE_FINDINGS_H

/*
 * Findings: sentences above the first lines of a report that say what takes most of the time. Each
 * profiler offers what its numbers prove, in find() of struct profiler.
 */

#include "report.h"

/* The scope of the report, for find(). */
struct finding_scope {
	const struct report *report;
	const struct report_summary *sums;
	u64 cpu_ns;  /* of all threads */
	u64 wall_ns; /* the life of the process, or of the run */
};

#define FINDING_BYTES 384

/*
 * Offer a finding: a part of the scope's CPU time, or of its wall time, and the rest of the
 * sentence, which ends in the table and the row that prove it. Less than FINDING_MIN_SHARE of it,
 * or than FINDING_MIN_NS, is not told. Nor is CPU time below that share of the wall time.
 */
void finding_of_cpu_time(const struct finding_scope *scope, u64 ns, const char *fmt, ...)
	pf_printf(3, 4);
void finding_of_wall_time(const struct finding_scope *scope, u64 ns, const char *fmt, ...)
	pf_printf(3, 4);
/* The same for a finding that is told only if there is no other. */
void finding_of_last_resort(const struct finding_scope *scope, u64 ns, const char *fmt, ...)
	pf_printf(3, 4);

#define FINDING_MIN_SHARE 2000 /* in hundredths of a percent */
#define FINDING_MIN_NS	  1000000

/* Copies a number with a comma before each three digits. Returns text. */
#define FINDING_COUNT_BYTES 32
const char *finding_count(char text[FINDING_COUNT_BYTES], u64 nr);

/* Copies the average of a time: "2.8 ms", "34 us", "120 ns". Returns text. */
const char *finding_each(char text[FINDING_COUNT_BYTES], u64 ns, u64 nr);

/* Copies a size: "64 MiB", "1.5 MiB", "320 KiB". Returns text. */
const char *finding_bytes(char text[FINDING_COUNT_BYTES], u64 bytes);

/* Prints at most three findings, the largest part of the wall time first. */
void findings_print(const struct report *report, const struct report_summary *sums);

#endif
