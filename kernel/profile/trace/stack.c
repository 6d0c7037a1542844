// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records the call chains of events, as Linux's options/stacktrace does. Each event is followed by
 * a record `kernel_stack` with the same thread and flags. It holds return addresses, the innermost
 * first; 10 functions take 104 bytes. The first three addresses are in the event's writer, because
 * perf lock skips three to find the caller of a lock.
 *
 * An NMI may write an event and a chain of its own between an event and its chain. So a chain
 * belongs to the latest event of its CPU that has no chain yet.
 */

#include "text.h"

#ifdef CONFIG_PROFILE_CALLCHAIN

#define STACK_ID      4 /* as on Linux, because tools know the number */
#define STACK_DEPTH   32
#define STACK_ENTRIES 8 /* in the format text, as on Linux; a record has up to STACK_DEPTH */

struct record_stack {
	struct profile_trace_event common;
	s32 size;
	u64 caller[];
} __attribute__((__may_alias__));

static void print(os_text_t *text, const void *content)
{
	const struct record_stack *record = content;

	os_text_printf(text, "<stack trace>");
	/* Looks up the byte before, because a call may be the last instruction of its function. */
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
	/* Only an NMI may write between the two records. */
	unsigned long flags = os_irq_save();

	if (trace_record_copy(event, content))
		record_stack(content);
	os_irq_restore(flags);
}

#endif
