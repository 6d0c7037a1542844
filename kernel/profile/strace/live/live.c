// SPDX-License-Identifier: BSD-2-Clause
/*
 * strace trace output: prints a line for each selected call when it ends, as `strace -f` does. The
 * hooks have a static key of their own. At entry the filter decides by a bit whether the call is
 * selected; if so, args.c captures its arguments in a buffer that the thread keeps until it ends.
 * At exit the call goes into the ring of this CPU. A worker thread decodes it and writes it to the
 * log. If the ring is full, the line is lost and counted, unless the filter says `wait`.
 *
 * Each CPU counts its calls and losses, and the counts add up: made = printed + lost + in the
 * rings. A change of the filter starts a new generation; a call from an older one is not printed.
 */

#include "live.h"

#include "../../hook_keys.h"
#include "../../profiler.h"
#include "../strace.h"

#define WORDS \
	"off|[-]all|[-]<class>|[-]<glob>[,...][,pid:<n>][,failed][,><n>us][,+time][,+cpu][,wait]"
#define MAX_WORDS   256
#define MAX_WAIT_MS 10000
#define MAX_ERROR   (-4095)
/* From -ERESTARTSYS to -ERESTART_RESTARTBLOCK: the call was interrupted, and has not failed yet. */
#define FIRST_RESTART (-512)
#define RESTART_BLOCK (-516)

/* The offset of the signal mask in struct ucontext, where the stack pointer is in rt_sigreturn. */
#define SIGFRAME_MASK_OFFSET 296

struct live_task {
	u32 generation;
	u32 restart_nr; /* the call that restart_syscall() will resume, plus 1; 0: none */
	u64 start_cycles;
	struct live_call call;
};

struct counters {
	u64 nr_made, nr_full, nr_no_memory;
};

os_key_t profile_live_key;
u64 profile_live_chosen[PROFILE_NR_INDEXED / 64];
static OS_DEFINE_PER_CPU(struct counters, counters);
static struct live_filter filter;
static u32 generation;

static char boot_words[MAX_WORDS];
static char words[MAX_WORDS] = "off"; /* the text of the filter; guarded by words_lock */
static os_lock_t words_lock = OS_LOCK_INIT;
static struct poll_lock switching; /* held while a thread changes the filter */

/* Held by the thread that reads the rings. It alone uses what is up to nr_drops_told. */
static struct poll_lock draining;
static struct live_call drained;
static char line[LIVE_LINE_BYTES];
static u64 nr_printed, nr_drops_told;

static bool worker_woken;

static void live_drain(void);

static void live_work(void)
{
	pf_write_once(worker_woken, false);
	/*
	 * Pairs with the barrier in wake_worker(). A thread that still saw the flag set, and so did
	 * not wake the worker, put its call into the ring before: live_drain() below finds it.
	 * Without the barrier the call could stay in the ring.
	 */
	pf_mb();
	live_drain();
}

static OS_WORKER(worker, live_work);

/* Called after live_ring_put(). */
static void wake_worker(void)
{
	pf_mb(); /* pairs with the barrier in live_work() */
	if (!pf_read_once(worker_woken)) {
		pf_write_once(worker_woken, true);
		os_worker_wake(&worker);
	}
}

static struct counters sum_counters(void)
{
	struct counters sum = { 0 };
	unsigned int cpu;

	os_for_each_cpu(cpu) {
		sum.nr_made += pf_read_once(os_per_cpu(counters, cpu).nr_made);
		sum.nr_full += pf_read_once(os_per_cpu(counters, cpu).nr_full);
		sum.nr_no_memory += pf_read_once(os_per_cpu(counters, cpu).nr_no_memory);
	}
	return sum;
}

/* Prints all calls in the rings. Called by the reader, or in a panic, which has stopped it. */
static void print_lines(void)
{
	struct counters sum;

	os_assert(draining.is_held || os_panicking());
	while (live_ring_get(&drained)) {
		live_decode(&drained, line, sizeof(line));
		os_printk("%s\n", line);
		live_ring_drop(&drained);
		pf_write_once(nr_printed, nr_printed + 1);
		if (!os_panicking())
			os_may_yield();
	}
	sum = sum_counters();
	if (sum.nr_full + sum.nr_no_memory != nr_drops_told) {
		os_printk("strace: %lu lines lost: %lu had no room, %lu no memory\n",
			  (unsigned long)(sum.nr_full + sum.nr_no_memory),
			  (unsigned long)sum.nr_full, (unsigned long)sum.nr_no_memory);
		nr_drops_told = sum.nr_full + sum.nr_no_memory;
	}
}

