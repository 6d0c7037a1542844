// SPDX-License-Identifier: BSD-2-Clause
/*
 * With profile.selftest=on, checks at boot whether the kernel keeps the contracts of os.h. Later it
 * checks whether hooks of processes and threads go together, and whether the times of threads on
 * and off a CPU only grow. Prints a line for each contract that does not hold. Wrong glue would
 * make wrong reports otherwise, which are harder to understand.
 *
 * Needs interrupts on, and takes about 100 ticks. Without periodic ticks (OS_TICK_HZ), or while
 * samples are off, what needs ticks is not checked.
 */

#include "../process_lists.h"
#include "../profiler.h"
#ifdef CONFIG_PROFILE_POINTS
#include "../points/points.h"
#endif
#ifdef CONFIG_PROFILE_HEATMAP
#include "../stack_store.h"
#endif
#include "../words.h"

#define NR_BLOCKS      8
#define MAX_LOOPS      1000000 /* until a clock is taken for one that does not run */
#define RATE_TICKS     20
#define PATIENCE_TICKS 20
#define MAX_WATCHES    16

static bool is_on, has_clock;
static u32 nr_broken;

static int set_selftest(const char *value)
{
	return words_on_off(value, &is_on);
}
/* Whether the kernel's side of the profilers is checked at boot: off by default. */
OS_BOOT_PARAM(profile_selftest, "profile.selftest", "on|off", set_selftest);

/* Prints a line for a contract that does not hold. */
#define BROKEN(fmt, ...)                                             \
	do {                                                         \
		__atomic_fetch_add(&nr_broken, 1, __ATOMIC_RELAXED); \
		os_printk("port: " fmt "\n", ##__VA_ARGS__);         \
	} while (0)

static bool clock_runs(void)
{
	u64 start = os_cycles(), loops, now;

	for (loops = 0; loops < MAX_LOOPS; loops++) {
		now = os_cycles();
		if (now < start) {
			BROKEN("os_cycles() went back from %lu to %lu", start, now);
			return false;
		}
		if (now > start)
			return true;
		os_cpu_relax();
	}
	BROKEN("os_cycles() does not move: it is %lu", start);
	return false;
}

static void check_printf(void)
{
	static const char wanted[] = "   42|ab  |0000beef|xy|-1|     7";
	char text[64];

	os_snprintf(text, sizeof(text), "%5lu|%-4s|%08x|%.2s|%ld|%*u", 42ul, "ab", 0xbeef, "xyz",
		    -1l, 6, 7);
	if (strcmp(text, wanted))
		BROKEN("os_vsnprintf() made \"%s\", not \"%s\"", text, wanted);
}

static bool is_zero(const u8 *memory, size_t size)
{
	while (size--) {
		if (memory[size])
			return false;
	}
	return true;
}

/* Allocates, dirties and frees twice: the second time, memory is used again. */
static void check_memory(size_t size)
{
	u8 *blocks[NR_BLOCKS];
	bool failed = false, dirty = false;
	int turn, i;

	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < NR_BLOCKS; i++) {
			blocks[i] = os_zalloc(size);
			failed |= !blocks[i] || (u64)blocks[i] % 8;
			dirty |= blocks[i] && !is_zero(blocks[i], size);
			if (blocks[i])
				memset(blocks[i], 0xa5, size);
		}
		for (i = 0; i < NR_BLOCKS; i++)
			os_free(blocks[i]);
	}
	if (failed)
		BROKEN("os_zalloc(%lu) returned NULL, or memory that is not aligned to 8 bytes",
		       (u64)size);
	if (dirty)
		BROKEN("os_zalloc(%lu) returned memory that is not zeroed", (u64)size);
}

static void check_tasks(void)
{
	os_task_t *task = os_current_task();
	os_process_t *proc = task ? os_task_process(task) : NULL;

	if (!task)
		return;
#if defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_POINTS)
	if (os_current_profile() != os_task_profile(task))
		BROKEN("os_current_profile() is not os_task_profile(os_current_task())");
#endif
	if (proc && os_process_of(os_process_profile(proc)) != proc)
		BROKEN("os_process_of(os_process_profile(proc)) is not proc");
}

