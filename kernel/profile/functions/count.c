// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts calls. Each CPU has a hash table with open addressing. The key is a function and the
 * address that it was called from. The start of a call finds its row, or claims a free one, and
 * counts. The end of a call adds its time to the row, and to the callees' time of the enclosing
 * call. A call costs two TSC reads and a search that usually ends at the first row: see README.md.
 * snapshot.c reads the tables.
 *
 * Times are CPU time of the thread. They exclude the time in which the thread is off its CPU. An
 * interrupt counts as a callee of the function that it interrupted.
 *
 * The hooks run at the start of nearly every kernel function, in any context but NMI, so they must
 * not call a function that has a hook itself.
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
	u32 at = key * PF_HASH_FACTOR >> (64 - FUNCTION_LOG2_ROWS);

	for (u32 i = 0; i < MAX_PROBES; i++) {
		struct function_row *row = &table->rows[(at + i) % FUNCTION_NR_ROWS];
		u64 seen = pf_read_once(row->key);

		if (pf_likely(seen == key))
			return row;
		if (seen)
			continue;
		/* An interrupt may claim the row first, even for the same key. */
		seen = pf_cmpxchg(&row->key, 0, key);
		if (!seen || seen == key)
			return row;
	}
	return NULL;
}

static pf_always_inline bool count(u64 function, u64 return_address,
				   struct profile_function_call *call,
				   struct profile_function_thread *thread)
{
	struct function_table *table = os_this_cpu_read(os_local(function_counts));
	struct function_row *row;

	if (pf_unlikely(!table))
		return false;
	row = find_row(table, function_key(function, return_address));
	if (pf_unlikely(!row)) {
		os_this_cpu_inc(os_local(function_lost).nr_no_row);
		return false;
	}
	os_add(row->nr, 1);
	if (pf_unlikely(!call)) {
		os_this_cpu_inc(os_local(function_lost).nr_no_time);
		return false;
	}
	call->row = row;
	call->function = function;
	call->around = 0;
	/* Interrupts are callees from the start on. Start again if one came in between. */
	do {
		pf_write_once(call->callees, 0);
		call->start = os_cycles() - thread->off_cycles;
	} while (pf_unlikely(pf_read_once(call->callees)));
	return true;
}

/* Not inlined, so that counting alone needs fewer registers. */
static pf_noinline bool trace_and_count(u64 function, u64 return_address,
					struct profile_function_call *call,
					struct profile_function_thread *thread)
{
	bool counts = count(function, return_address, call, thread);

	if (!counts && call) {
		call->row = NULL;
		call->callees = 0;
		call->function = function;
		call->around = 0;
	}
	return function_trace_enter(function, return_address, call, thread) || counts;
}

bool profile_function_enter(u64 function, u64 return_address, struct profile_function_call *call,
			    struct profile_function_thread *thread)
{
	u8 flags = function_flags_of(function);

	if (pf_unlikely(flags))
		return trace_and_count(function, return_address, call, thread);
	return count(function, return_address, call, thread);
}

void profile_function_in_nmi(void)
{
	if (os_this_cpu_read(os_local(function_counts)))
		os_this_cpu_inc(os_local(function_lost).nr_in_nmi);
}

/* Adds the time on the CPU to which the thread has moved since the call. */
static pf_noinline void add_elsewhere(u64 key, u64 cycles, u64 self_cycles)
{
	struct function_row *row = find_row(os_this_cpu_read(os_local(function_table)), key);

	if (pf_unlikely(!row)) {
		os_this_cpu_inc(os_local(function_lost).nr_no_time);
		return;
	}
	os_add(row->cycles, cycles);
	os_add(row->self_cycles, self_cycles);
}

static pf_always_inline void add_time(struct profile_function_call *call,
				      struct profile_function_call *parent,
				      const struct profile_function_thread *thread)
{
	struct function_row *row = call->row;
	u64 cycles, callees;

	if (pf_unlikely(!row)) {
		parent->callees += call->callees;
		return;
	}
	/* Read again if an interrupt came in between. */
	do {
		callees = pf_read_once(call->callees);
		cycles = os_cycles() - thread->off_cycles - call->start;
	} while (pf_unlikely(pf_read_once(call->callees) != callees));
	parent->callees += cycles;
	if (pf_unlikely((u64)row - (u64)os_this_cpu_read(os_local(function_table))->rows >=
			sizeof(((struct function_table *)NULL)->rows))) {
		add_elsewhere(row->key, cycles, cycles - callees);
		return;
	}
	os_add(row->cycles, cycles);
	os_add(row->self_cycles, cycles - callees);
}

static pf_noinline void leave_graph(struct profile_function_call *call,
				    struct profile_function_call *parent,
				    struct profile_function_thread *thread)
{
	function_graph_exit(call, thread);
	add_time(call, parent, thread);
}

void profile_function_exit(struct profile_function_call *call, struct profile_function_call *parent,
			   struct profile_function_thread *thread)
{
	if (pf_unlikely(call->around))
		leave_graph(call, parent, thread);
	else
		add_time(call, parent, thread);
}