static void live_drain(void)
{
	poll_lock(&draining);
	print_lines();
	poll_unlock(&draining);
}

/* Prints all calls that have ended. In a panic it does not wait for another reader. */
static void live_flush(void)
{
	if (os_panicking())
		print_lines();
	else if (os_key_is_set(&profile_live_key) || pf_read_once(worker_woken))
		live_drain();
}

static bool is_chosen(u64 nr)
{
	u32 nr_pids = pf_read_once(filter.nr_pids);

	if (nr < LIVE_NR_SYSCALLS && live_syscall(nr)->name) {
		if (!(pf_read_once(filter.calls[nr / 64]) & 1ull << nr % 64))
			return false;
	} else if (!pf_read_once(filter.unnamed)) {
		return false;
	}
	for (u32 i = 0; i < nr_pids && i < LIVE_MAX_PIDS; i++) {
		int pid = pf_read_once(filter.pids[i]);

		if (pid == os_current_pid() || pid == os_current_tid())
			return true;
	}
	return !nr_pids;
}

static struct live_task *current_live(struct profile_task *pt)
{
	if (!pt->strace.live)
		pt->strace.live = os_zalloc(sizeof(struct live_task));
	return pt->strace.live;
}

void profile_strace_enter_live(void)
{
	struct profile_task *pt = os_current_profile();
	struct live_task *live = pt->strace.live;
	u64 nr = pt->strace.argument;

	pt->strace.live_active = false;
	if (!is_chosen(nr))
		return;
	live = current_live(pt);
	if (!live) {
		os_this_cpu_inc(os_local(counters).nr_made);
		os_this_cpu_inc(os_local(counters).nr_no_memory);
		wake_worker();
		return;
	}
	live->call.nr = nr;
	live->call.nr_chunks = 0;
	live->call.nr_bytes = 0;
	/* The kernel's own execve of init has no user registers. */
	if (!os_syscall_args(live->call.args))
		return;
	if (live_syscall(nr)->args[0].type == LIVE_ARG_restart)
		live->call.args[0] = live->restart_nr;
	if (live_syscall(nr)->args[0].type == LIVE_ARG_sigreturn)
		live->call.args[0] = os_syscall_sp() + SIGFRAME_MASK_OFFSET;
	live_capture_entry(&live->call);
	live->generation = pf_read_once(generation);
	live->call.start_ns = pf_read_once(filter.time) ? os_realtime_ns() : 0;
	pt->strace.live_active = true;
	live->start_cycles = os_cycles();
	/* The call begins now: this function may have slept. */
	os_entry_again();
}

static bool is_restart(long ret)
{
	return ret <= FIRST_RESTART && ret >= RESTART_BLOCK;
}

static bool is_wanted(const struct live_call *call)
{
	bool error = call->ret < 0 && call->ret >= MAX_ERROR;
	bool failed = call->returned && error && !is_restart(call->ret);

	return (failed || !pf_read_once(filter.failed)) &&
	       call->ns >= pf_read_once(filter.slower_ns);
}

/* Waits for room in the ring, if the filter has `wait`. Returns true if the call is in the ring. */
static bool wait_for_room(const struct live_call *call)
{
	bool is_put = false;

	profile_return_begin(os_current_profile());
	for (u32 ms = 0; pf_read_once(filter.wait) && ms < MAX_WAIT_MS && !is_put; ms++) {
		wake_worker();
		os_sleep_ms(1);
		is_put = live_ring_put(call);
	}
	profile_return_end(os_current_profile());
	return is_put;
}

static void live_finish_call(struct live_task *live, u64 end_cycles)
{
	struct live_call *call = &live->call;
	s64 cycles = end_cycles - live->start_cycles;

	os_current_profile()->strace.live_active = false;
	if (live->generation != pf_read_once(generation) || !os_key_is_set(&profile_live_key))
		return;
	call->tid = os_current_tid();
	call->cpu = pf_read_once(filter.cpu) ? (int)os_cpu() : -1;
	call->end_cycles = end_cycles;
	call->ns = os_cycles_to_ns(pf_max(cycles, (s64)0));
	if (!is_wanted(call))
		return;
	if (call->returned)
		live_capture_exit(call);
	os_this_cpu_inc(os_local(counters).nr_made);
	if (!live_ring_put(call) && !wait_for_room(call))
		os_this_cpu_inc(os_local(counters).nr_full);
	wake_worker();
}

