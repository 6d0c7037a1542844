// SPDX-License-Identifier: BSD-2-Clause
/*
 * Live lines: one for each chosen call when it is over, as `strace -f` writes it. The hooks are
 * behind a static key of their own. On entry a bit of the filter says whether the call is chosen;
 * if so its arguments are caught (live_args.c), in memory the thread keeps until it ends. At the
 * end the call goes into this CPU's ring; a kernel thread turns it into text and logs it. A thread
 * that finds its ring full goes on and the line is lost and counted, unless `wait` is set.
 *
 * made = printed + dropped + in the rings. Each CPU counts what its threads make and drop.
 *
 * Each switch starts a new generation; a call that began in another one gives no line.
 */

#include "live.h"

#define MAX_WORDS     256
#define MAX_WAIT_MS   10000
#define MAX_ERROR     (-4095)
#define FIRST_RESTART (-512) /* -ERESTARTSYS, to -ERESTART_RESTARTBLOCK: no error yet */
#define RESTART_BLOCK (-516)

/* Of the signal mask in struct ucontext, which the stack pointer is at. */
#define SIGFRAME_MASK_OFFSET 296

struct live_task {
	u32 generation;
	u32 restart_nr; /* + 1: the last call that is to go on by restart_syscall() */
	u64 start_cycles;
	struct live_call call;
};

struct counters {
	u64 nr_made, nr_full, nr_no_memory;
};

struct static_key live_key;
u64 live_chosen[PROFILE_NR_INDEXED / 64];
static DEFINE_PER_CPU(struct counters, counters);
static struct live_filter filter;
static u32 generation;

static char boot_words[MAX_WORDS];
static char words[MAX_WORDS] = "off"; /* what the filter was made from; guarded by words_lock */
static os_lock_t words_lock = OS_LOCK_INIT;
static bool switching; /* somebody changes the filter */

static bool draining; /* somebody is the rings' reader, and has what follows */
static struct live_call drained;
static char line[LIVE_LINE_BYTES];
static u64 nr_printed, nr_drops_told;

static bool worker_woken;

static void drain(void);

static void work(void)
{
	WRITE_ONCE(worker_woken, false);
	/* Pairs with the one in wake_worker(): a call put before it saw the flag set is seen. */
	smp_mb();
	drain();
}

static OS_WORKER(worker, work);

static void wake_worker(void)
{
	smp_mb();
	if (!READ_ONCE(worker_woken)) {
		WRITE_ONCE(worker_woken, true);
		os_worker_wake(&worker);
	}
}

static struct counters sum_counters(void)
{
	struct counters sum = { 0 };
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		sum.nr_made += READ_ONCE(per_cpu(counters, cpu).nr_made);
		sum.nr_full += READ_ONCE(per_cpu(counters, cpu).nr_full);
		sum.nr_no_memory += READ_ONCE(per_cpu(counters, cpu).nr_no_memory);
	}
	return sum;
}

/* The reader's part; in a panic whoever had it is stopped. */
static void print_lines(void)
{
	struct counters sum;

	while (live_ring_get(&drained)) {
		live_decode(&drained, line, sizeof(line));
		printk("%s\n", line);
		WRITE_ONCE(nr_printed, nr_printed + 1);
		if (!os_panicking())
			os_may_yield();
	}
	sum = sum_counters();
	if (sum.nr_full + sum.nr_no_memory != nr_drops_told) {
		printk("strace: %lu lines lost: %lu had no room, %lu no memory\n",
		       (unsigned long)(sum.nr_full + sum.nr_no_memory), (unsigned long)sum.nr_full,
		       (unsigned long)sum.nr_no_memory);
		nr_drops_told = sum.nr_full + sum.nr_no_memory;
	}
}

static void drain(void)
{
	while (xchg(&draining, true))
		os_wait_turn();
	print_lines();
	smp_store_release(&draining, false);
}

void live_flush(void)
{
	if (os_panicking())
		print_lines();
	else if (static_key_is_set(&live_key) || READ_ONCE(worker_woken))
		drain();
}

static bool is_chosen(u64 nr)
{
	u32 nr_pids = READ_ONCE(filter.nr_pids);

	if (nr < LIVE_NR_SYSCALLS && live_syscall(nr)->name) {
		if (!(READ_ONCE(filter.calls[nr / 64]) & 1ull << nr % 64))
			return false;
	} else if (!READ_ONCE(filter.unnamed)) {
		return false;
	}
	for (u32 i = 0; i < nr_pids && i < LIVE_MAX_PIDS; i++) {
		int pid = READ_ONCE(filter.pids[i]);

		if (pid == os_current_pid() || pid == os_current_tid())
			return true;
	}
	return !nr_pids;
}

static struct live_task *current_live(struct profile_task *pt)
{
	if (!pt->live)
		pt->live = os_zalloc(sizeof(struct live_task));
	return pt->live;
}

