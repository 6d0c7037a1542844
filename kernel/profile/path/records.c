// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes records of the events, in order. Each record says what its CPU does from then on, so the
 * walk needs no other state: it follows the records of one CPU backwards, and jumps to another CPU
 * where a thread was woken or has left its CPU. Takes 56 bytes an event, and 128 KiB for the
 * contexts of threads.
 */

#include "path.h"

#define CHUNK_RECORDS 1024
#define MAX_CHUNKS    1024
#define NR_THREADS    4096

/* The context of a thread. It belongs to the latest thread with these low bits of its number. */
struct path_thread {
	u32 tid;
	u32 sample, fault, wake, out;
	u16 call;
	bool starts, exits;
};

static struct path_record *chunks[MAX_CHUNKS];
static struct path_thread *threads;
static u32 nr_records;
static OS_DEFINE_PER_CPU(u32, last_of_cpu);
static OS_DEFINE_PER_CPU(u8, irq_of_cpu);
static u64 known_cycles;

static void forget_threads(void)
{
	memset(threads, 0, NR_THREADS * sizeof(*threads));
	threads[0].call = PATH_NO_CALL; /* only this entry is a thread's, 0 */
}

static void forget_all(void)
{
	u32 cpu;

	nr_records = 0;
	os_for_each_cpu(cpu) {
		os_per_cpu(last_of_cpu, cpu) = 0;
		os_per_cpu(irq_of_cpu, cpu) = 0;
	}
	if (threads)
		forget_threads();
}

void path_begin(void)
{
	known_cycles = 0;
	forget_all();
}

void path_forget(u64 cycles)
{
	known_cycles = cycles;
	forget_all();
}

void path_free(void)
{
	for (u32 i = 0; i < MAX_CHUNKS; i++) {
		os_free(chunks[i]);
		chunks[i] = NULL;
	}
	os_free(threads);
	threads = NULL;
	path_begin();
}

u64 path_known_cycles(void)
{
	return known_cycles;
}

u32 path_last_record(u32 cpu)
{
	return os_per_cpu(last_of_cpu, cpu);
}

static struct path_record *record_at(u32 index)
{
	return &chunks[index / CHUNK_RECORDS][index % CHUNK_RECORDS];
}

const struct path_record *path_record(u32 number)
{
	os_assert(number && number <= nr_records);
	return record_at(number - 1);
}

static bool is_known(u32 tid)
{
	return threads[tid % NR_THREADS].tid == tid;
}

static struct path_thread *thread_of(u32 tid)
{
	struct path_thread *thread = &threads[tid % NR_THREADS];

	if (!is_known(tid))
		*thread = (struct path_thread){ .tid = tid, .call = PATH_NO_CALL };
	return thread;
}

static struct path_record *new_record(void)
{
	u32 chunk = nr_records / CHUNK_RECORDS;

	if (!threads && (threads = os_alloc(NR_THREADS * sizeof(*threads))))
		forget_threads();
	if (!threads || chunk == MAX_CHUNKS)
		return NULL;
	if (!chunks[chunk])
		chunks[chunk] = os_alloc(CHUNK_RECORDS * sizeof(*chunks[chunk]));
	return chunks[chunk] ? record_at(nr_records) : NULL;
}

/*
 * Returns whether a sample says where a thread is between its calls and faults: in its program, or
 * in the kernel on the way there. The timer interrupt that takes the sample does not count.
 */
static bool is_outside(const struct path_thread *thread, const struct path_event *event)
{
	return event->other || (thread->call == PATH_NO_CALL && !thread->fault &&
				os_per_cpu(irq_of_cpu, event->cpu) != PATH_DEVICE);
}

/* Updates what is known of the threads. number is that of the event's record. */
static void change_threads(const struct path_event *event, u32 number)
{
	struct path_thread *thread = thread_of(event->tid);
	bool starts;

	switch (event->kind) {
	case PATH_SWITCH:
		thread->out = number;
		thread->wake = 0;
		break;
	case PATH_WAKE:
		/* The first program's thread begins in the kernel, without a fork or a call. */
		starts = !is_known(event->other) && !known_cycles;
		thread = thread_of(event->other);
		thread->wake = number;
		thread->starts |= starts;
		break;
	case PATH_FORK:
		*thread_of(event->other) =
			(struct path_thread){ event->other, .call = PATH_NO_CALL };
		break;
	case PATH_EXEC:
		thread->starts = false;
		break;
	case PATH_EXIT:
		thread->exits = true;
		break;
	case PATH_ENTER:
		thread->call = pf_min(event->value, (u64)PATH_NO_CALL);
		thread->starts = false;
		thread->fault = 0;
		break;
	case PATH_LEAVE:
		if (event->other)
			path_add_result(thread->call, event->value);
		thread->call = PATH_NO_CALL;
		break;
	case PATH_FAULT:
		thread->fault = number;
		break;
	case PATH_FAULT_END:
		if (thread->fault)
			record_at(thread->fault - 1)->map = event->map;
		thread->fault = 0;
		break;
	case PATH_TIMER:
	case PATH_DEVICE:
		os_per_cpu(irq_of_cpu, event->cpu) = event->kind;
		break;
	case PATH_IRQ_END:
		os_per_cpu(irq_of_cpu, event->cpu) = 0;
		break;
	case PATH_SAMPLE:
		if (is_outside(thread, event))
			thread->sample = number;
		thread->starts &= !event->other;
		break;
	}
}

bool path_add(const struct path_event *event)
{
	struct path_record *record;
	const struct path_thread *thread;

	record = new_record();
	if (!record)
		return false;
	if (event->kind == PATH_SAMPLE && !is_outside(thread_of(event->tid), event))
		return true;
	change_threads(event, ++nr_records);
	thread = thread_of(event->kind == PATH_SWITCH ? event->other : event->tid);
	*record = (struct path_record){
		.cycles = event->cycles,
		.pc = event->value,
		.tid = thread->tid,
		.before = os_per_cpu(last_of_cpu, event->cpu),
		.sample = thread->sample,
		.fault = thread->fault,
		.map = event->map,
		.call = thread->call,
		.cpu = event->cpu,
		.kind = event->kind,
		.irq = os_per_cpu(irq_of_cpu, event->cpu),
		.in_irq = event->in_irq,
		.in_user = event->other,
		.starts = thread->starts,
		.exits = thread->exits,
	};
	if (event->kind == PATH_SWITCH) {
		record->wake = thread->wake;
		record->out = thread->out;
		record->asleep = event->value;
	}
	os_per_cpu(last_of_cpu, event->cpu) = nr_records;
	return true;
}
