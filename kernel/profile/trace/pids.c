// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sets of threads to be traced. A thread that ends stays in its sets until its number is used
 * again, so that its last events, after its exit, are recorded as well.
 */

#include "pids.h"

#include "../words.h"

#define WORD_BYTES 16

struct trace_pids trace_event_pids = {
	.path = "set_event_pid",
	.fork_option = { .name = "event-fork" },
	.when_empty = "",
	.select = trace_select_pids,
};

static struct poll_lock lock; /* guards all sets, but readers of bits do not take it */
static struct trace_pids *sets;

static void set_bit(struct trace_pids *pids, u32 tid, bool on)
{
	if (on)
		__atomic_fetch_or(&pids->bits[tid / 64], PF_BIT(tid % 64), __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&pids->bits[tid / 64], ~PF_BIT(tid % 64), __ATOMIC_RELAXED);
}

void trace_pids_fork(os_task_t *task)
{
	u32 tid = os_task_tid(task);

	for (struct trace_pids *pids = pf_read_once(sets); pids; pids = pids->next) {
		/* Pairs with the release in add_words(): the bits are there. */
		if (pf_load_acquire(&pids->selects) && tid < OS_MAX_TID)
			set_bit(pids, tid,
				pids->follows_forks && trace_pids_have(pids, os_current_tid()));
	}
}

static int add_one(struct trace_pids *pids, u32 tid)
{
	int error;

	set_bit(pids, tid, true);
	if (pids->selects)
		return 0;
	pf_store_release(&pids->selects, true);
	error = pids->select(true);
	if (error)
		pids->selects = false;
	return error;
}

/* Adds the numbers of a list. After an error, those before it are in the set, as on Linux. */
static int add_words(struct trace_pids *pids, const char *words)
{
	char word[WORD_BYTES];
	int error;
	u64 tid;

	if (!pids->bits)
		pids->bits = os_zalloc(OS_MAX_TID / 8);
	if (!pids->bits)
		return -OS_ENOMEM;
	while ((error = words_next(&words, word, sizeof(word))) > 0) {
		if (os_parse_u64(word, &tid) || !tid || tid >= OS_MAX_TID)
			return -OS_EINVAL;
		error = add_one(pids, tid);
		if (error)
			return error;
	}
	return error;
}

static int write_pids(const char *text, const void *pids)
{
	int error;

	poll_lock(&lock);
	error = add_words((struct trace_pids *)pids, text);
	poll_unlock(&lock);
	return error;
}

static int truncate_pids(const void *arg)
{
	struct trace_pids *pids = (struct trace_pids *)arg;
	int error = 0;

	poll_lock(&lock);
	if (pids->selects)
		error = pids->select(false);
	if (!error && pids->selects) {
		pids->selects = false;
		memset(pids->bits, 0, OS_MAX_TID / 8);
	}
	poll_unlock(&lock);
	return error;
}

static int show_pids(os_text_t *text, const void *arg)
{
	const struct trace_pids *pids = arg;

	poll_lock(&lock);
	if (!pids->selects)
		os_text_printf(text, "%s", pids->when_empty);
	for (u32 tid = 1; pids->selects && tid < OS_MAX_TID; tid++) {
		if (trace_pids_have(pids, tid))
			os_text_printf(text, "%u\n", tid);
	}
	poll_unlock(&lock);
	return 0;
}

void trace_pids_init(struct trace_pids *pids)
{
	trace_add_file((os_trace_file_t){ pids->path, "<number of a thread> ...", .show = show_pids,
					  .write = write_pids, .truncate = truncate_pids,
					  .arg = pids });
	pids->fork_option.flag = &pids->follows_forks;
	trace_add_option(&pids->fork_option);
	pids->next = sets;
	pf_store_release(&sets, pids);
}
