// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the graph with the columns of Linux's function_graph: the CPU, the duration, and the
 * calls, indented by depth. A call without callees takes one line. For other calls, the line of the
 * closing brace has the duration. Source: Documentation/trace/ftrace.rst of Linux 6.1, "function
 * graph tracer".
 */

#include "tracers.h"

#include "../trace/text.h"

#define NO_DURATION   "              |  "
#define TASK_COLUMNS  14
#define TASK_NAME_MAX 7
#define MAX_DEPTH     64

/* What has been printed of a CPU so far. */
struct state {
	u32 tid;
	bool has_tid;
	u32 depth;	     /* of the latest call: events are indented by it */
	u64 open[MAX_DEPTH]; /* functions whose opening brace was printed, by depth */
};
PF_BUILD_BUG_ON(sizeof(struct state) > TRACER_STATE_WORDS * sizeof(u64));

void function_graph_print_head(os_text_t *text)
{
	os_text_printf(text, "#\n# CPU  DURATION                  FUNCTION CALLS\n"
			     "# |     |   |                     |   |   |   |\n");
}

static void print_cpu(os_text_t *text, u32 cpu)
{
	char number[16];
	u32 last = 0, i, width;

	os_for_each_cpu(i)
		last = i;
	width = os_snprintf(number, sizeof(number), "%u", last);
	os_text_printf(text, " %*u) ", (int)width, cpu);
}

/* Prints a name and a number, centered in their column. */
static void print_task(os_text_t *text, u32 tid)
{
	char name[TRACE_COMM_BYTES], task[32];
	u32 len, spaces;

	trace_printable_task_name(tid, name);
	len = os_snprintf(task, sizeof(task), "%.*s-%u", TASK_NAME_MAX, name, tid);
	spaces = len < TASK_COLUMNS ? TASK_COLUMNS - len : 0;
	os_text_printf(text, "%*s%s%*s", (int)(spaces / 2), "", task, (int)(spaces - spaces / 2),
		       "");
}

static void print_switch(os_text_t *text, u32 cpu, struct state *state, u32 tid)
{
	if (state->has_tid && state->tid != tid) {
		os_text_printf(text, " ------------------------------------------\n");
		print_cpu(text, cpu);
		print_task(text, state->tid);
		os_text_printf(text, " => ");
		print_task(text, tid);
		os_text_printf(text, "\n ------------------------------------------\n\n");
	}
	state->tid = tid;
	state->has_tid = true;
}

/* Returns the mark of a duration: the limit that it exceeds. */
static char mark(u64 ns)
{
	static const char marks[] = { '+', '!', '#', '*', '@', '$' };
	u64 limit = 10000;
	char c = ' ';

	for (u32 i = 0; i < sizeof(marks) && ns > limit; i++, limit *= 10)
		c = marks[i];
	return c;
}

void function_us(char digits[FUNCTION_US_BYTES], u64 ns)
{
	u32 len = os_snprintf(digits, FUNCTION_US_BYTES, "%lu", ns / 1000);

	if (len < 7) {
		os_snprintf(digits + len, FUNCTION_US_BYTES - len, ".%03lu", ns % 1000);
		digits[len + 4 > 8 ? 8 : len + 4] = '\0';
	}
}

static void print_duration(os_text_t *text, u64 ns)
{
	char digits[FUNCTION_US_BYTES];

	function_us(digits, ns);
	os_text_printf(text, "%c %s us %*s|  ", mark(ns), digits,
		       (int)(strlen(digits) < 8 ? 8 - strlen(digits) : 0), "");
}

static void indent(os_text_t *text, u32 depth)
{
	os_text_printf(text, "%*s", (int)(2 * pf_min(depth, (u32)MAX_DEPTH)), "");
}

static const struct function_record_exit *as_exit(const struct ring_event *event)
{
	const struct function_record_exit *record = event ? (const void *)event->content : NULL;

	return record && event->bytes >= sizeof(*record) &&
			       record->common.type == FUNCTION_RECORD_EXIT ?
		       record :
		       NULL;
}

static void print_entry(os_text_t *text, struct state *state, struct tracer_line *line)
{
	const struct function_record_entry *entry = (const void *)line->event->content;
	const struct function_record_exit *exit = as_exit(line->next);

	state->depth = entry->depth;
	line->takes_next = exit && !line->next->lost && exit->common.pid == entry->common.pid &&
			   exit->func == entry->func;
	if (line->takes_next)
		print_duration(text, exit->rettime - exit->calltime);
	else
		os_text_printf(text, NO_DURATION);
	indent(text, entry->depth);
	trace_printf(text, line->takes_next ? "%ps();\n" : "%ps() {\n", entry->func);
	if (!line->takes_next && (u32)entry->depth < MAX_DEPTH)
		state->open[entry->depth] = entry->func;
}

static void print_exit(os_text_t *text, struct state *state,
		       const struct function_record_exit *exit)
{
	u32 depth = pf_min((u32)exit->depth, (u32)MAX_DEPTH - 1);

	state->depth = depth ? depth - 1 : 0;
	print_duration(text, exit->rettime - exit->calltime);
	indent(text, depth);
	if (state->open[depth] == exit->func)
		os_text_printf(text, "}\n");
	else
		trace_printf(text, "} /* %ps */\n", exit->func);
	state->open[depth] = 0;
}

bool function_graph_print_line(os_text_t *text, struct tracer_line *line)
{
	const struct profile_trace_event *common = line->event->content;
	const struct function_record_exit *exit = as_exit(line->event);
	struct state *state = (struct state *)line->state;

	if (line->event->lost)
		memset(state->open, 0, sizeof(state->open));
	print_switch(text, line->cpu, state, common->pid);
	print_cpu(text, line->cpu);
	if (exit) {
		print_exit(text, state, exit);
	} else if (common->type == FUNCTION_RECORD_ENTRY) {
		print_entry(text, state, line);
	} else {
		os_text_printf(text, NO_DURATION);
		if (state->depth)
			indent(text, state->depth + 1);
		os_text_printf(text, "/* ");
		trace_print_content(text, line->event);
		os_text_printf(text, " */\n");
	}
	return true;
}
