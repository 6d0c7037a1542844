// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints events as text: the columns of ftrace, then the event's format with Linux's additions to
 * printf(), %ps and %pS. Runs only when a file is read.
 */

#include "text.h"

#define MAX_STRING 256 /* bytes of one %s, with its NUL */
#define MAX_SPEC   16  /* bytes of one conversion, with its NUL */

/* Prints an address as %ps does (offset: false) or as %pS does. */
static void print_symbol(os_text_t *text, u64 addr, bool offset)
{
	char name[OS_SYMBOL_BYTES];
	u64 start;

	if (!os_symbol_lookup(addr, &start, name, sizeof(name)))
		os_text_printf(text, "0x%lx", addr);
	else if (offset)
		os_text_printf(text, "%s+0x%lx", name, addr - start);
	else
		os_text_printf(text, "%s", name);
}

static void print_pointer(os_text_t *text, char kind, u64 value)
{
	if (kind == 's' || kind == 'S')
		print_symbol(text, value, kind == 'S');
	else
		os_text_printf(text, "0x%016lx", value);
}

static void print_string(os_text_t *text, const char *spec, const char *string)
{
	char printable[MAX_STRING];

	report_copy_printable(printable, string, sizeof(printable));
	os_text_printf(text, spec, printable);
}

/*
 * Copies a conversion to spec, with `l` for any length. Returns the format after it. Sets *wide if
 * the value is a u64.
 */
static const char *take_spec(const char *fmt, char spec[MAX_SPEC], bool *wide)
{
	u32 len = 0;

	*wide = false;
	spec[len++] = *fmt++;
	while (*fmt && len < MAX_SPEC - 3) {
		char c = *fmt++;

		if (c == 'l' || c == 'z') {
			*wide = true;
			continue;
		}
		if (*wide && c >= 'a')
			spec[len++] = 'l';
		spec[len++] = c;
		if (c >= 'a' || c == '%')
			break;
	}
	spec[len] = '\0';
	return fmt;
}

/* Prints one conversion. Returns the format after it. */
static const char *print_one(os_text_t *text, const char *fmt, va_list *args)
{
	char spec[MAX_SPEC], last;
	bool wide;

	fmt = take_spec(fmt, spec, &wide);
	last = spec[strlen(spec) - 1];
	switch (last) {
	case 'p':
		last = *fmt == 's' || *fmt == 'S' ? *fmt++ : 'p';
		print_pointer(text, last, va_arg(*args, u64));
		break;
	case 's':
		print_string(text, spec, va_arg(*args, const char *));
		break;
	case '%':
		os_text_printf(text, "%%");
		break;
	default:
		if (wide)
			os_text_printf(text, spec, va_arg(*args, u64));
		else
			os_text_printf(text, spec, va_arg(*args, u32));
	}
	return fmt;
}

void trace_printf(os_text_t *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	while (*fmt) {
		u32 len = 0;

		while (fmt[len] && fmt[len] != '%')
			len++;
		if (len)
			os_text_printf(text, "%.*s", (int)len, fmt);
		fmt += len;
		if (*fmt)
			fmt = print_one(text, fmt, &args);
	}
	va_end(args);
}

const char *trace_flag_names(char *buffer, size_t size, u64 value,
			     const struct trace_flag_name *names)
{
	size_t len = 0;

	buffer[0] = '\0';
	for (; names->name && len < size; names++) {
		if (!(value & names->bit))
			continue;
		value &= ~names->bit;
		len += os_snprintf(buffer + len, size - len, "%s%s", len ? "|" : "", names->name);
	}
	if (value && len < size)
		os_snprintf(buffer + len, size - len, "%s0x%lx", len ? "|" : "", value);
	return buffer;
}

u32 trace_copy_string(char *dst, size_t size, const char *text)
{
	u32 len = 0;

	while (len < size - 1 && text[len]) {
		dst[len] = text[len];
		len++;
	}
	dst[len] = '\0';
	return len + 1;
}

void trace_print_head(os_text_t *text, const char *tracer, u64 nr_kept, u64 nr_written)
{
	u32 cpu, nr_running = 0;

	os_for_each_cpu(cpu)
		nr_running += os_cpu_online(cpu);
	os_text_printf(text, "# tracer: %s\n#\n", tracer);
	os_text_printf(text, "# entries-in-buffer/entries-written: %lu/%lu   #P:%u\n#\n", nr_kept,
		       nr_written, nr_running);
	os_text_printf(text, "#                                _-----=> irqs-off/BH-disabled\n"
			     "#                               / _----=> need-resched\n"
			     "#                              | / _---=> hardirq/softirq\n"
			     "#                              || / _--=> preempt-depth\n"
			     "#                              ||| / _-=> migrate-disable\n"
			     "#                              |||| /     delay\n"
			     "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
			     "#              | |         |   |||||     |         |\n");
}

void trace_printable_task_name(u32 tid, char name[TRACE_COMM_BYTES])
{
	char comm[TRACE_COMM_BYTES];

	trace_task_name(tid, comm);
	report_copy_printable(name, comm, TRACE_COMM_BYTES);
}

static char context_letter(u8 flags)
{
	if (flags & PROFILE_TRACE_NMI)
		return flags & PROFILE_TRACE_HARDIRQ ? 'Z' : 'z';
	return flags & PROFILE_TRACE_HARDIRQ ? 'h' : '.';
}

void trace_print_content(os_text_t *text, const struct ring_event *event)
{
	const struct profile_trace_event *common = event->content;
	const struct trace_event *kind = trace_find_event(common->type);

	if (!kind || event->bytes < kind->bytes) {
		os_text_printf(text, "Unknown type %u", common->type);
		return;
	}
	/* As on Linux, records of a tracer and of system calls are printed without a name. */
	if (kind->key && !kind->call)
		os_text_printf(text, "%s: ", kind->name);
	kind->print(text, common);
}

void trace_print_event(os_text_t *text, u32 cpu, const struct ring_event *event)
{
	const struct profile_trace_event *common = event->content;
	u64 us = (os_cycles_to_ns(event->cycles) + 500) / 1000;
	char name[TRACE_COMM_BYTES];

	trace_printable_task_name(common->pid, name);
	os_text_printf(text, "%16s-%-7d [%03u] %c.%c.. %5lu.%06lu: ", name, common->pid, cpu,
		       common->flags & PROFILE_TRACE_IRQS_OFF ? 'd' : '.',
		       context_letter(common->flags), us / 1000000, us % 1000000);
	trace_print_content(text, event);
	os_text_printf(text, "\n");
}
