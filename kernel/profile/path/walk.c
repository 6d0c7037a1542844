// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks from the end of the run to its begin, along one chain of threads. While the chain's thread
 * runs, its CPU's records say what it does. Before it ran, it was ready; before that, it slept, and
 * the walk goes on in the thread that has woken it, at that moment. If an interrupt has woken it,
 * the sleep itself is a segment, and the walk goes on in the same thread.
 *
 * A thread that is ready waits for a CPU as it would for a lock: what other threads do on that CPU
 * fills the time. Each step goes to an earlier record, so the walk ends whatever the rings hold.
 */

#include "path.h"

struct walk {
	const struct path_scope *scope;
	const struct path_names *names;
	void (*visit)(const struct path_segment *segment);
	u64 at_ns;			       /* all from here to the end is covered */
	u64 floor_ns;			       /* segments begin here or later */
	const struct path_record *next_sample; /* the last one that was passed */
	/*
	 * Not visited yet, as they may become longer; or to_ns is 0. irq is a timer interrupt
	 * before last. It becomes a part of last if the segment before it is like last.
	 */
	struct path_segment last, irq;
};

static void visit(struct walk *w, struct path_segment *segment)
{
	if (segment->to_ns)
		w->visit(segment);
	segment->to_ns = 0;
}

static void flush(struct walk *w)
{
	visit(w, &w->last);
	visit(w, &w->irq);
}

static bool is_same(const struct path_segment *a, const struct path_segment *b)
{
	return a->cause == b->cause && a->cpu == b->cpu && a->tid == b->tid &&
	       a->waiter == b->waiter && a->call == b->call && a->irq == b->irq &&
	       a->function[0] == b->function[0] && a->function[1] == b->function[1] &&
	       a->holder == b->holder;
}

/* Returns whether a segment is a timer interrupt of the thread in the one after it. */
static bool is_tick(const struct path_segment *after, const struct path_segment *segment)
{
	return segment->cause == PATH_IN_IRQ && segment->irq == PATH_TIMER &&
	       after->cause != PATH_IN_IRQ && after->cpu == segment->cpu &&
	       after->tid == segment->tid && after->waiter == segment->waiter;
}

/* Adds a segment that ends where the walk is. It begins no later, and not before the floor. */
static void emit_segment(struct walk *w, u64 from_ns, struct path_segment segment)
{
	from_ns = pf_min(pf_max(from_ns, w->floor_ns), w->at_ns);
	if (from_ns == w->at_ns)
		return;
	segment.from_ns = from_ns;
	segment.to_ns = w->at_ns;
	if (segment.pc)
		w->names->set_function(&segment);
	w->at_ns = from_ns;
	if (w->irq.to_ns && is_same(&w->irq, &segment)) {
		w->irq.from_ns = from_ns;
	} else if (w->last.to_ns && is_same(&w->last, &segment)) {
		w->last.irq_ns += w->irq.to_ns ? w->irq.to_ns - w->irq.from_ns : 0;
		w->last.from_ns = from_ns;
		w->irq.to_ns = 0;
	} else if (w->last.to_ns && !w->irq.to_ns && is_tick(&w->last, &segment)) {
		w->irq = segment;
	} else {
		flush(w);
		w->last = segment;
	}
}

static bool is_done(const struct walk *w)
{
	return w->at_ns <= w->scope->begin_ns;
}

static const struct path_record *record_or_null(u32 number)
{
	return number ? path_record(number) : NULL;
}

static void set_place(struct path_segment *segment, const struct path_record *where)
{
	segment->pc = where ? where->pc : 0;
	segment->map = where ? where->map : 0;
	if (where && where->kind == PATH_SAMPLE)
		segment->cause = where->in_user ? PATH_IN_USER : PATH_IN_KERNEL;
}

/*
 * Adds user code from a record on. It is in the function of the nearest sample of the thread,
 * before or after it. That may be in the kernel, after a call or a fault.
 */
static void emit_user(struct walk *w, const struct path_record *record, struct path_segment segment)
{
	const struct path_record *before = record_or_null(record->sample), *after = w->next_sample;
	u64 middle;

	if (after && after->tid != record->tid)
		after = NULL;
	if (before && after) {
		middle = os_cycles_to_ns(before->cycles + (after->cycles - before->cycles) / 2);
		set_place(&segment, after);
		emit_segment(w, pf_max(middle, os_cycles_to_ns(record->cycles)), segment);
		after = NULL;
	}
	set_place(&segment, before ?: after);
	emit_segment(w, os_cycles_to_ns(record->cycles), segment);
}

/* Adds what a thread does from a record on. */
static void emit_running(struct walk *w, const struct path_record *record, u32 waiter)
{
	u64 from_ns = os_cycles_to_ns(record->cycles);
	struct path_segment segment = {
		.cpu = record->cpu,
		.tid = record->tid,
		.waiter = waiter,
		.call = PATH_NO_CALL,
	};

	if (record->irq && !(record->irq == PATH_TIMER && w->scope->joins_ticks)) {
		segment.cause = PATH_IN_IRQ;
		segment.irq = record->irq;
	} else if (record->fault) {
		segment.cause = PATH_IN_FAULT;
		set_place(&segment, path_record(record->fault));
		if (!segment.pc)
			segment.call = record->call;
	} else if (record->call != PATH_NO_CALL) {
		segment.cause = PATH_IN_CALL;
		segment.call = record->call;
	} else if (record->exits) {
		segment.cause = PATH_IN_EXIT;
	} else if (!w->names->pid_of(record->tid)) {
		segment.cause = PATH_IN_KERNEL_THREAD;
	} else if (record->starts) {
		segment.cause = PATH_IN_START;
	} else {
		segment.cause = PATH_IN_USER;
		emit_user(w, record, segment);
		return;
	}
	emit_segment(w, from_ns, segment);
}