/* Only samples have names, and a kernel may have none. */
static void check_symbols(void)
{
#if defined(os_symbol_lookup) && defined(CONFIG_PROFILE_HEATMAP)
	u64 addr = (u64)profile_init, start = 0;
	char name[OS_SYMBOL_BYTES] = "";

	if (!os_symbol_lookup(addr + 1, &start, name, sizeof(name)))
		BROKEN("os_symbol_lookup() does not find profile_init() at %lx", addr);
	else if (start != addr || strcmp(name, "profile_init"))
		BROKEN("os_symbol_lookup() calls %lx \"%s\", from %lx on, not profile_init",
		       addr + 1, name, start);
#endif
}

#if OS_HAS_EXEC_CYCLES && (defined(CONFIG_PROFILE_STRACE) || defined(CONFIG_PROFILE_WAITS))
/*
 * The times of some threads when they were last looked at: whenever a thread begins or ends, and in
 * each report. lists_lock guards them.
 */
static struct watch {
	struct profile_task *pt; /* NULL: none */
	u64 exec_cycles;	 /* by any thread */
	u64 off_cycles;		 /* by itself */
} watches[MAX_WATCHES];

static bool is_current(const struct profile_task *pt)
{
	return os_current_task() && os_task_profile(os_current_task()) == pt;
}

/* Returns whether a time went back. The clocks of CPUs may differ a little. */
static bool went_back(u64 from, u64 to)
{
	return (s64)(to - from) < 0 && os_cycles_to_ns(from - to) > NS_PER_MSEC;
}

/*
 * A thread's times never go back. If its CPU time grows while it sleeps, it does, at the end of the
 * sleep.
 */
static void look_at(struct watch *watch)
{
	static bool said_exec, said_off;
	u64 exec = os_task_exec_cycles(watch->pt), off = watch->off_cycles;

	if (is_current(watch->pt))
		off = os_off_cycles(watch->pt);
	if (!said_exec && went_back(watch->exec_cycles, exec)) {
		said_exec = true;
		BROKEN("os_task_exec_cycles() of a thread went back from %lu to %lu: does it grow "
		       "while the thread sleeps?",
		       watch->exec_cycles, exec);
	}
	if (!said_off && went_back(watch->off_cycles, off)) {
		said_off = true;
		BROKEN("os_off_cycles() went back from %lu to %lu", watch->off_cycles, off);
	}
	watch->exec_cycles = exec;
	watch->off_cycles = off;
}

/* Looks at all watched threads, and begins to watch one more, or, with NULL, none. */
static void watch_times(struct profile_task *more)
{
	os_assert_held(&lists_lock);
	for (struct watch *watch = watches; watch < watches + MAX_WATCHES; watch++) {
		if (watch->pt) {
			look_at(watch);
		} else if (more) {
			*watch = (struct watch){ more, 0, 0 };
			more = NULL;
		}
	}
}

/* Called at the end of a thread. If it ends itself, it has been switched out and in by then. */
static void end_watch(struct profile_task *pt)
{
	static bool said;
	u64 before = os_cycles(), sum = os_off_cycles(pt) + os_task_exec_cycles(pt);

	watch_times(NULL);
	for (struct watch *watch = watches; watch < watches + MAX_WATCHES; watch++) {
		if (watch->pt == pt)
			watch->pt = NULL;
	}
	if (said || !is_current(pt) || sum - before <= os_cycles() - before)
		return;
	said = true;
	BROKEN("os_off_cycles() + os_task_exec_cycles() of a running thread is %lu, not "
	       "os_cycles(), which is %lu",
	       sum, before);
}
#else
static void watch_times(struct profile_task *more)
{
}

static void end_watch(struct profile_task *pt)
{
}
#endif

/*
 * Points measure CPU time with what profile_task_runs() has kept of the running thread. Called when
 * a thread ends, before they let go of it.
 */
