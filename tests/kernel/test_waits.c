// SPDX-License-Identifier: BSD-2-Clause
/* Compares the records of the wait profiler with waits of known lengths. */
#include "../../kernel/profile/waits/waits.h"
#include "sleep.h"

#include <lego/mutex.h>
#include <lego/selftest.h>
#include <lego/timer.h>

#define SLEEP_NS (2 * NSEC_PER_MSEC)
#define SPIN_US	 200

/* The sums of all records of one kind and name. */
struct found {
	u64 nr, asleep_ns, ready_ns, max_ns;
	const struct wait_record *last;
};

static struct found find_waits(const char *name, enum wait_kind kind)
{
	struct found found = { 0 };
	unsigned int cpu;

	waits_pin();
	for_each_possible_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			struct wait_counts counts;

			if (rec->kind != kind || !rec->name || strcmp(rec->name, name))
				continue;
			counts = waits_read(cpu, rec);
			found.nr += counts.nr;
			found.asleep_ns += cycles_to_ns(counts.asleep_cycles);
			found.ready_ns += cycles_to_ns(counts.ready_cycles);
			found.max_ns = max(found.max_ns, cycles_to_ns(counts.max_cycles));
			found.last = rec;
		}
	}
	waits_unpin();
	return found;
}

/* Sleeps once. If the host delays the CPU, the time may be over before the thread sleeps. */
static void wait_for(const char *name)
{
	u64 nr = current->nr_voluntary;

	do {
		WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
		task_waits_for(name, 0);
		schedule_timeout_ns(SLEEP_NS);
	} while (current->nr_voluntary == nr);
}

SELFTEST(waits, sleeps_are_counted)
{
	static const char name[] = "test sleep";
	u64 start_ns, slept_ns = 0;
	struct found found;

	waits_reset();
	for (int i = 0; i < 3; i++) {
		start_ns = clock_monotonic_ns();
		wait_for(name);
		slept_ns += clock_monotonic_ns() - start_ns;
	}
	found = find_waits(name, WAIT_SLEPT);
	EXPECT_EQ(found.nr, 3);
	EXPECT(found.max_ns >= SLEEP_NS - NSEC_PER_MSEC / 10);
	EXPECT(found.asleep_ns >= 3 * (SLEEP_NS - NSEC_PER_MSEC / 10));
	EXPECT(found.asleep_ns + found.ready_ns <= slept_ns);
	EXPECT(found.last->waker && found.last->waker->kind == WAKER_INTERRUPT);
}

static DEFINE_MUTEX(test_mutex);
static struct wait_queue over = WAIT_QUEUE_INIT(over);
static bool is_over;

static int keep_mutex(void *unused)
{
	mutex_lock(&test_mutex);
	wait_for("test keeper");
	mutex_unlock(&test_mutex);
	WRITE_ONCE(is_over, true);
	wake_up_all(&over);
	return 0;
}

SELFTEST(waits, a_mutex_has_its_name_and_its_holder)
{
	struct task *task = kthread_create(keep_mutex, NULL, "keeper");
	struct found found;

	EXPECT(!IS_ERR(task));
	waits_reset();
	is_over = false;
	task_wake(task);
	EXPECT(becomes(READ_ONCE(test_mutex.owner) || READ_ONCE(is_over)));
	mutex_lock(&test_mutex);
	mutex_unlock(&test_mutex);
	wait_event(&over, READ_ONCE(is_over));
	/* If the host delayed this thread, it got the mutex without waiting. */
	found = find_waits("test_mutex", WAIT_SLEPT);
	EXPECT(found.nr <= 1);
	if (found.nr) {
		EXPECT(found.last->waker && found.last->waker->kind == WAKER_THREAD);
		EXPECT(!strcmp((const char *)found.last->waker->comm, "keeper"));
	}
}

static DEFINE_SPINLOCK(test_spinlock);
static bool is_kept, is_wanted;

/* Holds the lock with interrupts off until SPIN_US after the other thread is about to take it. */
static int keep_spinlock(void *unused)
{
	unsigned long flags = spin_lock_irqsave(&test_spinlock);
	u64 end_ns = clock_monotonic_ns() + PATIENCE_NS;

	WRITE_ONCE(is_kept, true);
	while (!READ_ONCE(is_wanted) && clock_monotonic_ns() < end_ns)
		cpu_relax();
	udelay(SPIN_US);
	spin_unlock_irqrestore(&test_spinlock, flags);
	WRITE_ONCE(is_over, true);
	wake_up_all(&over);
	return 0;
}

