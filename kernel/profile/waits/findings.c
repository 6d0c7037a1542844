// SPDX-License-Identifier: BSD-2-Clause
/*
 * Offers findings about waits: what one thread has waited for, as a part of the wall time. Waits of
 * several threads overlap, so their sum is no part of anything. The thread is the one that lived
 * longest. A thread that mostly waits for others to end says nothing, so such a thread is taken
 * only if there is no other.
 *
 * Each thread has the four longest sums of its waits, by what it waited for. A new one replaces the
 * smallest, so sums are lower bounds.
 */

#include "store.h"

#include "../findings.h"
#include "../process_lists.h"

static struct profile_longest ended; /* of processes that have ended; guarded by lists_lock */
static u64 ended_at_least;	     /* a thread with a shorter life is not better than `ended` */
static struct profile_longest in_report; /* of the one reader */

/* Returns the first sum, after moving there the one of these waits. */
pf_noinline struct profile_top_wait *waits_note_other(struct profile_task *pt, const char *name,
						      u64 addr)
{
	struct profile_thread_waits *waits = &pt->waits.longest;
	struct profile_top_wait *first = &waits->top[0], *to = first, found;

	if (waits->generation != pf_read_once(waits_generation))
		*waits = (struct profile_thread_waits){
			.generation = pf_read_once(waits_generation),
		};
	if (!first->nr) {
		first->name = name;
		first->addr = addr;
		return first;
	}
	for (u32 i = 0; i < PF_ARRAY_SIZE(waits->top); i++) {
		struct profile_top_wait *top = &waits->top[i];

		if (top->name == name && top->addr == addr) {
			to = top;
			break;
		}
		if (top->cycles < to->cycles)
			to = top;
	}
	found = *to;
	if (found.name != name || found.addr != addr)
		found = (struct profile_top_wait){ .name = name, .addr = addr };
	*to = *first;
	*first = found;
	return first;
}

/* Returns whether the thread spent most of its life waiting for others to end. */
static bool waits_for_ends(const struct profile_thread_waits *waits, u64 life_cycles)
{
	u64 cycles = 0;

	if (waits->cycles <= life_cycles / 2)
		return false;
	for (u32 i = 0; i < PF_ARRAY_SIZE(waits->top); i++) {
		if (waits->top[i].name && os_is_end_wait(waits->top[i].name))
			cycles += waits->top[i].cycles;
	}
	return cycles > life_cycles / 2;
}

/* Returns whether a thread with this life, and this number, is to be told of rather than b. */
static bool is_better(u64 life_cycles, bool waits_for_ends, u32 tid,
		      const struct profile_longest *b)
{
	if (!b->life_cycles || waits_for_ends != b->waits_for_ends)
		return life_cycles && (!b->life_cycles || b->waits_for_ends);
	return life_cycles != b->life_cycles ? life_cycles > b->life_cycles : tid < b->tid;
}

void waits_note_longest(struct profile_longest *longest, const struct profile_longest *other)
{
	if (is_better(other->life_cycles, other->waits_for_ends, other->tid, longest))
		*longest = *other;
}

void waits_note_thread(struct profile_longest *longest, const struct profile_task *pt,
		       u64 life_cycles, u64 off_cycles)
{
	u32 tid = os_task_tid(os_task_of(pt));
	bool has_waits, waits;

	if (life_cycles < longest->life_cycles && !longest->waits_for_ends)
		return; /* whatever it waited for */
	has_waits = pt->waits.longest.generation == pf_read_once(waits_generation);
	waits = has_waits && waits_for_ends(&pt->waits.longest, life_cycles);
	if (!is_better(life_cycles, waits, tid, longest))
		return;
	longest->life_cycles = life_cycles;
	longest->off_cycles = off_cycles;
	longest->tid = tid;
	longest->waits_for_ends = waits;
	longest->is_whole = pt->waits.created_cycles >= pf_read_once(waits_since_cycles) &&
			    !off_time_total_ns(&waits_off_time);
	os_task_comm(os_task_of(pt), longest->comm);
	longest->waits = has_waits ? pt->waits.longest : (struct profile_thread_waits){ 0 };
}

