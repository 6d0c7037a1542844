// SPDX-License-Identifier: BSD-2-Clause
/*
 * The hooks for rare events: start, reset, tasks and processes that begin and end. Each hook calls
 * all profilers, which register themselves in a linker section (profiler.h). Where the order
 * matters, they are called by their `place`.
 */

#include "profiler.h"

#include "process_lists.h"
#include "table.h"
#include "words.h"

/* The section has no bounds if there is no profiler. */
extern const struct profiler __start_profilers[] __attribute__((weak));
extern const struct profiler __stop_profilers[] __attribute__((weak));

static bool off_at_boot;

static int set_off(const char *value)
{
	if (!words_are(value, "off"))
		return -OS_EINVAL;
	off_at_boot = true;
	return 0;
}
/*
 * All profilers are off until the next boot, as if they were not compiled in, but memory is still
 * counted: there is no /proc/profile, and other parameters of profilers are ignored.
 */
OS_BOOT_PARAM(profile_off, "profile", "off", set_off);

typedef void plain_function(void);

#define MAX_CALLS 19 /* profilers that have the same function */

static plain_function *member_function(const struct profiler *p, size_t offset)
{
	plain_function *function;

	memcpy(&function, (const char *)p + offset, sizeof(function));
	return function;
}

/*
 * The functions of all profilers at one offset in struct profiler, in the order of linking. The
 * first one is stored last.
 */
struct calls {
	bool are_none;
	plain_function *functions[MAX_CALLS + 1]; /* the last one is NULL */
};

static pf_noinline plain_function *find_calls(struct calls *calls, size_t offset)
{
	plain_function **at = calls->functions, *first = NULL;

	for (const struct profiler *p = __start_profilers; p < __stop_profilers; p++) {
		plain_function *function = member_function(p, offset);

		if (!function)
			continue;
		os_assert(at < calls->functions + MAX_CALLS);
		if (first)
			*at = function;
		else
			first = function;
		at++;
	}
	calls->are_none = !first;
	pf_store_release(&calls->functions[0], first);
	return first;
}

/* Looks for the functions once: each thread and process asks a dozen times. */
static inline plain_function *first_call(struct calls *calls, size_t offset)
{
	plain_function *first = pf_load_acquire(&calls->functions[0]);

	if (pf_likely(first) || calls->are_none)
		return first;
	return find_calls(calls, offset);
}

/* Calls a function of each profiler that has it. */
#define CALL_ALL(function, ...)                                                             \
	do {                                                                                \
		static struct calls _calls;                                                 \
		plain_function **_at = _calls.functions;                                    \
		plain_function *_call =                                                     \
			first_call(&_calls, __builtin_offsetof(struct profiler, function)); \
                                                                                            \
		for (; _call; _call = *++_at)                                               \
			((__typeof__(((struct profiler *)0)->function))_call)(__VA_ARGS__); \
	} while (0)

static pf_noinline void call_plain(struct calls *calls, size_t offset)
{
	plain_function **at = calls->functions;

	for (plain_function *call = first_call(calls, offset); call; call = *++at)
		call();
}

/* The same, in less code, for a function without parameters. */
#define CALL_ALL_PLAIN(function)                                                          \
	do {                                                                              \
		static struct calls _calls;                                               \
                                                                                          \
		PF_BUILD_BUG_ON(!__builtin_types_compatible_p(                            \
			__typeof__(((struct profiler *)0)->function), plain_function *)); \
		call_plain(&_calls, __builtin_offsetof(struct profiler, function));       \
	} while (0)

static bool is_before(const struct profiler *a, const struct profiler *b)
{
	return a->place < b->place || (a->place == b->place && a < b);
}

/* Returns the profiler that comes after one by its place, or, after NULL, the first one. */
static const struct profiler *next_by_place(const struct profiler *last)
{
	const struct profiler *next = NULL;

	for (const struct profiler *p = __start_profilers; p < __stop_profilers; p++) {
		if ((!last || is_before(last, p)) && (!next || is_before(p, next)))
			next = p;
	}
	return next;
}

