// SPDX-License-Identifier: BSD-2-Clause
/* Names what a segment of the critical path is: the cause, the function and the task. */

#include "path.h"

#include "../trace/tasks.h"
#include "../user_symbols.h"

const char *const path_cause_names[NR_PATH_CAUSES] = {
	[PATH_IN_USER] = "user code",	      [PATH_IN_CALL] = "system call",
	[PATH_IN_FAULT] = "page fault",	      [PATH_IN_IRQ] = "interrupt",
	[PATH_IN_KERNEL] = "kernel",	      [PATH_IN_KERNEL_THREAD] = "kernel thread",
	[PATH_IN_START] = "program start",    [PATH_IN_EXIT] = "exit",
	[PATH_FOR_A_CPU] = "ready",	      [PATH_UNTIL_TIMER] = "timer",
	[PATH_UNTIL_DEVICE] = "device",	      [PATH_UNKNOWN] = "unknown",
	[PATH_NOT_RECORDED] = "not recorded",
};

void path_task_name(u32 tid, char *name)
{
	trace_task_name(tid, name);
	report_make_printable(name);
}

void path_user_name(u32 map, u64 pc, char name[PATH_NAME_BYTES])
{
	struct user_symbol symbol;

	user_symbol_of_code(map, pc, &symbol);
	if (!pc || !symbol.image)
		os_strscpy(name, "-", PATH_NAME_BYTES);
	else if (symbol.name)
		os_strscpy(name, symbol.name, PATH_NAME_BYTES);
	else if (symbol.is_known)
		os_snprintf(name, PATH_NAME_BYTES, "%s+%#lx",
			    report_basename(user_symbol_path(symbol.image)),
			    symbol.offset - symbol.distance);
	else
		os_snprintf(name, PATH_NAME_BYTES, "[%s]",
			    report_basename(user_symbol_path(symbol.image)));
	report_make_foldable(name); /* without blanks, a name forges no part of the line */
}

static void copy_call_name(u32 call, char name[PATH_NAME_BYTES])
{
	if (call == PATH_NO_CALL)
		os_strscpy(name, "-", PATH_NAME_BYTES);
	else
		os_strscpy(name, report_call(name, call, os_syscall_name(call)), PATH_NAME_BYTES);
}

void path_function_name(const struct path_segment *segment, char name[PATH_NAME_BYTES])
{
	switch (segment->cause) {
	case PATH_IN_USER:
		path_user_name(segment->map, segment->pc, name);
		break;
	case PATH_IN_KERNEL:
		report_frame(name, segment->pc, false);
		break;
	case PATH_IN_FAULT:
		if (segment->pc)
			path_user_name(segment->map, segment->pc, name);
		else
			copy_call_name(segment->call, name);
		break;
	case PATH_IN_IRQ:
		os_strscpy(name, segment->irq == PATH_TIMER ? "timer" : "device", PATH_NAME_BYTES);
		break;
	case PATH_FOR_A_CPU:
		if (segment->holder)
			path_task_name(segment->holder, name);
		else
			os_strscpy(name, "-", PATH_NAME_BYTES);
		break;
	default:
		copy_call_name(segment->call, name);
	}
}
