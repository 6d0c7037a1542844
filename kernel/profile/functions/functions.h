/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FUNCTIONS_H
#define PROFILE_FUNCTIONS_H

/* Counts the calls and the times of all kernel functions: see README.md. */

#include "../report.h"
#include "os.h"

#include <profile/functions.h>

/*
 * The calls of one function from one address, on one CPU. Only that CPU writes. It writes each
 * value in one instruction, so neither an interrupt nor a reader sees half of a value.
 */
struct function_row {
	u64 key; /* 0: free; see function_key() */
	u64 nr;
	u64 cycles;	 /* CPU time from start to return, of calls that have returned */
	u64 self_cycles; /* the part of it outside of called functions */
};

/* A row's values at the last reset. Readers subtract them. */
struct function_base {
	u64 nr, cycles, self_cycles;
};

#define FUNCTION_LOG2_ROWS 13
#define FUNCTION_NR_ROWS   PF_BIT(FUNCTION_LOG2_ROWS)

/* The table of a CPU. */
struct function_table {
	struct function_row rows[FUNCTION_NR_ROWS];
	struct function_base base[FUNCTION_NR_ROWS]; /* written by readers */
};

/* Calls that are missing from the rows, or have no time there. */
struct function_lost {
	u64 nr_no_row;	/* not counted: the table was full */
	u64 nr_no_time; /* counted, but not timed: no memory, or too many nested calls */
	u64 nr_in_nmi;	/* not counted: in an NMI */
};

OS_DECLARE_PER_CPU(struct function_table *, function_table);  /* NULL: no memory */
OS_DECLARE_PER_CPU(struct function_table *, function_counts); /* the same, or NULL while off */
OS_DECLARE_PER_CPU(struct function_lost, function_lost);

/* Makes a key of the lower halves of both addresses: the kernel's code lies within 4 GiB. */
static pf_always_inline u64 function_key(u64 function, u64 return_address)
{
	return function << 32 | (u32)return_address;
}

u64 function_of_key(u64 key);
u64 return_address_of_key(u64 key);

/* The calls of one function by another one, on all CPUs. */
struct function_pair {
	u64 function, caller; /* start addresses; caller 0: unknown */
	u64 nr, cycles, self_cycles;
};

struct function_snapshot {
	struct function_pair *pairs; /* most self time first */
	u32 nr_pairs;
	u64 nr_no_room; /* calls of pairs for which there was no room */
	struct function_lost lost;
	u64 nr, self_cycles; /* sums of the pairs */
};

/* Allocates tables for the CPUs that have none. Returns false without memory. Process context. */
bool functions_alloc(void);
/*
 * Adds up the tables of all CPUs. The pairs are valid until the next call. One caller at a time.
 */
void functions_snapshot(struct function_snapshot *snap);
/* Does the same for one CPU, by function only, most time first. Callers are 0, nothing is lost. */
void functions_snapshot_cpu(struct function_snapshot *snap, u32 cpu);
/* Restarts all counts from zero. Process context, or a panic. */
void functions_reset(void);

/*
 * switch.c: functions_count() switches counting on or off. functions_apply() patches the functions
 * so that those that counting and the tracer want call their hooks. The lock guards what is wanted,
 * and the caller of functions_apply() holds it. Both return 0 or a negative errno. Process context;
 * may sleep.
 */
extern struct poll_lock functions_lock;
int functions_apply(void);
int functions_count(bool on);
bool functions_are_counted(void);

/* Whether counting has ever been switched on. */
extern bool functions_used;
void report_print_calls(const struct report *report);

#endif
