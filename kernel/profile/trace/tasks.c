// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps the names and processes of threads, ended ones included, for the readers of events. The
 * table is indexed by the low 12 bits of the thread's number. An entry belongs to the latest thread
 * with these bits, so names of threads that ended long ago are lost.
 *
 * As on Linux, the table does not change while tracing_on is 0: trace-cmd reads it twice then, and
 * wants the same size.
 */

#include "tasks.h"

#include "trace.h"

#define NR_ENTRIES 4096

struct entry {
	u32 tid; /* 0: free */
	u32 pid; /* 0: a kernel thread */
	char name[TRACE_COMM_BYTES];
};

static os_lock_t lock = OS_LOCK_INIT; /* guards the entries */
static struct entry *entries;	      /* NULL while the rings have no memory */

static pf_noinline void add_task(os_task_t *task)
{
	os_process_t *proc = os_task_process(task);
	u32 tid = os_task_tid(task);
	unsigned long flags;
	u64 comm[2];

	if (!tid || !trace_is_recording())
		return;
	os_task_comm(task, comm);
	flags = os_lock(&lock);
	if (entries) {
		entries[tid % NR_ENTRIES].tid = tid;
		entries[tid % NR_ENTRIES].pid = proc ? os_process_pid(proc) : 0;
		memcpy(entries[tid % NR_ENTRIES].name, comm, sizeof(comm));
	}
	os_unlock(&lock, flags);
}

/* Each new thread comes here, and there are rarely entries. */
void profile_trace_task(os_task_t *task)
{
	if (pf_read_once(entries))
		add_task(task);
}

static void set_entries(struct entry *table)
{
	unsigned long flags = os_lock(&lock);

	entries = table;
	os_unlock(&lock, flags);
}

void trace_tasks_add_all(void)
{
	if (entries)
		os_visit_tasks(profile_trace_task);
}

int trace_tasks_init(void)
{
	struct entry *table;

	if (entries)
		return 0;
	table = os_zalloc(NR_ENTRIES * sizeof(*table));
	if (!table)
		return -OS_ENOMEM;
	set_entries(table);
	trace_tasks_add_all();
	return 0;
}

void trace_tasks_free(void)
{
	struct entry *table = entries;

	set_entries(NULL);
	os_free(table);
}

static bool copy_entry(u32 index, struct entry *copy)
{
	unsigned long flags;
	bool locked;

	flags = snapshot_lock(&lock, &locked);
	*copy = entries ? entries[index] : (struct entry){ 0 };
	snapshot_unlock(&lock, locked, flags);
	copy->name[sizeof(copy->name) - 1] = '\0';
	return copy->tid;
}

void trace_task_name(u32 tid, char name[TRACE_COMM_BYTES])
{
	struct entry entry;

	if (!tid)
		os_strscpy(name, "<idle>", TRACE_COMM_BYTES);
	else if (copy_entry(tid % NR_ENTRIES, &entry) && entry.tid == tid)
		os_strscpy(name, entry.name, TRACE_COMM_BYTES);
	else
		os_strscpy(name, "<...>", TRACE_COMM_BYTES);
}

u32 trace_task_pid(u32 tid)
{
	struct entry entry;

	if (!tid)
		return 0;
	return copy_entry(tid % NR_ENTRIES, &entry) && entry.tid == tid ? entry.pid : ~0u;
}

void trace_visit_tasks(void (*fn)(os_text_t *text, u32 tid, u32 pid, const char *name),
		       os_text_t *text)
{
	struct entry entry;

	for (u32 i = 0; i < NR_ENTRIES; i++) {
		if (copy_entry(i, &entry))
			fn(text, entry.tid, entry.pid, entry.name);
	}
}