static void check_runs(struct profile_task *pt)
{
#if OS_HAS_EXEC_CYCLES && defined(CONFIG_PROFILE_POINTS)
	static bool said;
	unsigned long flags;
	u64 kept, off;
	bool known;

	if (!is_on || said || !os_current_task() || os_task_profile(os_current_task()) != pt)
		return;
	flags = os_lock(&lists_lock); /* stays on this CPU */
	known = pf_read_once(points_tasks_are_known);
	off = os_off_cycles(pt);
	kept = os_this_cpu_read(os_local(profile_off_bits)) -
	       os_this_cpu_read(os_local(profile_cpu_bits));
	os_unlock(&lists_lock, flags);
	if (!known || kept == off)
		return;
	said = true;
	BROKEN("profile_task_runs() came when os_off_cycles() of its thread was %lu, not %lu: call "
	       "it at each switch, when that is right",
	       kept, off);
#endif
}

/*
 * Samples keep a call's number in 16 bits. Called when threads begin and end: a thread of a process
 * does that within a call.
 */
static void check_call(void)
{
#if defined(CONFIG_PROFILE_HEATMAP) && defined(os_regs_here)
	static bool said;
	os_task_t *task = os_current_task();
	os_regs_t regs;
	u64 nr;

	if (said || !task || !os_task_process(task))
		return;
	os_regs_here(&regs);
	nr = os_task_syscall(task, &regs);
	if (nr < 1 << 16)
		return;
	said = true;
	BROKEN("os_task_syscall() is %lu, which is not below 65536", nr);
#endif
}

#if defined(CONFIG_PROFILE_POINTS) || defined(CONFIG_PROFILE_HEATMAP) || \
	defined(CONFIG_PROFILE_TRACE)
static OS_DEFINE_PER_CPU(u32, nr_calls);

static void count_call(void *unused)
{
	os_this_cpu_inc(os_local(nr_calls));
}

static void check_cpus(void)
{
	u32 cpu;

	os_run_on_all_cpus(count_call);
	os_for_each_cpu(cpu) {
		if (os_cpu_online(cpu) && pf_read_once(os_per_cpu(nr_calls, cpu)) != 1)
			BROKEN("os_run_on_all_cpus() called its function %u times where os_cpu() "
			       "is %u",
			       os_per_cpu(nr_calls, cpu), cpu);
	}
}
#else
static void check_cpus(void)
{
}
#endif

#if defined(CONFIG_PROFILE_HEATMAP) && OS_TICK_HZ
static u64 ticks_of(u32 cpu)
{
	return pf_read_once(os_per_cpu(stack_nr_ticks, cpu));
}

/* Waits on this CPU for so many ticks of time, by the clock. Stops early after nr ticks of cpu. */
static void wait_for_ticks(u32 cpu, u64 nr)
{
	u64 start = os_cycles(), first = ticks_of(cpu);
	u64 patience = os_cycles_per_second() / OS_TICK_HZ * (nr + PATIENCE_TICKS);

	while (ticks_of(cpu) - first < nr && os_cycles() - start < patience)
		os_cpu_relax();
}

static void check_rate(void)
{
	u64 first, start, us, wanted_us = RATE_TICKS * 1000000ull / OS_TICK_HZ;
	u64 ns = os_cycles_to_ns(os_cycles_per_second());
	u32 cpu = os_cpu();

	if (ns < NS_PER_SEC / 100 * 99 || ns > NS_PER_SEC / 100 * 101)
		BROKEN("os_cycles_to_ns(os_cycles_per_second()) is %lu ns", ns);
	wait_for_ticks(cpu, 1);
	start = os_cycles();
	first = ticks_of(cpu);
	wait_for_ticks(cpu, RATE_TICKS);
	us = (os_cycles() - start) * 1000000 / os_cycles_per_second();
	/* Emulators lose ticks, and catch up. */
	if (ticks_of(cpu) - first < RATE_TICKS / 2 || us < wanted_us / 2 || us > wanted_us * 2)
		BROKEN("profile_tick() was called %lu times in %lu us, not %u times in %lu us: is "
		       "OS_TICK_HZ or os_cycles_per_second() wrong?",
		       ticks_of(cpu) - first, us, RATE_TICKS, wanted_us);
}