/*
 * A call that was interrupted because its thread dies never returns, so it prints `= ?`. A call
 * that was complete has its value even then.
 */
void profile_strace_exit_live(void)
{
	struct profile_task *pt = os_current_profile();
	struct live_task *live = pt->strace.live;
	u64 end_cycles = os_cycles();
	long ret = (long)pt->strace.argument;

	if (!pt->strace.live_active)
		return;
	if (ret == RESTART_BLOCK)
		live->restart_nr = live->call.nr + 1;
	live->call.ret = ret;
	live->call.returned = !os_current_dying() || !(is_restart(ret) || ret == -STRACE_EINTR);
	live_finish_call(live, end_cycles);
}

static pf_noinline void end_live_task(struct profile_task *pt)
{
	struct live_task *live = pt->strace.live;

	if (pt->strace.live_active) {
		live->call.returned = false;
		live_finish_call(live, os_cycles());
	}
	pt->strace.live = NULL;
	pt->strace.live_active = false;
	os_free(live);
}

static void end_task(struct profile_task *pt)
{
	if (pf_unlikely(pt->strace.live))
		end_live_task(pt);
}

/*
 * Fills in profile_live_chosen[], with which the hook rules out most calls without a function call.
 */
static void choose_calls(void)
{
	os_assert_held(&words_lock);
	for (u64 nr = 0; nr < LIVE_NR_SYSCALLS; nr++) {
		u64 bit = 1ull << nr % 64;
		bool chosen = live_syscall(nr)->name ? filter.calls[nr / 64] & bit : filter.unnamed;

		profile_live_chosen[nr / 64] = (profile_live_chosen[nr / 64] & ~bit) |
					       (chosen ? bit : 0);
	}
}

static void switch_key(bool on)
{
	hook_key_set(&profile_live_key, on);
}

/* Changes the filter. Process context. Returns 0, or a negative errno if nothing has changed. */
static int set_filter(const char *text)
{
	struct live_filter new;
	unsigned long flags;
	int error = live_filter_parse(text, &new);
	bool on;

	if (error)
		return error;
	on = !live_filter_is_off(&new);
	if (on && live_ring_init())
		return -OS_ENOMEM;
	poll_lock(&switching);
	strace_switch_shown(false, switch_key);
	flags = os_lock(&words_lock);
	filter = new;
	choose_calls();
	generation++;
	os_strscpy(words, text, sizeof(words));
	if (words[0] && words[strlen(words) - 1] == '\n')
		words[strlen(words) - 1] = '\0';
	os_unlock(&words_lock, flags);
	if (on)
		strace_switch_shown(true, switch_key);
	poll_unlock(&switching);
	return 0;
}

static int set_boot(const char *value)
{
	struct live_filter checked;

	if (strlen(value) >= sizeof(boot_words) || live_filter_parse(value, &checked))
		return -OS_EINVAL;
	os_strscpy(boot_words, value, sizeof(boot_words));
	return 0;
}
/*
 * Prints a line for each selected call, as strace does: `file`, `openat,failed`, `>10ms`. Off by
 * default.
 */
OS_BOOT_PARAM(profile_strace_live, "profile.strace_live", WORDS, set_boot);

static void show_live(os_text_t *text)
{
	u64 printed = pf_read_once(nr_printed);
	struct counters sum = sum_counters();
	unsigned long flags = os_lock(&words_lock);

	os_text_printf(text, "%s\n", words);
	os_unlock(&words_lock, flags);
	os_text_printf(text, "made %lu\nprinted %lu\nlost_no_room %lu\nlost_no_memory %lu\n",
		       (unsigned long)sum.nr_made, (unsigned long)printed,
		       (unsigned long)sum.nr_full, (unsigned long)sum.nr_no_memory);
}

static int write_live(const char *text)
{
	return strlen(text) >= MAX_WORDS ? -OS_EINVAL : set_filter(text);
}

static void init(void)
{
	hook_keys_register(HOOK_CALL, &profile_live_key, false);
	if (os_worker_start(&worker, "strace") || (boot_words[0] && set_filter(boot_words)))
		os_printk("profile: no memory for strace trace output\n");
}

PROFILE_CONTROL(profile_strace_live, "profile.strace_live", WORDS, "", write_live);

static const struct profiler_file files[] = {
	{ "profile/strace_live", WORDS, write_live, .show = show_live },
	{ 0 },
};

PROFILER(strace_live) = {
	.name = "strace trace output",
	.place = 5,
	.init = init,
	.flush = live_flush,
	.task_ended = end_task,
	.files = PROFILER_FILES(files),
};