void live_enter(u64 nr)
{
	struct profile_task *pt = os_current_profile();
	struct live_task *live = pt->live;

	pt->live_active = false;
	if (!is_chosen(nr))
		return;
	live = current_live(pt);
	if (!live) {
		this_cpu_inc(counters.nr_made);
		this_cpu_inc(counters.nr_no_memory);
		wake_worker();
		return;
	}
	live->call.nr = nr;
	live->call.nr_pieces = 0;
	live->call.nr_bytes = 0;
	/* The kernel's own execve of init comes from no user registers. */
	if (!os_syscall_args(live->call.args))
		return;
	if (live_syscall(nr)->args[0].type == LIVE_ARG_restart)
		live->call.args[0] = live->restart_nr;
	if (live_syscall(nr)->args[0].type == LIVE_ARG_sigreturn)
		live->call.args[0] = os_syscall_sp() + SIGFRAME_MASK_OFFSET;
	live_capture_entry(&live->call);
	live->generation = READ_ONCE(generation);
	pt->live_active = true;
	live->start_cycles = os_cycles();
}

static bool is_restart(long ret)
{
	return ret <= FIRST_RESTART && ret >= RESTART_BLOCK;
}

static bool is_wanted(const struct live_call *call)
{
	bool error = call->ret < 0 && call->ret >= MAX_ERROR;
	bool failed = call->returned && error && !is_restart(call->ret);

	return (failed || !READ_ONCE(filter.failed)) && call->ns >= READ_ONCE(filter.slower_ns);
}

/* True when there was room in the end. */
static bool wait_for_room(const struct live_call *call)
{
	for (u32 ms = 0; READ_ONCE(filter.wait) && ms < MAX_WAIT_MS; ms++) {
		wake_worker();
		os_sleep_ms(1);
		if (live_ring_put(call))
			return true;
	}
	return false;
}

static void finish(struct live_task *live, u64 end_cycles)
{
	struct live_call *call = &live->call;
	s64 cycles = end_cycles - live->start_cycles;

	os_current_profile()->live_active = false;
	if (live->generation != READ_ONCE(generation) || !static_key_is_set(&live_key))
		return;
	call->tid = os_current_tid();
	call->end_cycles = end_cycles;
	call->ns = os_cycles_to_ns(max(cycles, (s64)0));
	if (!is_wanted(call))
		return;
	if (call->returned)
		live_capture_exit(call);
	this_cpu_inc(counters.nr_made);
	if (!live_ring_put(call) && !wait_for_room(call))
		this_cpu_inc(counters.nr_full);
	wake_worker();
}

/* A call cut short by its thread's death returns to nobody; one that was done has its value. */
void live_exit(long ret)
{
	struct profile_task *pt = os_current_profile();
	struct live_task *live = pt->live;
	u64 end_cycles = os_cycles();

	if (!pt->live_active)
		return;
	if (ret == RESTART_BLOCK)
		live->restart_nr = live->call.nr + 1;
	live->call.ret = ret;
	live->call.returned = !os_current_dying() || !(is_restart(ret) || ret == -EINTR);
	finish(live, end_cycles);
}

void live_task_exit(struct profile_task *pt)
{
	struct live_task *live = pt->live;

	if (pt->live_active) {
		live->call.returned = false;
		finish(live, os_cycles());
	}
	pt->live = NULL;
	pt->live_active = false;
	os_free(live);
}

/* For the hook, which asks no further for a call that is not in here. */
static void choose_calls(void)
{
	for (u64 nr = 0; nr < LIVE_NR_SYSCALLS; nr++) {
		u64 bit = 1ull << nr % 64;
		bool chosen = live_syscall(nr)->name ? filter.calls[nr / 64] & bit : filter.unnamed;

		live_chosen[nr / 64] = (live_chosen[nr / 64] & ~bit) | (chosen ? bit : 0);
	}
}

/* Process context. 0 or a negative errno, and then nothing has changed. */
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
		return -ENOMEM;
	while (xchg(&switching, true))
		os_wait_turn();
	strace_switch_live(false);
	flags = os_lock(&words_lock);
	filter = new;
	choose_calls();
	generation++;
	strscpy(words, text, sizeof(words));
	if (words[0] && words[strlen(words) - 1] == '\n')
		words[strlen(words) - 1] = '\0';
	os_unlock(&words_lock, flags);
	if (on)
		strace_switch_live(true);
	smp_store_release(&switching, false);
	return 0;
}

static int set_boot(const char *value)
{
	struct live_filter checked;

	if (strlen(value) >= sizeof(boot_words) || live_filter_parse(value, &checked))
		return -EINVAL;
	strscpy(boot_words, value, sizeof(boot_words));
	return 0;
}
BOOT_PARAM(profile_strace_live, "profile.strace_live",
	   "off|[-]all|[-]<class>|[-]<glob>[,...][,pid:<n>][,failed][,><n>us][,wait]", set_boot);

static int show_live(os_text_t *text)
{
	u64 printed = READ_ONCE(nr_printed);
	struct counters sum = sum_counters();
	unsigned long flags = os_lock(&words_lock);

	os_text_printf(text, "%s\n", words);
	os_unlock(&words_lock, flags);
	os_text_printf(text, "made %lu\nprinted %lu\nlost_no_room %lu\nlost_no_memory %lu\n",
		       (unsigned long)sum.nr_made, (unsigned long)printed,
		       (unsigned long)sum.nr_full, (unsigned long)sum.nr_no_memory);
	return 0;
}

static int write_live(const char *text)
{
	return strlen(text) >= MAX_WORDS ? -EINVAL : set_filter(text);
}

void live_init(void)
{
	if (os_worker_start(&worker, "strace") ||
	    os_add_file("profile/strace_live", show_live, write_live) ||
	    (boot_words[0] && set_filter(boot_words)))
		printk("profile: no memory for live lines\n");
}