#if OS_HAS_FILES
static int write_report(const char *text)
{
	if (!words_are(text, "reset"))
		return -OS_EINVAL;
	profile_reset();
	return 0;
}

static const struct profiler_file shared_files[] = {
	{ "profile/report", "reset", write_report, .print = report_print_whole, .arg = "read" },
	{ "profile/on_exit", REPORT_ON_EXIT_WORDS, on_exit_write, .show = on_exit_show },
	{ 0 },
};

static int show_file(os_text_t *text, const void *arg)
{
	const struct profiler_file *file = arg;

	if (file->show)
		file->show(text);
	else
		report_to_text(text, file->is_json ? &table_json : &table_text, file->print,
			       file->arg);
	return 0;
}

static int add_file(const struct profiler_file *file)
{
	if (file->close)
		return os_add_exclusive_file(file->path, file->accepts, show_file, file,
					     file->write, file->close);
	return os_add_file(file->path, file->accepts, show_file, file, file->write);
}

static void add_files(const char *owner, const struct profiler_file *file,
		      const struct profiler_process_file *process_file)
{
	bool failed = false;

	for (; file && file->path; file++)
		failed |= add_file(file) != 0;
	for (; process_file && process_file->name; process_file++)
		failed |= os_add_process_file(process_file->name, process_file->accepts,
					      process_file->show, process_file->write) != 0;
	if (failed)
		os_printk("profile: no memory for the files of %s\n", owner);
}
#endif

void profile_init(void)
{
	const struct profiler *p = NULL;

	if (off_at_boot) {
		os_key_set(&profile_off_key, true);
		report_is_off();
		return;
	}
#if OS_HAS_FILES
	add_files("the report", shared_files, NULL);
#endif
	while ((p = next_by_place(p))) {
		if (p->init)
			p->init();
#if OS_HAS_FILES
		add_files(p->name, p->files, p->process_files);
#endif
	}
	CALL_ALL_PLAIN(start);
#ifdef OS_HAS_PROFILE_SET
	profile_has_begun = true;
#endif
}

void profile_reset(void)
{
	if (os_key_on(&profile_off_key))
		return;
	run_reset();
	CALL_ALL_PLAIN(reset);
}

void report_print_warnings(void)
{
	CALL_ALL_PLAIN(warn);
}

void report_print_tables(const struct report *report)
{
	const struct profiler *p = NULL;

	CALL_ALL_PLAIN(pin);
	while ((p = next_by_place(p))) {
		if (p->print)
			p->print(report);
	}
	CALL_ALL_PLAIN(unpin);
}

void report_print_json_files(void)
{
	const struct profiler *p = NULL;

	table_set_sink(&table_json);
	report_restart();
	while ((p = next_by_place(p))) {
		if (p->pin)
			p->pin();
		for (const struct profiler_file *file = p->files; file && file->path; file++) {
			if (!file->is_json)
				continue;
			report_printf("{\"file\":\"%s\"}\n", file->path + strlen("profile/"));
			file->print(file->arg);
		}
		if (p->unpin)
			p->unpin();
	}
	table_set_sink(&table_text);
}

void report_end(const char *why)
{
	CALL_ALL(end, why);
}

void report_summarize(os_process_t *proc, struct report_summary *summary)
{
	u64 peak_bytes[OS_NR_MEMORY_KINDS];

	if (proc) {
		summary->nr_processes++;
		report_add_faults(summary, os_process_faults(proc));
		os_process_peak(proc, peak_bytes);
		report_keep_peak(summary, peak_bytes);
	}
	CALL_ALL(summarize, proc, summary);
}

void report_find(const struct finding_scope *scope)
{
	CALL_ALL(find, scope);
}

void report_visit_running(report_add_fn *add)
{
	CALL_ALL(visit_running, add);
}

void report_visit_chains(report_chain_fn *visit)
{
	CALL_ALL(visit_chains, visit);
}

