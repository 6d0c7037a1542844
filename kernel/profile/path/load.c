// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the rings of events into records. Merges the events of all CPUs by time, as show.c does.
 * Where events of a CPU are missing, all that is known before the next one is dropped, because a
 * wake-up could be among them. Writers are never stopped. Takes some 250 instructions an event.
 */

#include "path.h"

#include "../trace/tasks.h"
#include "../trace/trace.h"

/* The events that make records, and the fields that a record needs. */
struct source {
	const char *system, *name;
	enum path_kind kind;
	const char *other, *value, *map;
	/* Found at the first use. */
	u32 id;
	const struct trace_field *other_field, *value_field, *map_field;
};

static struct source sources[] = {
	{ "sched", "sched_switch", PATH_SWITCH, .other = "next_pid", .value = "prev_state" },
	{ "sched", "sched_wakeup", PATH_WAKE, .other = "pid" },
	{ "sched", "sched_process_fork", PATH_FORK, .other = "child_pid" },
	{ "sched", "sched_process_exec", PATH_EXEC },
	{ "sched", "sched_process_exit", PATH_EXIT },
	{ "raw_syscalls", "sys_enter", PATH_ENTER, .value = "id" },
	{ "raw_syscalls", "sys_exit", PATH_LEAVE, .value = "ret" },
	{ "exceptions", "page_fault_user", PATH_FAULT, .value = "ip" },
	{ "exceptions", "page_fault_kernel", PATH_FAULT },
	{ "profile", "page_fault_end", PATH_FAULT_END, .map = "code_map" },
	{ "irq_vectors", "local_timer_entry", PATH_TIMER },
	{ "irq_vectors", "local_timer_exit", PATH_IRQ_END },
	{ "irq", "irq_handler_entry", PATH_DEVICE },
	{ "irq", "irq_handler_exit", PATH_IRQ_END },
	{ "profile", "sample", PATH_SAMPLE, .other = "user", .value = "ip", .map = "code_map" },
};

#define FIRST_ID 100 /* of this kernel's events; those of tracers are lower */
#define MAX_IDS	 64

static struct source *source_of_id[MAX_IDS]; /* by ID - FIRST_ID; NULL: makes no record */

static const struct trace_field *find_field(const struct trace_event *event, const char *name)
{
	for (u32 i = 0; name && i < event->nr_fields; i++) {
		if (!strcmp(event->fields[i].name, name))
			return &event->fields[i];
	}
	os_assert(!name);
	return NULL;
}

static void find_event(struct source *source)
{
	const struct trace_event *event;

	trace_for_each_event(event) {
		if (strcmp(event->name, source->name) || strcmp(event->system, source->system) ||
		    event->id - FIRST_ID >= MAX_IDS)
			continue;
		source_of_id[event->id - FIRST_ID] = source;
		source->other_field = find_field(event, source->other);
		source->value_field = find_field(event, source->value);
		source->map_field = find_field(event, source->map);
	}
}

static void find_events(void)
{
	for (u32 i = 0; i < PF_ARRAY_SIZE(sources); i++)
		find_event(&sources[i]);
}

/* Returns a number in an event's record; 0: the event has no such field. */
static u64 read_field(const struct ring_event *event, const struct trace_field *field)
{
	const char *from = (const char *)event->content;
	u64 value = 0;

	if (field && field->offset + field->bytes <= event->bytes)
		memcpy(&value, from + field->offset, pf_min((u32)field->bytes, 8u));
	return value;
}

/* Returns event->other: the thread or, of a call that returns, whether the report is of it. */
static u64 other_of(const struct source *source, const struct ring_event *event, u32 tid, u32 pid)
{
	if (source->kind == PATH_LEAVE)
		return !pid || trace_task_pid(tid) == pid;
	return read_field(event, source->other_field);
}

/* Makes a record of an event, unless it is of no interest. Returns false without memory. */
static bool add_event(u32 cpu, const struct ring_event *event, u32 pid)
{
	const struct profile_trace_event *common = event->content;
	u32 index = common->type - FIRST_ID;
	const struct source *source = index < MAX_IDS ? source_of_id[index] : NULL;

	if (!source)
		return true;
	return path_add(&(struct path_event){
		.cycles = event->cycles,
		.cpu = cpu,
		.tid = common->pid,
		.kind = source->kind,
		.in_irq = common->flags & (PROFILE_TRACE_HARDIRQ | PROFILE_TRACE_NMI),
		.other = other_of(source, event, common->pid, pid),
		.value = read_field(event, source->value_field),
		.map = read_field(event, source->map_field),
	});
}

/* A CPU of the merge. */
struct cpu_events {
	struct ring_reader reader;
	struct ring_event event; /* the next one, if has_event */
	bool has_event;
};

/* Returns the CPU with the earliest event; nr: there is none. Stores when the next CPU's comes. */
static u32 earliest(const struct cpu_events *cpus, u32 nr, u64 *next_cycles)
{
	u64 first_cycles = ~0ull;
	u32 first = nr;

	*next_cycles = ~0ull;
	for (u32 cpu = 0; cpu < nr; cpu++) {
		u64 cycles = cpus[cpu].event.cycles;

		if (!cpus[cpu].has_event)
			continue;
		if (cycles < first_cycles) {
			*next_cycles = first_cycles;
			first_cycles = cycles;
			first = cpu;
		} else {
			*next_cycles = pf_min(*next_cycles, cycles);
		}
	}
	return first;
}

static bool merge(struct cpu_events *cpus, u32 nr, u32 pid)
{
	u64 next_cycles;
	u32 cpu;

	for (cpu = 0; cpu < nr; cpu++) {
		ring_reader_init(&cpus[cpu].reader, cpu);
		cpus[cpu].has_event = ring_read(&cpus[cpu].reader, &cpus[cpu].event);
	}
	while ((cpu = earliest(cpus, nr, &next_cycles)) < nr) {
		struct ring_event *event = &cpus[cpu].event;

		do {
			if (event->lost)
				path_forget(event->cycles);
			if (!add_event(cpu, event, pid))
				return false;
			cpus[cpu].has_event = ring_read(&cpus[cpu].reader, event);
		} while (cpus[cpu].has_event && event->cycles < next_cycles);
	}
	return true;
}

bool path_load(u32 pid)
{
	struct cpu_events *cpus;
	u32 cpu, nr = 0;
	bool complete = false;

	path_begin();
	path_begin_results();
	find_events();
	os_for_each_cpu(cpu)
		nr = cpu + 1;
	cpus = os_alloc(nr * sizeof(*cpus));
	if (cpus && trace_pin_rings()) {
		complete = merge(cpus, nr, pid);
		trace_unpin_rings();
	}
	os_free(cpus);
	return complete;
}
