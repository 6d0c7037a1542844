// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds which of the program's functions the rows of the critical path come from: who calls a
 * system call, a sleep, or a function of a library. Events have no call chains, but samples and
 * waits do. The chains of threads of a row's name, in the row's call or function, are added up by
 * the innermost function that no library has. They are of the whole run, on the path or not.
 */

#include "path.h"

#include "../os_stacks.h"
#include "../rows.h"
#include "../trace/tasks.h"
#include "../user_symbols.h"

#define MAX_CALLERS 2048

/* Where a row or a chain is. */
enum place {
	PLACE_NONE,
	PLACE_ASLEEP, /* in a call */
	PLACE_CALL,
	PLACE_CODE,
};

struct caller_key {
	u64 place;
	u64 what[2]; /* the call, or the function */
	u64 task[2];
	u64 function[2]; /* the caller: its file and start; 0: only libraries are known */
};

#define PLACE_BYTES __builtin_offsetof(struct caller_key, function)

struct caller {
	struct caller_key key;
	u64 weight;
	u64 pc; /* an address in the function */
	u32 map;
};

static struct caller *callers; /* of the one reader */
static u16 *slots;
static u32 nr_callers, pid_of_report;

static struct rows table(void)
{
	return (struct rows){
		.rows = callers,
		.slots = slots,
		.nr = &nr_callers,
		.row_bytes = sizeof(struct caller),
		.key_words = sizeof(struct caller_key) / sizeof(u64),
		.max = MAX_CALLERS,
	};
}

static void set_function(u64 function[2], const struct user_symbol *symbol)
{
	function[0] = symbol->image;
	function[1] = symbol->is_known ? symbol->start : 0;
}

static bool is_own(const struct user_symbol *symbol)
{
	return symbol->image && !symbol->in_library;
}

/* Copies a name without what may be behind its end. */
static void set_task(u64 task[2], const u64 *comm)
{
	os_strscpy((char *)task, (const char *)comm, TRACE_COMM_BYTES);
}

static void add_chain(const struct report_chain *chain)
{
	const struct rows rows = table();
	struct caller_key key = { .place = chain->asleep ? PLACE_ASLEEP : PLACE_CALL,
				  .what = { chain->call } };
	struct user_symbol symbol;
	struct caller *caller;
	u64 pc = 0;

	if (!chain->nr_user || !chain->weight || (pid_of_report && chain->pid != pid_of_report))
		return;
	for (u32 i = 0; i < chain->nr_user && !key.function[0]; i++) {
		pc = chain->user[i] - (i != 0); /* the call, not where it returns to */
		user_symbol_of_code(chain->code_map, pc, &symbol);
		if (!i && chain->call == OS_NO_SYSCALL) {
			if (is_own(&symbol))
				return;
			key.place = PLACE_CODE;
			set_function(key.what, &symbol);
		}
		if (is_own(&symbol))
			set_function(key.function, &symbol);
	}
	set_task(key.task, chain->comm);
	caller = rows_find(&rows, &key);
	if (!caller)
		return;
	caller->weight += chain->weight;
	caller->pc = pc;
	caller->map = chain->code_map;
}

/* Returns the key of a row's place, without a caller. */
static struct caller_key place_of(const struct path_row *row)
{
	const struct path_segment *segment = &row->example;
	struct caller_key key = { .what = { segment->call } };

	memcpy(key.task, row->key.task, sizeof(key.task));
	if (segment->cause == PATH_IN_IRQ || segment->cause == PATH_IN_KERNEL)
		return key; /* they are nobody's calls */
	if (segment->pc) {
		key.place = PLACE_CODE;
		memcpy(key.what, segment->function, sizeof(key.what));
	} else if (segment->call != PATH_NO_CALL) {
		key.place = segment->cpu == PATH_NO_CPU ? PLACE_ASLEEP : PLACE_CALL;
	}
	return key;
}

static void find_caller(struct path_row *row)
{
	const struct caller_key key = place_of(row);
	const struct caller *best = NULL;
	u64 all = 0;

	for (u32 i = 0; key.place && i < nr_callers; i++) {
		const struct caller *caller = &callers[i];

		if (memcmp(&caller->key, &key, PLACE_BYTES))
			continue;
		all += caller->weight;
		if (caller->key.function[0] && (!best || caller->weight > best->weight))
			best = caller;
	}
	if (!best || !best->weight)
		return;
	row->caller_pc = best->pc;
	row->caller_map = best->map;
	row->caller_share = report_percent(best->weight, all);
}

void path_find_callers(u32 pid, struct path_row *rows, u32 nr)
{
	nr_callers = 0;
	pid_of_report = pid;
	callers = os_zalloc(MAX_CALLERS * sizeof(*callers));
	slots = os_zalloc(ROWS_SLOTS(MAX_CALLERS) * sizeof(*slots));
	if (callers && slots) {
		report_visit_chains(add_chain);
		for (u32 i = 0; i < nr; i++)
			find_caller(&rows[i]);
	}
	os_free(callers);
	os_free(slots);
}

void path_caller_name(const struct path_row *row, char name[PATH_CALLER_BYTES])
{
	size_t len;

	path_user_name(row->caller_map, row->caller_pc, name);
	len = strlen(name);
	if (row->caller_pc && row->caller_share < 9950)
		os_snprintf(name + len, PATH_CALLER_BYTES - len, " (%u %%)",
			    (row->caller_share + 50) / 100);
}