void waits_note_process(struct profile_process *pp)
{
	unsigned long flags;

	if (pp->waits.longest.life_cycles < pf_read_once(ended_at_least))
		return;
	flags = os_lock(&lists_lock);
	waits_note_longest(&ended, &pp->waits.longest);
	pf_write_once(ended_at_least, ended.waits_for_ends ? 0 : ended.life_cycles);
	os_unlock(&lists_lock, flags);
}

void waits_forget_longest(void)
{
	unsigned long flags = os_lock(&lists_lock);

	ended = (struct profile_longest){ 0 };
	pf_write_once(ended_at_least, 0);
	os_unlock(&lists_lock, flags);
}

#define NAME_BYTES 64 /* of a function, or of two */

/* Returns whether a text is a function's name, not `read < main` or file+0x1234. */
static bool is_one_name(const char *text)
{
	const char *at = text;

	while (*at && *at != ' ' && *at != '+')
		at++;
	return at > text && !*at;
}

/*
 * Copies the function that woke the threads of a row: for a lock of users, the user's function,
 * with its caller if that is in a library; else the kernel's, and the program's that called it.
 */
static void print_waker(char text[2 * NAME_BYTES], const struct wait_row *row)
{
	const struct wait_record *waker = row->most ? row->most->waker : NULL;
	char function[NAME_BYTES] = "";
	size_t len;

	text[0] = '\0';
	if (waker && waker->kind != WAKER_THREAD)
		waker = NULL;
	if (waker && row->addr)
		report_wait_user_functions(waker, text, NAME_BYTES);
	else if (waker)
		report_wait_own_function(waker, function, sizeof(function));
	if (!text[0])
		report_wait_function(row->waker, text, NAME_BYTES);
	len = strlen(text);
	if (function[0])
		os_snprintf(text + len, 2 * NAME_BYTES - len, "() called from %s()", function);
	else if (is_one_name(text))
		os_snprintf(text + len, 2 * NAME_BYTES - len, "()");
}

/* Copies the functions that woke the threads from this wait, the two with the longest times. */
static void print_wakers(char *text, size_t size, const struct wait_row *like)
{
	char names[2][2 * NAME_BYTES] = { "", "" };
	bool is_lock = false;
	u32 nr = 0;

	for (u32 i = 0; i < wait_view.nr_rows && nr < 2; i++) {
		const struct wait_row *row = &wait_view.rows[i];

		if (strcmp(row->name, like->name) || row->addr != like->addr || !row->waker)
			continue;
		print_waker(names[nr], row);
		is_lock = !row->addr && row->most &&
			  wait_by_lock(row->most, &(struct wait_row){ 0 });
		nr += !nr || strcmp(names[0], names[1]);
	}
	text[0] = '\0';
	if (nr)
		os_snprintf(text, size, ", %s by %s%s%s", is_lock ? "held" : "woken", names[0],
			    nr > 1 ? " and " : "", nr > 1 ? names[1] : "");
}

/*
 * Returns the record of such waits with the longest sum, of the threads with this name; NULL: none.
 * Those of a row can be of other threads.
 */
static const struct wait_record *longest_record(const struct finding_scope *scope,
						const struct wait_row *row, const u64 comm[2])
{
	os_process_t *proc = scope->report->proc;
	u64 process = proc ? stack_process_number(proc) : 0, most = 0;
	const struct wait_record *found = NULL;
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			u64 cycles;

			if (rec->kind != WAIT_SLEPT || !rec->name || strcmp(rec->name, row->name) ||
			    rec->addr != row->addr || memcmp(rec->comm, comm, sizeof(rec->comm)) ||
			    (process && rec->process != process))
				continue;
			cycles = waits_read(cpu, rec).asleep_cycles;
			if (cycles > most) {
				most = cycles;
				found = rec;
			}
		}
	}
	return found;
}

