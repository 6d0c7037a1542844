/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_PROGRAMS_H
#define PROFILE_PROGRAMS_H

/*
 * Sums of all processes of a run, by program. One reader at a time, in process context.
 */

#include "report.h"

/* Reads the sums: of processes that have ended, and of those that run. Stores the total. */
void programs_read(struct report_summary *total);

/* Adds each of the sums. */
void programs_add_threads(struct profile_thread_sums *to, const struct profile_thread_sums *from);

/* Prints the table of what was read, the programs with the most CPU time first. */
void programs_print(u32 top);

#endif
