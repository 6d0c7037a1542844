// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sysrq keys. After a serial BREAK, the next byte within a few seconds is a key. A thread handles
 * the keys in the order in which they were typed, because a report takes long, and an interrupt
 * handler would block the CPU for that time. The interrupt handler puts the keys into a ring.
 *
 * If the machine hangs, the thread may never run. So a key that is typed again before the thread
 * has handled it is handled in the interrupt, and so is a key that finds the ring full. A crash is
 * always handled there.
 */
#include <lego/sysrq.h>

#include <asm/processor.h>
#include <lego/atomic.h>
#include <lego/printk.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/time.h>
#include <lego/worker.h>

#define SYSRQ_TIMEOUT_NS (5 * NSEC_PER_SEC)

#define NR_WAITING 16 /* a power of 2 */

extern const struct sysrq_key __start_sysrq_keys[], __stop_sysrq_keys[];

/* Written only by the boot CPU's UART interrupt and tick, which do not interrupt each other. */
static bool armed;
static u64 armed_until_ns;
static const struct sysrq_key *waiting[NR_WAITING];
static u32 nr_typed; /* keys ever put into waiting[] */

static u32 nr_done; /* keys handled; written only by the thread */
static bool has_thread;

void sysrq_break(void)
{
	WRITE_ONCE(armed_until_ns, clock_monotonic_ns() + SYSRQ_TIMEOUT_NS);
	WRITE_ONCE(armed, true);
}

bool sysrq_is_armed(void)
{
	return READ_ONCE(armed) && clock_monotonic_ns() < READ_ONCE(armed_until_ns);
}

static const struct sysrq_key *find_key(u8 letter)
{
	const struct sysrq_key *key;

	for (key = __start_sysrq_keys; key < __stop_sysrq_keys; key++) {
		if (key->letter == letter)
			return key;
	}
	return NULL;
}

/* Prints the keys in alphabetical order; the linker's order is arbitrary. */
static void print_help(void)
{
	for (u8 letter = 'a'; letter <= 'z'; letter++) {
		const struct sysrq_key *key = find_key(letter);

		if (key)
			printk("sysrq: %c  %s\n", letter, key->help);
	}
	printk("sysrq: if a key does nothing, type BREAK and the key again\n");
}

static bool waits_wanted;

static void obey_waiting(void)
{
	if (xchg(&waits_wanted, false))
		sysrq_run('w');
	/* Pairs with the release in leave_to_thread(): the slot has the key. */
	while (nr_done != smp_load_acquire(&nr_typed)) {
		waiting[nr_done % NR_WAITING]->run();
		/* Pairs with the acquire in obey(), for the slot, and in sysrq_finish(). */
		smp_store_release(&nr_done, nr_done + 1);
	}
}

static struct worker worker = WORKER_INIT(worker, obey_waiting);

void sysrq_list_waits(void)
{
	WRITE_ONCE(waits_wanted, true);
	worker_wake(&worker);
}

static bool is_waiting(const struct sysrq_key *key)
{
	for (u32 nr = READ_ONCE(nr_done); nr != nr_typed; nr++) {
		if (waiting[nr % NR_WAITING] == key)
			return true;
	}
	return false;
}

static void leave_to_thread(const struct sysrq_key *key)
{
	waiting[nr_typed % NR_WAITING] = key;
	/* Pairs with the acquire in obey_waiting(). */
	smp_store_release(&nr_typed, nr_typed + 1);
	worker_wake(&worker);
}

/* Handles a key in the interrupt, or leaves it to the thread. */
static void obey(const struct sysrq_key *key)
{
	/* Pairs with the release in obey_waiting(): the slot has been read. */
	bool is_full = nr_typed - smp_load_acquire(&nr_done) == NR_WAITING;
	bool needs_thread = key->context == SYSRQ_THREAD;

	if (needs_thread && is_full)
		printk("sysrq: ignored: %d keys are waiting\n", NR_WAITING);
	else if (needs_thread || (key->context == SYSRQ_ANY && READ_ONCE(has_thread) && !is_full &&
				  !is_waiting(key)))
		leave_to_thread(key);
	else
		key->run();
}

bool sysrq_byte(u8 byte)
{
	bool was_armed = sysrq_is_armed();
	const struct sysrq_key *key;

	WRITE_ONCE(armed, false);
	if (!was_armed)
		return false;
	if (!byte) { /* another BREAK, received together with the first one */
		sysrq_break();
		return true;
	}

	key = find_key(byte);
	if (key) {
		printk("sysrq: %s\n", key->help);
	} else {
		printk("sysrq: no such key; there are:\n");
		key = find_key('h');
	}
	obey(key);
	return true;
}

bool sysrq_run(u8 letter)
{
	const struct sysrq_key *key = find_key(letter);

	if (!key)
		return false;
	printk("sysrq: %s\n", key->help);
	key->run();
	return true;
}

void sysrq_start(void)
{
	int error = worker_start(&worker, "sysrq");

	WRITE_ONCE(has_thread, !error);
	if (error)
		printk("sysrq: no memory for a thread: keys are obeyed in the interrupt\n");
}

void sysrq_finish(void)
{
	u32 nr = READ_ONCE(nr_typed);

	/* Pairs with the release in obey_waiting(). */
	while (READ_ONCE(has_thread) && (s32)(smp_load_acquire(&nr_done) - nr) < 0) {
		cpu_relax();
		cond_resched();
	}
}

SYSRQ_KEY(help, 'h', "list the keys", print_help);

/*
 * Crashes by a real fault, so that the whole path from the exception to the report is used. The
 * address is non-canonical, because no page table can map that. The first page tables map address
 * 0.
 */
static void sysrq_crash(void)
{
	volatile int *nowhere = (int *)0xdead000000000000;

	asm volatile("" : "+r"(nowhere));
	*nowhere = 0;
}

SYSRQ_KEY_AT_ONCE(crash, 'c', "crash on purpose", sysrq_crash);

static bool profile_is_missing(void)
{
	if (IS_ENABLED(CONFIG_PROFILE))
		return false;
	printk("sysrq: profiling is not built in\n");
	return true;
}

static void report_profile(void)
{
	if (profile_is_missing())
		return;
	profile_report("sysrq");
}

static void reset_profile(void)
{
	if (profile_is_missing())
		return;
	profile_reset();
}

SYSRQ_KEY(profile_report, 'p', "print the profiler's report", report_profile);
SYSRQ_KEY(profile_reset, 'z', "reset the profiler's counters", reset_profile);
