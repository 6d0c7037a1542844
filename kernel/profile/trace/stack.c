// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call chains of events, as with Linux's options/stacktrace: a record `kernel_stack` behind each
 * event, with the same thread and flags. It has return addresses, the innermost first. The first
 * three are in the event's writer: perf lock skips as many to find the caller of a lock. An NMI may
 * write between an event and its chain, both of its own event; so a chain belongs to the latest
 * event of its CPU that has none yet.
 */

#include "text.h"

#ifdef CONFIG_PROFILE_CALLCHAIN

#define STACK_ID      4 /* Linux's, which tools know */
#define STACK_DEPTH   32
#define STACK_ENTRIES 8 /* in the text of the format, as in Linux's; a record has any number */

struct record_stack {
	struct profile_trace_event common;
	s32 size;
	u64 caller[];
} __attribute__((__may_alias__));

static void print(os_text_t *text, const void *content)
{
	const struct record_stack *record = content;

	os_text_printf(text, "<stack trace>");
	/* The byte before, as a call may be the last instruction of its function. */
	for (s32 i = 0; i < record->size; i++)
		trace_printf(text, "\n => %ps", record->caller[i] - 1);
}

static const struct trace_field fields[] = {
	{ .type = "int",
	  .name = "size",
	  .offset = __builtin_offsetof(struct record_stack, size),
	  .bytes = sizeof(s32),
	  .is_signed = true },
	{ .type = "unsigned long",
	  .name = "caller",
	  .offset = __builtin_offsetof(struct record_stack, caller),
	  .bytes = STACK_ENTRIES * sizeof(u64),
	  .nr = STACK_ENTRIES },
};

#define LINE(i) "(void *)REC->caller[" #i "]"

static struct trace_event stack_event TRACE_EVENTS_SECTION = {
	.system = "ftrace",
	.name = "kernel_stack",
	.id = STACK_ID,
	.bytes = sizeof(struct record_stack),
	.fields = fields,
	.nr_fields = PF_ARRAY_SIZE(fields),
	.print_format = "\"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n"
			"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\", " LINE(0) ", " LINE(1) ", " LINE(
				2) ", " LINE(3) ", " LINE(4) ", " LINE(5) ", " LINE(6) ", " LINE(7),
	.print = print,
};

static pf_noinline void record_stack(const struct profile_trace_event *of)
{
	u64 pcs[STACK_DEPTH], nr;
	struct record_stack *record;
	struct trace_slot slot;
	os_regs_t regs;

	os_regs_here(&regs);
	nr = (u8)os_stack_walk(&regs, pcs, STACK_DEPTH).counts;
	slot = trace_reserve(sizeof(*record) + nr * sizeof(u64));
	record = slot.content;
	if (!record)
		return;
	record->common = *of;
	record->common.type = STACK_ID;
	record->size = nr;
	memcpy(record->caller, pcs, nr * sizeof(u64));
	trace_commit(slot);
}

void trace_record_with_stack(const struct trace_event *event, const void *content)
{
	/* Nothing but an NMI comes between the two records. */
	unsigned long flags = os_irq_save();

	if (trace_record_copy(event, content))
		record_stack(content);
	os_irq_restore(flags);
}

#endif
