// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers for all profilers to print reports: direct the text to the console or to a file, and
 * format headings, percentages, averages and names. They allocate nothing and take no lock.
 * formats.md defines the formats to the byte.
 *
 * Every percentage is rounded half up from its own exact ratio and never adjusted.
 */

#include "report.h"

#include "off_time.h"
#include "table.h"

#define NS_PER_USEC 1000ul

os_task_t *report_printer;
static os_text_t *report_text; /* NULL: the console */
static void (*report_output)(const char *fmt, va_list args);
static bool has_said_turns;

u64 report_cpu_cycles(const struct report_summary *sums)
{
	const struct profile_cpu_times *cpu = &sums->cpu;
	u64 cycles = sums->threads.cycles;

	if (OS_HAS_CPU_TIMES)
		return cpu->user + cpu->calls + cpu->faults + cpu->exceptions + cpu->irqs;
	return cycles - pf_min(cycles, sums->threads.off_cycles);
}

void report_to(os_text_t *text)
{
	report_text = text;
}

void report_to_output(void (*print)(const char *fmt, va_list args))
{
	report_output = print;
}

bool report_is_on_console(void)
{
	return !report_output && (!report_text || os_panicking());
}

static void print_on_console(const char *fmt, va_list args)
{
	va_list copy;

	va_copy(copy, args);
	report_first_lines_add(fmt, copy);
	va_end(copy);
	os_vprintk(fmt, args);
}

/* In a panic, prints to the console even while report_text is set. */
void report_printf(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (report_output)
		report_output(fmt, args);
	else if (!report_is_on_console())
		os_text_vprintf(report_text, fmt, args);
	else
		print_on_console(fmt, args);
	va_end(args);
}

static u32 nr_online_cpus(void)
{
	u32 nr = 0, cpu;

	os_for_each_cpu(cpu)
		nr += os_cpu_online(cpu);
	return nr;
}

/* Leaves out what the kernel does not know: the status, the age. */
static void print_exit(u64 nr, os_process_t *proc, u64 age_ns)
{
	u32 status = os_process_wait_status(proc), signal = status & 0x7f;
	u64 ms = age_ns / NS_PER_MSEC;
	char name[32], how[32] = "exited", age[32] = "";

	report_copy_printable(name, os_process_name(proc), sizeof(name));
	if (status != OS_NO_STATUS)
		os_snprintf(how, sizeof(how), "%s %u",
			    signal ? "was killed by signal" : "exited with status",
			    signal ? signal : status >> 8);
	if (os_process_age_ns(proc) != OS_NO_AGE)
		os_snprintf(age, sizeof(age), " after %lu.%03lu s", ms / 1000, ms % 1000);
	report_printf("profile: report %lu: %s (pid %d) %s%s\n", nr, name, os_process_pid(proc),
		      how, age);
}

bool report_cpus_take_turns(void)
{
	return os_clock_counts_instructions() && nr_online_cpus() > 1;
}

/* Returns true once in a report, if the CPUs take turns. */
static bool must_say_turns(void)
{
	bool said = has_said_turns;

	has_said_turns = true;
	return !said && report_cpus_take_turns();
}

#define TURNS "%u CPUs take turns in this emulator: times and samples include waits for a turn"

void report_say_turns(void)
{
	if (must_say_turns())
		table_note(TURNS, nr_online_cpus());
}

void report_restart(void)
{
	has_said_turns = false;
	table_text_restart();
}

void report_print_heading(u64 nr, const struct report *report, const char *why)
{
	if (report->proc)
		print_exit(nr, report->proc, report->wall_ns);
	else
		report_printf("profile: report %lu: %s\n", nr, why);
	report_restart();
	if (must_say_turns())
		report_printf("profile: " TURNS "\n", nr_online_cpus());
}

