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

#include "../os.h"

/*
 * How far a thread or a call is in the graph. From bit 16 on the session of the graph; from bit 8
 * on the depth, the number of calls around; below, FUNCTION_ROOT and FUNCTION_SKIPPED if a function
 * around is one, and of a call, whether a record was made of it.
 */
#define GRAPH(session)	    ((u32)(session) << 16)
#define GRAPH_SESSION(word) ((word) >> 16)
#define GRAPH_DEPTH(word)   ((u8)((word) >> 8))
#define GRAPH_DEEPER	    0x100
#define GRAPH_DEPTHS	    0xff00
#define GRAPH_RECORDED	    0x80

#define NS_SHIFT 60

u32 function_graph_depth;

static u16 session;	 /* 0: none */
static u16 last_session; /* a number that no other graph of late has had */
static u64 ns_per_cycle; /* << NS_SHIFT */

/*
 * What a thread's word and a function's flags are, together and without the depth, if the function
 * and its end are simply to be recorded: they are of this session, in the graph, and not skipped.
 * No word is 1.
 */
static u32 graph_plain = 1;

void function_graph_switch(bool on)
{
	ns_per_cycle = os_mul_div_u64(PF_BIT(NS_SHIFT), 1000000000, os_cycles_per_second());
	if (on && !++last_session)
		last_session = 1;
	pf_write_once(session, on ? last_session : 0);
	pf_write_once(graph_plain, on ? GRAPH(last_session) | FUNCTION_GRAPH | FUNCTION_ROOT : 1);
}

/* Whether a call with so many around it is not in the graph. A limit of 0 is none. */
static pf_always_inline bool is_too_deep(u32 around)
{
	return GRAPH_DEPTH(around) > pf_read_once(function_graph_depth) - 1;
}

static pf_always_inline u64 to_ns(u64 cycles)
{
	return (unsigned __int128)cycles * ns_per_cycle >> NS_SHIFT;
}

/* Publishes a record, and keeps all registers. */
static os_saves_registers pf_noinline void commit_nested(u64 end)
{
	trace_commit_nested(end);
}

static pf_always_inline void commit(struct trace_slot slot)
{
	if (!trace_commit_quickly(slot))
		os_call_1(commit_nested, slot.end);
}

static pf_always_inline void fill_call(struct function_record_call *record, u64 function,
				       u64 return_address)
{
	trace_fill_common(&record->common, FUNCTION_RECORD_CALL);
	record->ip = function;
	record->parent_ip = return_address;
}

static pf_always_inline void fill_entry(struct function_record_entry *record, u64 function,
					u32 depth)
{
	trace_fill_common(&record->common, FUNCTION_RECORD_ENTRY);
	record->func = function;
	record->depth = depth;
}

static pf_always_inline void fill_exit(struct function_record_exit *record,
				       const struct profile_function_call *call,
				       const struct profile_function_thread *thread, u64 left)
{
	trace_fill_common(&record->common, FUNCTION_RECORD_EXIT);
	record->func = call->function;
	record->depth = GRAPH_DEPTH(call->around);
	record->overrun = thread->nr_overrun;
	record->calltime = to_ns(call->entered);
	record->rettime = to_ns(left);
}

static void record_call(u64 function, u64 return_address)
{
	struct trace_slot slot = trace_reserve(sizeof(struct function_record_call));

	if (pf_unlikely(!slot.content))
		return;
	fill_call(slot.content, function, return_address);
	trace_commit(slot);
}

/* Returns the record's time; 0: there is none. */
static u64 record_entry(u64 function, u32 depth)
{
	struct trace_slot slot = trace_reserve(sizeof(struct function_record_entry));

	if (pf_unlikely(!slot.content))
		return 0;
	fill_entry(slot.content, function, depth);
	trace_commit(slot);
	return slot.cycles;
}

static bool enter_graph(u8 flags, u64 function, struct profile_function_call *call,
			struct profile_function_thread *thread)
{
	u32 around = thread->graph, inside;