/*
 * Copies what the threads of a row do, with the program's function that does it: "waiting for
 * pipe->read_wait in main()". A lock that is named by who waits for it has that in its name.
 */
static void print_waiting(char *text, size_t size, const struct finding_scope *scope,
			  const struct wait_row *row, const u64 comm[2])
{
	const struct wait_record *rec = longest_record(scope, row, comm);
	char what[96], function[NAME_BYTES] = "", object[96];
	bool sleeps = !strcmp(row->name, "sleep");

	report_wait_name(row, scope->report->proc, what, sizeof(what));
	if (rec &&
	    (!row->addr || report_wait_object(rec->code_map, row->addr, object, sizeof(object))))
		report_wait_own_function(rec, function, sizeof(function));
	os_snprintf(text, size, "%s%s%s%s%s", sleeps ? "sleeping" : "waiting for ",
		    sleeps ? "" : what, function[0] ? " in " : "", function,
		    function[0] ? "()" : "");
}

/* Returns the row of the table with the longest sum of these waits, or NULL. */
static const struct wait_row *row_of(const struct profile_top_wait *top)
{
	for (u32 i = 0; i < wait_view.nr_rows; i++) {
		const struct wait_row *row = &wait_view.rows[i];

		if (!strcmp(row->name, top->name) && row->addr == top->addr)
			return row;
	}
	return NULL;
}

static void find_wait(const struct finding_scope *scope, const struct profile_longest *longest,
		      const struct profile_top_wait *top)
{
	const struct wait_row *row = top->name ? row_of(top) : NULL;
	u64 ns = os_cycles_to_ns(top->cycles);
	char waiting[96 + 2 * NAME_BYTES], wakers[4 * NAME_BYTES + 32], comm[17];
	char ready[40] = "", proof[32] = "waited";
	char count[FINDING_COUNT_BYTES], each[FINDING_COUNT_BYTES];

	if (!row)
		return;
	print_waiting(waiting, sizeof(waiting), scope, row, longest->comm);
	print_wakers(wakers, sizeof(wakers), row);
	report_wait_comm(comm, longest->comm);
	if (top->ready_cycles > top->cycles / 2)
		os_snprintf(ready, sizeof(ready), ", %u %% of it for a CPU",
			    report_percent(top->ready_cycles, top->cycles) / 100);
	if (row < wait_view.rows + scope->report->top)
		os_snprintf(proof, sizeof(proof), "Kernel Waits: row %u",
			    (u32)(row - wait_view.rows) + 1);
	(os_is_end_wait(top->name) ? finding_of_last_resort : finding_of_wall_time)(
		scope, ns, "%s%s: %s times, %s each%s (thread %u, %s) [%s]", waiting, wakers,
		finding_count(count, top->nr), finding_each(each, ns, top->nr), ready, longest->tid,
		comm, proof);
}

/* Offers the time that the thread was preempted: all of its time off a CPU but its sleeps. */
static void find_preemption(const struct finding_scope *scope,
			    const struct profile_longest *longest)
{
	u64 cycles = longest->off_cycles - pf_min(longest->off_cycles, longest->waits.cycles);
	char comm[17];

	report_wait_comm(comm, longest->comm);
	if (longest->is_whole)
		finding_of_wall_time(scope, os_cycles_to_ns(cycles),
				     "waiting for a CPU, preempted (thread %u, %s) [waited]",
				     longest->tid, comm);
}

void waits_find(const struct finding_scope *scope)
{
	unsigned long flags;

	if (scope->report->proc) {
		in_report = os_process_profile(scope->report->proc)->waits.longest;
	} else {
		flags = os_lock(&lists_lock);
		in_report = ended;
		os_unlock(&lists_lock, flags);
		waits_visit_longest(&in_report);
	}
	for (u32 i = 0; i < PF_ARRAY_SIZE(in_report.waits.top); i++)
		find_wait(scope, &in_report, &in_report.waits.top[i]);
	find_preemption(scope, &in_report);
}