void report_make_printable(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

void report_copy_printable(char *dst, const char *src, size_t size)
{
	os_strscpy(dst, src, size);
	report_make_printable(dst);
}

void report_make_foldable(char *text)
{
	report_make_printable(text);
	for (; *text; text++) {
		if (*text == ' ' || *text == ';')
			*text = '?';
	}
}

const char *report_basename(const char *path)
{
	const char *name = path;

	for (; *path; path++) {
		if (*path == '/')
			name = path + 1;
	}
	return name;
}

const char *report_column(char text[REPORT_COLUMN_BYTES], const char *name, u32 width)
{
	if (strlen(name) <= width)
		return name;
	memcpy(text, name, width - 1);
	os_strscpy(text + width - 1, "~", 2);
	return text;
}

const char *report_call(char text[REPORT_CALL_BYTES], u64 nr, const char *name)
{
	if (name && name[0])
		return name;
	os_snprintf(text, REPORT_CALL_BYTES, "sys_%ld", (long)nr);
	return text;
}

const char *report_frame(char text[OS_SYMBOL_BYTES], u64 pc, bool is_return)
{
	u64 start;

	if (!os_symbol_lookup(pc - is_return, &start, text, OS_SYMBOL_BYTES))
		os_snprintf(text, OS_SYMBOL_BYTES, "%#lx", pc);
	return text;
}

void report_since(char text[REPORT_SINCE_BYTES], u64 elapsed_ns, bool was_reset)
{
	u64 hundredths = elapsed_ns / (NS_PER_SEC / 100);

	os_snprintf(text, REPORT_SINCE_BYTES, "since %s (%lu.%02lu s)",
		    was_reset ? "the last reset" : "boot", hundredths / 100, hundredths % 100);
}

/* Seconds and microseconds, as in the time stamps of the log. */
#define SECONDS(ns) (ns) / NS_PER_SEC, (ns) % NS_PER_SEC / NS_PER_USEC

void report_print_off(const char *name, const char *state, const struct off_snapshot *snap)
{
	const struct profile_off_time *off = &snap->time;
	char comm[sizeof(off->comm) + 1] = "", by[48];

	if (!snap->ns)
		return;
	memcpy(comm, off->comm, sizeof(off->comm));
	if (comm[0])
		os_snprintf(by, sizeof(by), "%s (pid %u)", comm, off->pid);
	else
		os_strscpy(by, off->at_boot ? "the boot parameter" : "the kernel", sizeof(by));
	if (off->is_off)
		table_note("%s is %s since %lu.%06lu s, by %s: for %lu.%06lu s of this time", name,
			   state, SECONDS(off->from_ns), by, SECONDS(snap->ns));
	else
		table_note("%s was %s for %lu.%06lu s of this time, last from %lu.%06lu s to "
			   "%lu.%06lu s, by %s",
			   name, state, SECONDS(snap->ns), SECONDS(off->from_ns),
			   SECONDS(off->to_ns), by);
}

u32 report_percent(u64 part, u64 total)
{
	/* floor(x + 1/2) == floor((floor(2x) + 1) / 2) */
	return total ? (os_mul_div_u64(part, 20000, total) + 1) / 2 : 0;
}

static u64 divide_up(u64 a, u64 b)
{
	return a / b + (a % b != 0);
}

u64 report_usecs_per_call(u64 ns, u64 n)
{
	return n ? divide_up(divide_up(ns, NS_PER_USEC), n) : 0;
}

u64 report_avg_ns(u64 ns, u64 n)
{
	return n ? divide_up(ns, n) : 0;
}

void report_kinds(char *text, size_t size, bool as_sum, const char *const *names, const u64 *nr,
		  u32 nr_kinds)
{
	size_t len = 0;

	text[0] = '\0';
	for (u32 i = 0; i < nr_kinds; i++) {
		if (!nr[i] || !names[i][0])
			continue;
		if (as_sum)
			len += os_snprintf(text + len, size - len, "%s%s %lu", len ? " + " : " = ",
					   names[i], nr[i]);
		else
			len += os_snprintf(text + len, size - len, "%s%lu %s", len ? ", " : " (",
					   nr[i], names[i]);
	}
	if (len && !as_sum)
		os_snprintf(text + len, size - len, ")");
}

const char *report_signal(u32 nr)
{
	static const char *const names[] = {
		[1] = "SIGHUP",	  [2] = "SIGINT",     [3] = "SIGQUIT",	[4] = "SIGILL",
		[5] = "SIGTRAP",  [6] = "SIGABRT",    [7] = "SIGBUS",	[8] = "SIGFPE",
		[9] = "SIGKILL",  [10] = "SIGUSR1",   [11] = "SIGSEGV", [12] = "SIGUSR2",
		[13] = "SIGPIPE", [14] = "SIGALRM",   [15] = "SIGTERM", [16] = "SIGSTKFLT",
		[17] = "SIGCHLD", [18] = "SIGCONT",   [19] = "SIGSTOP", [20] = "SIGTSTP",
		[21] = "SIGTTIN", [22] = "SIGTTOU",   [23] = "SIGURG",	[24] = "SIGXCPU",
		[25] = "SIGXFSZ", [26] = "SIGVTALRM", [27] = "SIGPROF", [28] = "SIGWINCH",
		[29] = "SIGIO",	  [30] = "SIGPWR",    [31] = "SIGSYS",
	};

	return nr < PF_ARRAY_SIZE(names) ? names[nr] : NULL;
}