/*
 * Takes the lock that a thread on another CPU holds. Returns whether it was held. With only one
 * CPU, the other thread releases it before this one can run.
 */
static bool contend(void)
{
	struct task *task = kthread_create(keep_spinlock, NULL, "keeper");
	bool was_kept;

	EXPECT(!IS_ERR(task));
	is_over = is_kept = false;
	is_wanted = nr_cpus == 1;
	sched_set_affinity(task, BIT(nr_cpus - 1));
	task_wake(task);
	EXPECT(becomes(READ_ONCE(is_kept)));
	WRITE_ONCE(is_wanted, true);
	was_kept = spin_is_locked(&test_spinlock);
	spin_lock(&test_spinlock);
	spin_unlock(&test_spinlock);
	wait_event(&over, READ_ONCE(is_over));
	return was_kept;
}

/*
 * The lock may be free when this thread takes it: if the host delays this CPU, or there is only
 * one.
 */
SELFTEST(waits, spinning_is_counted)
{
	u64 nr = 0;

	waits_reset();
	sched_set_affinity(current, BIT(0));
	for (int i = 0; i < 20; i++)
		nr += contend();
	sched_set_affinity(current, ~0UL);
	EXPECT(nr || nr_cpus == 1);
	EXPECT(find_waits("&test_spinlock", WAIT_SPUN).nr <= nr);
	EXPECT(find_waits("&test_spinlock", WAIT_SPUN).nr >= nr / 2);
	EXPECT_EQ(find_waits("&test_spinlock", WAIT_SLEPT).nr, 0);
	if (nr)
		EXPECT(find_waits("&test_spinlock", WAIT_SPUN).max_ns > SPIN_US * 1000 / 2);
}

static u64 life_cycles, cpu_cycles, wait_cycles;

/* Returns the sum of all waits of the current thread, in cycles. No other thread has its name. */
static u64 waits_of_this_thread(void)
{
	unsigned int cpu;
	u64 cycles = 0;

	waits_pin();
	for_each_possible_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			struct wait_counts counts = waits_read(cpu, rec);

			if ((rec->kind == WAIT_SLEPT || rec->kind == WAIT_PREEMPTED) &&
			    !strcmp((const char *)rec->comm, current->comm))
				cycles += counts.asleep_cycles + counts.ready_cycles;
		}
	}
	waits_unpin();
	return cycles;
}

static int live(void *unused)
{
	unsigned long flags;
	u64 now, nr_waits;

	for (int i = 0; i < 5; i++) {
		wait_for("test life");
		sched_yield();
	}
	do { /* again if preempted in between */
		nr_waits = READ_ONCE(current->profile.waits.nr_waits);
		wait_cycles = waits_of_this_thread();
		flags = local_irq_save();
		now = rdtsc();
		life_cycles = now - current->profile.waits.created_cycles;
		cpu_cycles = current->sum_exec_cycles + now - current->exec_start_cycles;
		local_irq_restore(flags);
	} while (READ_ONCE(current->profile.waits.nr_waits) != nr_waits);
	WRITE_ONCE(is_over, true);
	wake_up_all(&over);
	return 0;
}

/* CPU time and waits add up to the time since the thread was created, to the cycle. */
SELFTEST(waits, cpu_time_and_waits_add_up_to_lifetime)
{
	struct task *task;

	waits_reset();
	is_over = false;
	task = kthread_create(live, NULL, "life");
	EXPECT(!IS_ERR(task));
	task_wake(task);
	wait_event(&over, READ_ONCE(is_over));
	EXPECT_EQ(waits_read_lost().nr, 0);
	EXPECT(cpu_cycles > 0 && cycles_to_ns(wait_cycles) > 4 * SLEEP_NS);
	EXPECT_EQ(cpu_cycles + wait_cycles, life_cycles);
}

SELFTEST(waits, a_reset_forgets)
{
	static const char name[] = "test reset";

	wait_for(name);
	EXPECT(find_waits(name, WAIT_SLEPT).nr > 0);
	waits_reset();
	EXPECT_EQ(find_waits(name, WAIT_SLEPT).nr, 0);
	wait_for(name);
	EXPECT_EQ(find_waits(name, WAIT_SLEPT).nr, 1);
}