/* Adds what a CPU does from a record on, while a thread is ready to run on it. */
static void emit_ready(struct walk *w, const struct path_record *record, u32 waiter)
{
	const struct path_segment segment = {
		.cause = PATH_FOR_A_CPU,
		.cpu = record->cpu,
		.tid = waiter,
		.call = PATH_NO_CALL,
		.holder = record->tid,
	};

	if (record->tid && (!w->scope->pid || w->names->pid_of(record->tid) == w->scope->pid))
		emit_running(w, record, waiter);
	else
		emit_segment(w, os_cycles_to_ns(record->cycles), segment);
}

/* Notes the sample that a record is, before the walk goes on to earlier ones. */
static void pass(struct walk *w, const struct path_record *record)
{
	if (record->kind == PATH_SAMPLE && record_or_null(record->sample) == record)
		w->next_sample = record;
}

/* Covers the time from from_ns on, in which a thread was ready. `number` is the CPU's record. */
static void cover_ready(struct walk *w, u32 number, u32 tid, u64 from_ns)
{
	const struct path_segment unknown = {
		.cause = PATH_FOR_A_CPU,
		.cpu = PATH_NO_CPU,
		.tid = tid,
		.call = PATH_NO_CALL,
	};

	w->floor_ns = pf_max(from_ns, w->scope->begin_ns);
	while (number && w->at_ns > w->floor_ns) {
		const struct path_record *record = path_record(number);

		emit_ready(w, record, tid);
		if (os_cycles_to_ns(record->cycles) >= w->floor_ns)
			pass(w, record);
		number = record->before;
	}
	emit_segment(w, w->floor_ns, unknown);
	w->floor_ns = w->scope->begin_ns;
}

/* Adds the sleep of a thread that left its CPU at `out`. */
static void emit_asleep(struct walk *w, const struct path_record *out, u32 tid,
			enum path_cause cause)
{
	const struct path_record *record = record_or_null(out->before);
	bool known = record && record->tid == tid;

	emit_segment(w, os_cycles_to_ns(out->cycles),
		     (struct path_segment){
			     .cause = cause,
			     .cpu = PATH_NO_CPU,
			     .tid = tid,
			     .call = known ? record->call : PATH_NO_CALL,
		     });
}

static enum path_cause cause_of_wake(const struct path_record *wake)
{
	if (wake->irq == PATH_DEVICE)
		return PATH_UNTIL_DEVICE;
	/* Some ticks are not recorded; no other interrupt wakes threads. */
	return wake->in_irq ? PATH_UNTIL_TIMER : PATH_UNKNOWN;
}

/*
 * Goes on before a thread was switched in. Returns the record where the walk goes on, which is of a
 * running thread, or 0: it is not known.
 */
static u32 before_switch(struct walk *w, const struct path_record *in)
{
	const struct path_record *out = record_or_null(in->out);
	const struct path_record *wake = record_or_null(in->wake);
	bool by_thread = wake && !wake->irq && !wake->in_irq && wake->tid;

	if (wake)
		cover_ready(w, in->before, in->tid, os_cycles_to_ns(wake->cycles));
	if (by_thread)
		return in->wake;
	if (!out)
		return 0;
	if (wake)
		emit_asleep(w, out, in->tid, cause_of_wake(wake));
	else if (out->asleep)
		emit_asleep(w, out, in->tid, PATH_UNKNOWN);
	else
		cover_ready(w, in->before, in->tid, os_cycles_to_ns(out->cycles));
	return out->before;
}

/* Returns the last record of a CPU that is not after the end of the scope, or 0. */
static u32 record_at_end(const struct path_scope *scope)
{
	u32 number = path_last_record(scope->cpu);

	while (number && os_cycles_to_ns(path_record(number)->cycles) > scope->end_ns)
		number = path_record(number)->before;
	return number;
}

/* Covers the rest. Without a record before, a thread's context is not known either. */
static void finish(struct walk *w)
{
	enum path_cause cause = path_known_cycles() ? PATH_NOT_RECORDED : PATH_UNKNOWN;

	emit_segment(
		w, 0,
		(struct path_segment){ .cause = cause, .cpu = PATH_NO_CPU, .call = PATH_NO_CALL });
	flush(w);
}

void path_visit(const struct path_scope *scope, const struct path_names *names,
		void (*visit)(const struct path_segment *segment))
{
	struct walk w = {
		.scope = scope,
		.names = names,
		.visit = visit,
		.at_ns = scope->end_ns,
		.floor_ns = scope->begin_ns,
	};
	u32 number = record_at_end(scope);

	while (number && !is_done(&w)) {
		const struct path_record *record = path_record(number);

		emit_running(&w, record, 0);
		pass(&w, record);
		number = record->kind == PATH_SWITCH ? before_switch(&w, record) : record->before;
	}
	finish(&w);
}
