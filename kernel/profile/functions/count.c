// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts calls. Each CPU has a table with open addressing, whose key is a function and the address
 * that it was called from. The start of a call finds its row, or claims a free one, and counts; its
 * end adds its time, and to the call around it that it has been a callee. So each call costs two
 * readings of the clock and a search that mostly ends at the first row.
 *
 * Times are CPU time of the thread: a call that sleeps does not count while it is off its CPU, and
 * an interrupt is a callee of what it hit.
 *
 * This runs at the start of nearly every function of the kernel, in any context but NMI, so it must
 * not call any.
 */

#include "functions.h"

#include "../os.h"
#include "tracers.h"

#define MAX_PROBES 32

OS_DEFINE_PER_CPU(struct function_table *, function_table);
OS_DEFINE_PER_CPU(struct function_table *, function_counts);
OS_DEFINE_PER_CPU(struct function_lost, function_lost);

static pf_always_inline struct function_row *find_row(struct function_table *table, u64 key)
{
	u32 at = key * 0x9e3779b97f4a7c15ull >> (64 - FUNCTION_LOG2_ROWS);

	for (u32 i = 0; i < MAX_PROBES; i++) {
		struct function_row *row = &table->rows[(at + i) % FUNCTION_NR_ROWS];
		u64 seen = pf_read_once(row->key);

		if (pf_likely(seen == key))
			return row;
		/* An interrupt may claim it first, and even for the same key. */
		if (!seen && (__atomic_compare_exchange_n(&row->key, &seen, key, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
			      seen == key))
			return row;
	}
	return NULL;
}

static pf_always_inline bool count(u64 function, u64 return_address,
				   struct profile_function_call *call, const u64 *off_cycles)
{
	struct function_table *table = os_this_cpu_read(function_counts);
	struct function_row *row;

	if (pf_unlikely(!table))
		return false;
	row = find_row(table, function_key(function, return_address));
	if (pf_unlikely(!row)) {
		os_this_cpu_inc(function_lost.nr_no_row);
		return false;
	}
	os_add(row->nr, 1);
	if (pf_unlikely(!call)) {
		os_this_cpu_inc(function_lost.nr_no_time);
		return false;
	}
	call->row = row;
	/* An interrupt counts as a callee from here on; again, if it came before the start. */
	do {
		pf_write_once(call->callees, 0);
		call->start = os_cycles() - *off_cycles;
	} while (pf_unlikely(pf_read_once(call->callees)));
	return true;
}

/* Apart from what follows, so that counting alone needs fewer registers. */
static pf_noinline bool trace_and_count(u64 function, u64 return_address,
					struct profile_function_call *call, const u64 *off_cycles)
{
	function_trace_call(function, return_address);
	return count(function, return_address, call, off_cycles);
}

bool profile_function_enter(u64 function, u64 return_address, struct profile_function_call *call,
			    const u64 *off_cycles)
{
	if (pf_unlikely(function_flags_of(function)))
		return trace_and_count(function, return_address, call, off_cycles);
	return count(function, return_address, call, off_cycles);
}

u64 profile_function_of(const struct profile_function_call *call)
{
	return call->row->key >> 32;
}

void profile_function_exit(struct profile_function_call *call, struct profile_function_call *parent,
			   const u64 *off_cycles)
{
	struct function_table *table = os_this_cpu_read(function_table);
	struct function_row *row = call->row;
	u64 cycles, callees;

	/* Again, if an interrupt came in between. */
	do {
		callees = pf_read_once(call->callees);
		cycles = os_cycles() - *off_cycles - call->start;
	} while (pf_unlikely(pf_read_once(call->callees) != callees));
	/* The thread has moved to another CPU, which has a row of its own. */
	if (pf_unlikely((u64)row - (u64)table->rows >= sizeof(table->rows)))
		row = find_row(table, row->key);
	if (parent)
		parent->callees += cycles;
	if (pf_unlikely(!row)) {
		os_this_cpu_inc(function_lost.nr_no_time);
		return;
	}
	os_add(row->cycles, cycles);
	os_add(row->self_cycles, cycles - callees);
}