	if (pf_unlikely(GRAPH_SESSION(around) != session))
		around = GRAPH(session);
	inside = around | (flags & (FUNCTION_ROOT | FUNCTION_SKIPPED));
	if (!(inside & FUNCTION_ROOT) || (around & FUNCTION_SKIPPED) || is_too_deep(around))
		return false;
	call->around = around;
	/* The end of a skipped call is told, too, for there the skipping ends. */
	if (inside & FUNCTION_SKIPPED) {
		thread->graph = inside;
		return true;
	}
	call->around |= GRAPH_RECORDED;
	/* Before the record: an interrupt behind that is in the call. */
	thread->graph = inside + GRAPH_DEEPER;
	call->entered = record_entry(function, GRAPH_DEPTH(around));
	if (pf_likely(call->entered))
		return true;
	thread->graph = around;
	call->around = 0;
	return false;
}

bool function_trace_enter(u64 function, u64 return_address, struct profile_function_call *call,
			  struct profile_function_thread *thread)
{
	u8 flags = function_flags_of(function);

	if (flags & FUNCTION_CALLS)
		record_call(function, return_address);
	if (!(flags & FUNCTION_GRAPH) || pf_unlikely(!session))
		return false;
	if (pf_likely(call))
		return enter_graph(flags, function, call, thread);
	if (thread)
		thread->nr_overrun++;
	return false;
}

void function_graph_exit(const struct profile_function_call *call,
			 struct profile_function_thread *thread)
{
	u32 around = call->around;
	struct trace_slot slot;

	if (pf_unlikely(GRAPH_SESSION(around) != session))
		return;
	if (around & GRAPH_RECORDED) {
		slot = trace_reserve(sizeof(struct function_record_exit));
		if (pf_likely(slot.content)) {
			fill_exit(slot.content, call, thread, slot.cycles);
			trace_commit(slot);
		}
	}
	/* Behind the record: an interrupt before that was in the call. */
	thread->graph = around & ~GRAPH_RECORDED;
}

os_function_hook void profile_function_record(void)
{
	struct trace_slot slot = { 0 };

	if (pf_likely(function_flags[os_function_hooked_index()] == FUNCTION_CALLS) &&
	    pf_likely(!os_function_in_nmi()))
		slot = trace_reserve_quickly(sizeof(struct function_record_call));
	if (pf_unlikely(!slot.content)) {
		os_function_enter();
		return;
	}
	fill_call(slot.content, os_function_hooked(), os_function_caller());
	commit(slot);
}

os_function_hook void profile_function_graph(void)
{
	struct profile_function_thread *thread = os_function_thread();
	struct profile_function_call *call;
	struct trace_slot slot;
	u32 around, inside;

	if (pf_unlikely(!thread))
		goto general;
	around = thread->graph;
	inside = around | function_flags[os_function_hooked_index()];
	if (pf_unlikely((inside & ~GRAPH_DEPTHS) != graph_plain) ||
	    pf_unlikely(is_too_deep(around)))
		goto general;
	call = os_function_push(thread);
	call->row = NULL;
	call->callees = 0;
	call->around = around | GRAPH_RECORDED;
	thread->graph = inside + GRAPH_DEEPER - FUNCTION_GRAPH;
	slot = trace_reserve_quickly(sizeof(struct function_record_entry));
	if (pf_unlikely(!slot.content))
		goto undo;
	call->entered = slot.cycles;
	call->function = os_function_hooked();
	fill_entry(slot.content, call->function, GRAPH_DEPTH(call->around));
	commit(slot);
	os_function_tell_end(call);
	return;
undo:
	thread->graph = call->around & ~GRAPH_RECORDED;
	os_function_pop(thread);
general:
	os_function_enter();
}

/* The rest of a call's end. What was not counted itself has called what may have been. */
static pf_always_inline void leave(const struct profile_function_call *call,
				   struct profile_function_thread *thread)
{
	os_function_parent(call)->callees += call->callees;
	os_function_pop(thread);
}

static pf_noinline void exit_slowly(const struct profile_function_call *call,
				    struct profile_function_thread *thread)
{
	function_graph_exit(call, thread);
	leave(call, thread);
}

void profile_function_graph_exit(u64 *at)
{
	struct profile_function_thread *thread = os_function_current();
	const struct profile_function_call *call = os_function_end(thread, at);
	struct trace_slot slot = { 0 };

	if (pf_likely(GRAPH_SESSION(call->around) == session))
		slot = trace_reserve_quickly(sizeof(struct function_record_exit));
	if (pf_unlikely(!slot.content)) {
		exit_slowly(call, thread);
		return;
	}
	fill_exit(slot.content, call, thread, slot.cycles);
	commit(slot);
	thread->graph = call->around & ~GRAPH_RECORDED;
	leave(call, thread);
}
