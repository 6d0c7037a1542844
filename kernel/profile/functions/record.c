// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the records of the tracers into the rings of trace/. The tracer `function` has one record
 * for each call, `function_graph` one for each call and one for each return. Each thread has a word
 * for its position in the graph. A call saves that word, and its return restores it; so interrupts
 * leave it as it was.
 *
 * There are two ways to a record. The general hook calls function_trace_enter(), which handles all
 * cases. The tracers' own hooks write in the usual case, inline and with few registers: 59
 * instructions a call, and 182 a call with its return in the graph (`make bench`).
 *
 * If the ring has no room for the record of a call, there is no record of its return either.
 */

#include "tracers.h"

#include "../os.h"

/*
 * The position of a thread in the graph. Bits 16 to 31: the session, a number of the graph. Bits 8
 * to 15: the depth, the number of enclosing calls. Bits 0 to 7: FUNCTION_ROOT and FUNCTION_SKIPPED
 * of the enclosing functions. A call has the position before it, with GRAPH_RECORDED if there is a
 * record of the call.
 */
#define GRAPH(session)	    ((u32)(session) << 16)
#define GRAPH_SESSION(word) ((word) >> 16)
#define GRAPH_DEPTH(word)   ((u8)((word) >> 8))
#define GRAPH_DEEPER	    0x100
#define GRAPH_DEPTHS	    0xff00
#define GRAPH_RECORDED	    0x80

#define NS_SHIFT 60

u32 function_graph_depth;
u64 function_graph_threshold_cycles;

static u16 session;	 /* 0: none */
static u16 last_session; /* the next graph gets another number */
static u64 ns_per_cycle; /* << NS_SHIFT */

/*
 * A call simply gets its two records if its thread's position and its function's flags, or-ed and
 * without the depth, are this word: in this session, below a root or one itself, nothing skipped.
 * While no graph is on, the word has a depth, so nothing equals it.
 */
static u32 graph_plain = GRAPH_DEPTHS;

void function_graph_switch(bool on)
{
	ns_per_cycle = os_mul_div_u64(PF_BIT(NS_SHIFT), 1000000000, os_cycles_per_second());
	if (on && !++last_session)
		last_session = 1;
	pf_write_once(session, on ? last_session : 0);
	pf_write_once(graph_plain,
		      on ? GRAPH(last_session) | FUNCTION_GRAPH | FUNCTION_ROOT : GRAPH_DEPTHS);
}

/* Returns whether the depth has reached the limit. A limit of 0 becomes the highest number. */
static pf_always_inline bool is_too_deep(u32 around)
{
	return GRAPH_DEPTH(around) > pf_read_once(function_graph_depth) - 1;
}

static pf_always_inline u64 to_ns(u64 cycles)
{
	return (unsigned __int128)cycles * ns_per_cycle >> NS_SHIFT;
}

/* The same as trace_commit_nested(), for callers that keep values in registers. */
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

/* Returns the time of the record, or 0 if there was no room for it. */
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
	/* Its end is reported, too, because the skipping ends there. */
	if (inside & FUNCTION_SKIPPED) {
		thread->graph = inside;
		return true;
	}
	/* With a threshold, the return alone tells of the call. */
	if (pf_unlikely(function_graph_threshold_cycles)) {
		call->around |= GRAPH_RECORDED;
		thread->graph = inside + GRAPH_DEEPER;
		call->entered = os_cycles();
		return true;
	}
	call->around |= GRAPH_RECORDED;
	/* Before the record: an interrupt after the record is inside the call. */
	thread->graph = inside + GRAPH_DEEPER;
	call->entered = record_entry(function, GRAPH_DEPTH(around));
	if (pf_likely(call->entered))
		return true;
	thread->graph = around;
	call->around = 0;
	return false;
}

static bool is_long_enough(const struct profile_function_call *call)
{
	u64 threshold = pf_read_once(function_graph_threshold_cycles);

	return !threshold || os_cycles() - call->entered >= threshold;
}

bool function_trace_enter(u64 function, u64 return_address, struct profile_function_call *call,
			  struct profile_function_thread *thread)
{
	u8 flags = function_flags_of(function);

	if (pf_unlikely(function_selects_pids) &&
	    !trace_pids_have(&function_pids, os_current_tid()))
		return false;
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
	if (around & GRAPH_RECORDED && is_long_enough(call)) {
		slot = trace_reserve(sizeof(struct function_record_exit));
		if (pf_likely(slot.content)) {
			fill_exit(slot.content, call, thread, slot.cycles);
			trace_commit(slot);
		}
	}
	/* After the record: an interrupt before the record was inside the call. */
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

/*
 * Ends a call that was not counted itself. Counting may have been switched on meanwhile, so the
 * time of counted callees passes to the enclosing call.
 */
static pf_always_inline void leave(const struct profile_function_call *call,
				   struct profile_function_thread *thread)
{
	os_function_parent(call)->callees += call->callees;
	os_function_pop(thread);
}

static pf_noinline void exit_slow(const struct profile_function_call *call,
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
		exit_slow(call, thread);
		return;
	}
	fill_exit(slot.content, call, thread, slot.cycles);
	commit(slot);
	thread->graph = call->around & ~GRAPH_RECORDED;
	leave(call, thread);
}