static bool has_ticks(void)
{
	bool all = true;
	u32 cpu;

	os_for_each_cpu(cpu) {
		if (!os_cpu_online(cpu))
			continue;
		if (!ticks_of(cpu))
			wait_for_ticks(cpu, 1);
		if (ticks_of(cpu))
			continue;
		BROKEN("profile_tick() was never called on CPU %u%s", cpu,
		       cpu == os_cpu() ? ": does os_unlock() turn interrupts on again?" : "");
		all = false;
	}
	return all;
}

/* The holder of a lock stays on its CPU, so ticks that it sees came while it had interrupts off. */
static void check_lock(void)
{
	static os_lock_t outer = OS_LOCK_INIT, inner = OS_LOCK_INIT;
	unsigned long flags = os_lock(&outer), inner_flags;
	u64 start = os_cycles(), first = ticks_of(os_cpu()), under, behind;

	while (os_cycles() - start < os_cycles_per_second() / OS_TICK_HZ * 3)
		os_cpu_relax();
	under = ticks_of(os_cpu()) - first;
	inner_flags = os_lock(&inner);
	os_unlock(&inner, inner_flags);
	first = ticks_of(os_cpu());
	start = os_cycles();
	while (os_cycles() - start < os_cycles_per_second() / OS_TICK_HZ * 3)
		os_cpu_relax();
	behind = ticks_of(os_cpu()) - first;
	os_unlock(&outer, flags);
	if (under)
		BROKEN("os_lock() leaves interrupts on: profile_tick() was called %lu times",
		       under);
	else if (behind)
		BROKEN("os_unlock() of an inner lock turns interrupts on: restore flags");
}

static void check_ticks(void)
{
	if (!os_key_is_set(&profile_timer_key)) {
		os_printk("port: samples are off, so ticks and locks are not checked\n");
		return;
	}
	if (has_ticks()) {
		check_rate();
		check_lock();
	}
}
#else
static void check_ticks(void)
{
}
#endif

/* Before other profilers start: they may not come back if these do not hold. */
static void check_first(void)
{
	if (!is_on)
		return;
	check_printf();
	check_memory(24);
	check_memory(5000);
	check_tasks();
	check_symbols();
	has_clock = clock_runs();
}

/* After them, so that there are samples. */
static void check_second(void)
{
	if (!is_on)
		return;
	if (has_clock) {
		check_cpus();
		check_ticks();
	}
	if (nr_broken)
		os_printk("port: contracts that do not hold: %u; see os.h\n", nr_broken);
	else
		os_printk("port: all contracts that were checked hold\n");
}

/* Threads and processes of the whole machine, counted from boot on. */
static u32 nr_tasks, nr_processes;

static void add(u32 *nr)
{
	__atomic_fetch_add(nr, 1, __ATOMIC_RELAXED);
}

/* Subtracts 1, or returns false at 0. */
static bool subtract(u32 *nr)
{
	if ((s32)__atomic_fetch_sub(nr, 1, __ATOMIC_RELAXED) > 0)
		return true;
	add(nr);
	return false;
}

static void process_init(struct profile_process *pp)
{
	add(&nr_processes);
}

static void process_exit(struct profile_process *pp)
{
	if (!subtract(&nr_processes) && is_on)
		BROKEN("profile_process_exit() of pid %d came without profile_process_init()",
		       os_process_pid(os_process_of(pp)));
}

static void task_init(os_task_t *task)
{
	add(&nr_tasks);
	if (is_on) {
		check_call();
		watch_times(os_task_profile(task));
	}
}

static void task_exit(struct profile_task *pt)
{
	if (!subtract(&nr_tasks) && is_on)
		BROKEN("profile_task_exit() came without profile_task_init()");
	if (is_on) {
		check_call();
		end_watch(pt);
	}
}

/* In a report. In a panic, no lock is taken. */
static void pin(void)
{
	unsigned long flags;

	if (!is_on || os_panicking())
		return;
	flags = os_lock(&lists_lock);
	watch_times(NULL);
	os_unlock(&lists_lock, flags);
}

PROFILER(selftest) = {
	.name = "selftest",
	.place = 0,
	.init = check_first,
	.start = check_second,
	.pin = pin,
	.process_init = process_init,
	.process_exit = process_exit,
	.task_init = task_init,
	.task_exit_begin = check_runs,
	.task_exit = task_exit,
};
