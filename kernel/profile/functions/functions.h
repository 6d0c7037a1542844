/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_FUNCTIONS_H
#define PROFILE_FUNCTIONS_H

/* The calls and times of functions: see README.md. */

#include "../report.h"

#include <lego/function_profile.h>

/*
 * A function and an address that it was called from, on one CPU. Only that CPU writes, each value
 * in one instruction, so neither interrupts nor readers see half of it.
 */
struct function_row {
	u64 key; /* 0: free; see function_key() */
	u64 nr;
	u64 cycles;	 /* CPU time from start to return, of calls that have returned */
	u64 self_cycles; /* of that, not in functions that it called */
};

/* The row at the last reset: readers subtract it. */
struct function_base {
	u64 nr, cycles, self_cycles;
};

#define FUNCTION_LOG2_ROWS 13
#define FUNCTION_NR_ROWS   PF_BIT(FUNCTION_LOG2_ROWS)

/* Each CPU has one. */
struct function_table {
	struct function_row rows[FUNCTION_NR_ROWS];
	struct function_base base[FUNCTION_NR_ROWS]; /* the reader's */
};

/* Calls that are not, or not all, in rows. */
struct function_lost {
	u64 nr_no_row;	/* no room for their function and caller */
	u64 nr_no_time; /* counted, but not timed: no memory, or too many calls in each other */
	u64 nr_in_nmi;	/* not counted */
};

OS_DECLARE_PER_CPU(struct function_table *, function_table);  /* NULL: no memory */
OS_DECLARE_PER_CPU(struct function_table *, function_counts); /* the same; NULL: it is off */
OS_DECLARE_PER_CPU(struct function_lost, function_lost);

/* The kernel's code is in 4 GiB, so the lower halves of two addresses are a key. */
static pf_always_inline u64 function_key(u64 function, u64 return_address)
{
	return function << 32 | (u32)return_address;
}

u64 function_of_key(u64 key);
u64 return_address_of_key(u64 key);

/* A function and a function that called it, on all CPUs. */
struct function_pair {
	u64 function, caller; /* where they begin; 0: free. A caller of 0: not in a function */
	u64 nr, cycles, self_cycles;
};

struct function_snapshot {
	struct function_pair *pairs; /* most self time first */
	u32 nr_pairs;
	u64 nr_no_room; /* calls of pairs that did not fit */
	struct function_lost lost;
	u64 nr, self_cycles; /* sums of the pairs */
};

/* Allocates the tables of CPUs that have none. False: there is no memory. Process context. */
bool functions_alloc(void);
/* Adds all CPUs up. Called by one at a time; the pairs are valid until the next call. */
void functions_snapshot(struct function_snapshot *snap);
/* Process context or a panic. */
void functions_reset(void);

/*
 * switch.c. functions_count() switches counting. functions_apply() has the hooks called for the
 * functions that counting and the tracer want now; it is called with the turn, which guards what is
 * wanted. Both return 0 or a negative errno. Process context; they sleep.
 */
void functions_take_turn(void);
void functions_end_turn(void);
int functions_apply(void);
int functions_count(bool on);

/* Whether counting has ever been switched on. */
extern bool functions_used;
void report_print_calls(const struct report *report);

#endif