/* Threads and processes whose end has begun, and those whose end is complete. */
static u32 nr_exits_begun, nr_exits_ended;

static void begin_exit(void)
{
	__atomic_fetch_add(&nr_exits_begun, 1, __ATOMIC_SEQ_CST);
}

static void end_exit(void)
{
	__atomic_fetch_add(&nr_exits_ended, 1, __ATOMIC_SEQ_CST);
}

u32 report_nr_exits(void)
{
	u32 nr;

	/* In this order: an exit that ends in between must not stand for another that begins. */
	while (nr = pf_load_acquire(&nr_exits_ended), pf_load_acquire(&nr_exits_begun) != nr)
		os_relax_and_yield();
	return nr;
}

void report_flush(void)
{
	CALL_ALL(flush); /* at the end of each process: without a call more */
}

void report_end_reading(void)
{
	CALL_ALL_PLAIN(end_reading);
}

void report_shorten_wait(struct profile_task *pt, u64 cycles)
{
	CALL_ALL(shorten_wait, pt, cycles);
}

void profile_process_init(os_process_t *proc)
{
	struct profile_process *pp = os_process_profile(proc);
	unsigned long flags;

	if (os_key_on(&profile_off_key))
		return;
	if (!OS_ZEROES_PROFILES)
		memset(pp, 0, __builtin_offsetof(struct profile_process, not_zeroed));
	pp->first_delay_cycles = report_delay();
	if (run_add_process())
		CALL_ALL_PLAIN(run_begin);
	flags = os_lock(&lists_lock);
	lists_add_process(pp);
	CALL_ALL(process_init, pp);
	os_unlock(&lists_lock, flags);
}

void profile_process_exec(os_process_t *proc)
{
	unsigned long flags;

	if (os_key_on(&profile_off_key))
		return;
	flags = os_lock(&lists_lock);
	CALL_ALL(process_exec, os_process_profile(proc));
	os_unlock(&lists_lock, flags);
}

void profile_process_exit(os_process_t *proc)
{
	struct profile_process *pp = os_process_profile(proc);

	if (os_key_on(&profile_off_key))
		return;
	report_process_exit(proc);
	CALL_ALL(process_exit, pp);
	begin_exit();
	CALL_ALL(process_ended, pp);
	pf_write_once(pp->has_ended, true);
	run_end_process();
	end_exit();
}

void profile_process_release(os_process_t *proc)
{
	struct profile_process *pp = os_process_profile(proc);
	unsigned long flags;

	if (os_key_on(&profile_off_key))
		return;
	if (!pp->has_ended)
		run_forget_process();
	flags = os_lock(&lists_lock);
	CALL_ALL(process_release, pp);
	lists_remove_process(pp);
	os_unlock(&lists_lock, flags);
}

void profile_task_init(os_task_t *task)
{
	struct profile_task *pt = os_task_profile(task);
	os_process_t *proc = os_task_process(task);
	unsigned long flags;

	if (os_key_on(&profile_off_key))
		return;
	if (!OS_ZEROES_PROFILES)
		memset(pt, 0, __builtin_offsetof(struct profile_task, not_zeroed));
#ifdef CONFIG_PROFILE_WAITS
	report_delay_begin_task(pt);
#endif
	flags = os_lock(&lists_lock);
	if (proc)
		lists_add_task(os_process_profile(proc), pt);
	CALL_ALL(task_init, task);
	os_unlock(&lists_lock, flags);
}

void profile_task_exit(os_task_t *task)
{
	struct profile_task *pt = os_task_profile(task);
	unsigned long flags;

	if (os_key_on(&profile_off_key))
		return;
	begin_exit();
	CALL_ALL(task_exit_begin, pt);
	flags = os_lock(&lists_lock);
	CALL_ALL(task_exit, pt);
	if (pt->process)
		lists_remove_task(pt);
	os_unlock(&lists_lock, flags);
	CALL_ALL(task_ended, pt);
	end_exit();
}