/* A reset leaves records unchanged while a reader has pinned them. */
SELFTEST(waits, pinned_records_stay)
{
	static const char name[] = "test pin";
	const struct wait_record *rec;
	struct found found;

	waits_reset();
	wait_for(name);
	waits_pin();
	found = find_waits(name, WAIT_SLEPT);
	EXPECT_EQ(found.nr, 1);
	rec = found.last;
	waits_reset();
	wait_for(name);
	EXPECT(rec->name == name);
	EXPECT_EQ(rec->nr, 1);
	waits_unpin();
	EXPECT(waits_read_lost().nr == 0); /* lost in the old generation */
	wait_for(name);
	/*
	 * The wait before is stored, too, if it ended on a CPU whose store had no records to keep.
	 */
	found = find_waits(name, WAIT_SLEPT);
	EXPECT(found.nr == 1 || found.nr == 2);
}

#define NR_ROUNDS 20

static u32 round_to_wait, round_done;

static int wait_in_rounds(void *name)
{
	for (u32 i = 1; i <= NR_ROUNDS; i++) {
		while (READ_ONCE(round_to_wait) < i)
			cond_resched();
		wait_for(name);
		WRITE_ONCE(round_done, i);
	}
	return 0;
}

/* Reading after a reset, before a CPU's first wait, must not lose that wait. */
SELFTEST(waits, reading_loses_no_first_wait)
{
	static const char name[] = "test look";
	struct task *task;

	if (!cpu_online(1))
		return;
	round_to_wait = round_done = 0;
	task = kthread_create(wait_in_rounds, (void *)name, "rounds");
	ASSERT(!IS_ERR(task));
	sched_set_affinity(task, BIT(1));
	sched_set_affinity(current, BIT(0));
	task_wake(task);
	for (u32 i = 1; i <= NR_ROUNDS; i++) {
		waits_reset();
		WRITE_ONCE(round_to_wait, i);
		while (READ_ONCE(round_done) < i) {
			waits_pin();
			waits_unpin();
			cond_resched();
		}
		EXPECT_EQ(find_waits(name, WAIT_SLEPT).nr, 1);
	}
	sched_set_affinity(current, ~0UL);
}

SELFTEST(waits, migrations_are_counted)
{
	u64 allowed = current->cpus_allowed, start, nr = nr_cpus > 1 ? 6 : 0;

	sched_set_affinity(current, BIT(0));
	start = current->profile.waits.nr_migrations;
	for (int i = 0; i < nr; i++)
		sched_set_affinity(current, BIT((i + 1) % 2));
	EXPECT_EQ(current->profile.waits.nr_migrations - start, nr);
	sched_set_affinity(current, allowed);
}

/* Does what schedule() does for a wait, without sleeping. */
static void pretend_to_wait(const char *name)
{
	unsigned long flags = local_irq_save();

	task_waits_for(name, 0);
	current->profile.waits.out_cycles = rdtsc();
	current->profile.waits.woken_cycles = current->profile.waits.out_cycles;
	profile_wait_ended(rdtsc());
	local_irq_restore(flags);
}

static const char many_names[4096];

/*
 * Fills the store with waits of different names. A reader has pinned it, so nothing makes room.
 * Waits that do not fit are counted as lost.
 */
SELFTEST(waits, full_store_counts_lost_waits)
{
	u64 nr = 0;

	waits_reset();
	pretend_to_wait(many_names); /* empties the store */
	waits_pin();
	for (int i = 0; i < ARRAY_SIZE(many_names) && !waits_read_lost().nr; i++, nr++)
		pretend_to_wait(&many_names[i]);
	EXPECT(nr > 100 && waits_read_lost().nr > 0);
	waits_unpin();
	waits_reset();
	wait_for("test sleep");
	EXPECT_EQ(waits_read_lost().nr, 0);
	EXPECT_EQ(find_waits("test sleep", WAIT_SLEPT).nr, 1);
}

/* More waits than the store has room for, and the worker makes room: none is lost. */
SELFTEST(waits, a_long_run_loses_none)
{
	u64 allowed = current->cpus_allowed, nr = 0;
	unsigned int cpu;

	sched_set_affinity(current, BIT(0));
	waits_reset();
	for (int i = 0; i < 2 * ARRAY_SIZE(many_names); i++) {
		pretend_to_wait(&many_names[i % ARRAY_SIZE(many_names)]);
		if (i % 64 == 0)
			stack_collect();
	}
	EXPECT_EQ(waits_read_lost().nr, 0);
	waits_pin();
	for_each_possible_cpu(cpu) {
		const struct wait_record *rec = NULL;

		while ((rec = waits_next(cpu, rec))) {
			if (rec->kind == WAIT_SLEPT)
				nr += waits_read(cpu, rec).nr;
		}
	}
	waits_unpin();
	EXPECT(nr >= 2 * ARRAY_SIZE(many_names));
	sched_set_affinity(current, allowed);
	waits_reset();
}
