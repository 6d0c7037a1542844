// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the records of the tracers. The graph has a record of each call and of each return; who is
 * around a call is kept for each thread, and put back when the call returns. Interrupts leave it as
 * it was.
 *
 * A call of which no record was made, as no room was in the ring or the tracer was not on, has no
 * record of its return either.
 */

#include "tracers.h"

#define RECORDED 0x80 /* in within of a call; the other bits are FUNCTION_* */

#define NS_SHIFT 60

u32 function_graph_depth;

static u16 session;	 /* 0: none */
static u16 last_session; /* a number that no other graph of late has had */
static u64 ns_per_cycle; /* << NS_SHIFT */

void function_graph_switch(bool on)
{
	ns_per_cycle = os_mul_div_u64(PF_BIT(NS_SHIFT), 1000000000, os_cycles_per_second());
	if (on && !++last_session)
		last_session = 1;
	pf_write_once(session, on ? last_session : 0);
}

static pf_always_inline u64 to_ns(u64 cycles)
{
	return (unsigned __int128)cycles * ns_per_cycle >> NS_SHIFT;
}

void function_record_call(u64 function, u64 return_address)
{
	struct trace_slot slot = trace_reserve(sizeof(struct function_record_call));
	struct function_record_call *record = slot.content;

	if (pf_unlikely(!record))
		return;
	trace_fill_common(&record->common, FUNCTION_RECORD_CALL);
	record->ip = function;
	record->parent_ip = return_address;
	trace_commit(slot);
}

static pf_always_inline bool record_entry(u64 function, u32 depth)
{
	struct trace_slot slot = trace_reserve(sizeof(struct function_record_entry));
	struct function_record_entry *record = slot.content;

	if (pf_unlikely(!record))
		return false;
	trace_fill_common(&record->common, FUNCTION_RECORD_ENTRY);
	record->func = function;
	record->depth = depth;
	trace_commit(slot);
	return true;
}

static bool enter_graph(u8 flags, u64 function, struct profile_function_call *call,
			struct profile_function_thread *thread)
{
	struct profile_function_graph around = thread->graph;
	u32 depth_limit = pf_read_once(function_graph_depth);
	u8 within;

	if (pf_unlikely(around.session != pf_read_once(session)))
		around = (struct profile_function_graph){ pf_read_once(session), 0, 0 };
	within = around.within | (flags & (FUNCTION_ROOT | FUNCTION_SKIPPED));
	if (!(within & FUNCTION_ROOT) || (around.within & FUNCTION_SKIPPED) ||
	    (depth_limit && around.depth >= depth_limit))
		return false;
	call->around = around;
	if (!(within & FUNCTION_SKIPPED)) {
		call->around.within |= RECORDED;
		around.depth++;
	}
	/* Before the record: an interrupt behind that is in the call. */
	around.within = within;
	thread->graph = around;
	/* The end of a skipped call is told, too, for there the skipping ends. */
	if (!(within & FUNCTION_SKIPPED) &&
	    pf_unlikely(!record_entry(function, call->around.depth))) {
		call->around.within &= ~RECORDED;
		thread->graph = call->around;
		call->around.session = 0;
		return false;
	}
	call->entered = os_cycles();
	return true;
}

bool function_trace_enter(u64 function, u64 return_address, struct profile_function_call *call,
			  struct profile_function_thread *thread)
{
	u8 flags = function_flags_of(function);

	if (flags & FUNCTION_CALLS)
		function_record_call(function, return_address);
	if (!(flags & FUNCTION_GRAPH) || pf_unlikely(!pf_read_once(session)))
		return false;
	if (pf_likely(call))
		return enter_graph(flags, function, call, thread);
	if (thread)
		thread->nr_overrun++;
	return false;
}

static pf_always_inline void record_exit(const struct profile_function_call *call,
					 const struct profile_function_thread *thread, u64 left)
{
	struct trace_slot slot = trace_reserve(sizeof(struct function_record_exit));
	struct function_record_exit *record = slot.content;

	if (pf_unlikely(!record))
		return;
	trace_fill_common(&record->common, FUNCTION_RECORD_EXIT);
	record->func = (u64)function_graph_exit >> 32 << 32 | call->function;
	record->depth = call->around.depth;
	record->overrun = thread->nr_overrun;
	record->calltime = to_ns(call->entered);
	record->rettime = to_ns(left);
	trace_commit(slot);
}

void function_graph_exit(const struct profile_function_call *call,
			 struct profile_function_thread *thread)
{
	struct profile_function_graph around = call->around;
	u64 left = os_cycles();

	if (pf_unlikely(around.session != pf_read_once(session)))
		return;
	if (around.within & RECORDED)
		record_exit(call, thread, left);
	/* Behind the record: an interrupt before that was in the call. */
	around.within &= ~RECORDED;
	thread->graph = around;
}
