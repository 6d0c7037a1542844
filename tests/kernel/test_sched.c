// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the scheduler, sleeping and timers. Each test starts kernel threads and waits until they
 * have counted themselves out. The wait is limited, so that a lost wake-up fails and does not hang.
 */

#include <lego/selftest.h>

#include <lego/account.h>
#include <lego/atomic.h>
#include <lego/errno.h>
#include <lego/mutex.h>
#include <lego/rw_mutex.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/time.h>
#include <lego/timer.h>
#include <lego/wait.h>

#include "sleep.h"

#define MAX_WORKERS    64
#define MAX_IDLE_TICKS 20

struct crew {
	atomic_t nr_left;
};

struct worker {
	struct crew *crew;
	void (*work)(struct worker *worker);
	unsigned int id;
};

static struct worker workers[MAX_WORKERS];

/* Decrements the count last: the next crew may start as soon as it is 0. */
static int run_worker(void *arg)
{
	struct worker *worker = arg;

	worker->work(worker);
	atomic_dec(&worker->crew->nr_left);
	return 0;
}

static void start_worker(struct crew *crew, unsigned int id, void (*work)(struct worker *worker))
{
	struct worker *worker = &workers[id];
	struct task *task;

	*worker = (struct worker){ .crew = crew, .work = work, .id = id };
	task = kthread_create(run_worker, worker, "selftest");
	EXPECT(!IS_ERR(task));
	if (IS_ERR(task))
		atomic_dec(&crew->nr_left);
	else
		task_wake(task);
}

static void start_crew(struct crew *crew, unsigned int nr, void (*work)(struct worker *worker))
{
	atomic_set(&crew->nr_left, (int)nr);
	for (unsigned int i = 0; i < nr; i++)
		start_worker(crew, i, work);
}

static bool crew_is_done(struct crew *crew)
{
	return becomes(!atomic_read(&crew->nr_left));
}

/* Returns true if all workers finished in time. */
static bool run_crew(struct crew *crew, unsigned int nr, void (*work)(struct worker *worker))
{
	start_crew(crew, nr, work);
	return crew_is_done(crew);
}

static struct crew crew;
static cpumask_t working_cpus;
static bool work_is_over;
static u64 first_ticks[CONFIG_NR_CPUS]; /* of each CPU, when its first worker ran */

static void spin_until_over(struct worker *worker)
{
	while (!READ_ONCE(work_is_over)) {
		unsigned int cpu = smp_processor_id();

		if (!(READ_ONCE(working_cpus) >> cpu & 1))
			first_ticks[cpu] = account_nr_ticks(cpu);
		atomic_or_bits(&working_cpus, BIT(cpu));
		cond_resched();
	}
}

/*
 * An idle CPU pulls a queued thread from another CPU, at its next tick at the latest. The limit is
 * in ticks, because a CPU that the host delays has no ticks.
 */
SELFTEST(sched, all_cpus_work)
{
	unsigned int nr = min(4 * nr_cpus, (unsigned int)MAX_WORKERS), cpu;
	u64 before[CONFIG_NR_CPUS];

	WRITE_ONCE(work_is_over, false);
	WRITE_ONCE(working_cpus, 0);
	start_crew(&crew, nr, spin_until_over);
	for_each_online_cpu(cpu)
		before[cpu] = account_nr_ticks(cpu);
	for_each_online_cpu(cpu) {
		EXPECT(becomes(READ_ONCE(working_cpus) >> cpu & 1));
		/* Negative if it worked already when all had been started. */
		EXPECT((s64)(first_ticks[cpu] - before[cpu]) <= MAX_IDLE_TICKS);
	}
	WRITE_ONCE(work_is_over, true);
	EXPECT(crew_is_done(&crew));
}

static void stay_put(struct worker *worker)
{
	unsigned int cpu = worker->id % nr_cpus;

	if (!cpu_online(cpu))
		return;
	sched_set_affinity(current, BIT(cpu));
	schedule();
	for (int i = 0; i < 200; i++) {
		if (i > 2)
			EXPECT_EQ(smp_processor_id(), cpu);
		if (i % 20 == 0)
			sleep_until_ns(clock_monotonic_ns() + NSEC_PER_MSEC);
		else
			sched_yield();
	}
}

SELFTEST(sched, affinity_is_kept)
{
	EXPECT(run_crew(&crew, min(2 * nr_cpus, (unsigned int)MAX_WORKERS), stay_put));
}

static DEFINE_MUTEX(mutex);
static unsigned long plain_count;

static void count_locked(struct worker *worker)
{
	for (int i = 0; i < 500; i++) {
		unsigned long seen;

		mutex_lock(&mutex);
		seen = READ_ONCE(plain_count);
		if (i % 50 == 0)
			sched_yield();
		WRITE_ONCE(plain_count, seen + 1);
		EXPECT(!mutex_trylock(&mutex));
		mutex_unlock(&mutex);
	}
}

SELFTEST(sched, mutex_excludes)
{
	plain_count = 0;
	ASSERT(run_crew(&crew, 16, count_locked));
	EXPECT_EQ(plain_count, 16 * 500);
	EXPECT(mutex_trylock(&mutex));
	mutex_unlock(&mutex);
}

static struct rw_mutex rw_mutex;
static unsigned long copy_of_plain_count;
static atomic_t nr_reading;
static bool had_company;

static void write_locked(void)
{
	rw_mutex_lock_write(&rw_mutex);
	EXPECT_EQ(atomic_read(&nr_reading), 0);
	WRITE_ONCE(plain_count, plain_count + 1);
	sched_yield();
	WRITE_ONCE(copy_of_plain_count, plain_count);
	rw_mutex_unlock_write(&rw_mutex);
}

/* Waits up to 20 ms for a second reader, until the test has seen two at once. */
static void wait_for_company(void)
{
	u64 end_ns = clock_monotonic_ns() + 20 * NSEC_PER_MSEC;

	do {
		sched_yield();
	} while (!READ_ONCE(had_company) && clock_monotonic_ns() < end_ns);
}

static void read_locked(void)
{
	rw_mutex_lock_read(&rw_mutex);
	if (atomic_add_return(&nr_reading, 1) > 1)
		WRITE_ONCE(had_company, true);
	EXPECT_EQ(READ_ONCE(plain_count), READ_ONCE(copy_of_plain_count));
	wait_for_company();
	EXPECT_EQ(READ_ONCE(plain_count), READ_ONCE(copy_of_plain_count));
	atomic_dec(&nr_reading);
	rw_mutex_unlock_read(&rw_mutex);
}

static void read_and_write(struct worker *worker)
{
	for (int i = 0; i < 200; i++) {
		if (worker->id % 4 == 0)
			write_locked();
		else
			read_locked();
	}
}

SELFTEST(sched, rw_mutex_excludes_writers_only)
{
	rw_mutex_init(&rw_mutex);
	plain_count = copy_of_plain_count = 0;
	atomic_set(&nr_reading, 0);
	had_company = false;
	ASSERT(run_crew(&crew, 16, read_and_write));
	EXPECT_EQ(plain_count, 4 * 200);
	EXPECT(had_company);
	rw_mutex_lock_write(&rw_mutex);
	rw_mutex_unlock_write(&rw_mutex);
}

static int nr_sleepers(void)
{
	unsigned long flags = spin_lock_irqsave(&rw_mutex.wq.lock);
	struct list_head *waiters = &rw_mutex.wq.waiters;
	int nr = 0;

	for (struct list_head *node = waiters->next; node != waiters; node = node->next)
		nr++;
	spin_unlock_irqrestore(&rw_mutex.wq.lock, flags);
	return nr;
}

/* Worker 0 has the lock. Workers 1 to 3 sleep for it as readers, and behind them 4 as a writer. */
static void downgrade(struct worker *worker)
{
	if (worker->id == 0) {
		rw_mutex_lock_write(&rw_mutex);
		EXPECT(becomes(nr_sleepers() == 4));
		rw_mutex_downgrade(&rw_mutex);
		EXPECT(becomes(atomic_read(&nr_reading) == 3));
		EXPECT(!rw_mutex_trylock_read(&rw_mutex)); /* a writer waits */
		EXPECT_EQ(READ_ONCE(plain_count), 0);
		rw_mutex_unlock_read(&rw_mutex);
	} else if (worker->id == 4) {
		EXPECT(becomes(nr_sleepers() == 3));
		rw_mutex_lock_write(&rw_mutex);
		WRITE_ONCE(plain_count, 1);
		rw_mutex_unlock_write(&rw_mutex);
	} else {
		EXPECT(becomes(READ_ONCE(rw_mutex.holders) == RW_MUTEX_WRITER));
		rw_mutex_lock_read(&rw_mutex);
		atomic_inc(&nr_reading);
		rw_mutex_unlock_read(&rw_mutex);
	}
}

SELFTEST(sched, downgraded_rw_mutex_lets_readers_in)
{
	rw_mutex_init(&rw_mutex);
	plain_count = 0;
	atomic_set(&nr_reading, 0);
	ASSERT(run_crew(&crew, 5, downgrade));
	EXPECT_EQ(plain_count, 1);
}

SELFTEST(sched, rw_mutex_trylock_read)
{
	rw_mutex_init(&rw_mutex);
	EXPECT(rw_mutex_trylock_read(&rw_mutex));
	EXPECT_EQ(rw_mutex.holders, 1);
	rw_mutex_unlock_read(&rw_mutex);
	rw_mutex_lock_write(&rw_mutex);
	EXPECT(!rw_mutex_trylock_read(&rw_mutex));
	rw_mutex_unlock_write(&rw_mutex);
	EXPECT_EQ(rw_mutex.holders, 0);
}

static DEFINE_SPINLOCK(spinlock);

static void count_spinning(struct worker *worker)
{
	for (int i = 0; i < 5000; i++) {
		unsigned long flags = spin_lock_irqsave(&spinlock);

		plain_count++;
		spin_unlock_irqrestore(&spinlock, flags);
	}
}

SELFTEST(sched, spinlock_excludes)
{
	plain_count = 0;
	ASSERT(run_crew(&crew, 8, count_spinning));
	EXPECT_EQ(plain_count, 8 * 5000);
}

#define NR_ROUNDS 2000

static struct wait_queue table = WAIT_QUEUE_INIT(table);
static unsigned int ball;

static void play(struct worker *worker)
{
	unsigned int id = worker->id;

	for (unsigned int i = 0; i < NR_ROUNDS; i++) {
		wait_event(&table, READ_ONCE(ball) % 2 == id);
		WRITE_ONCE(ball, ball + 1);
		wake_up_all(&table);
	}
}

SELFTEST(sched, pingpong_loses_no_wakeup)
{
	ball = 0;
	ASSERT(run_crew(&crew, 2, play));
	EXPECT_EQ(ball, 2 * NR_ROUNDS);
}

static void take_turn(struct worker *worker)
{
	for (unsigned int i = 0; i < 50; i++) {
		wait_event(&table, READ_ONCE(ball) == i * 8 + worker->id);
		WRITE_ONCE(ball, ball + 1);
		wake_up_all(&table);
	}
}

SELFTEST(sched, turns_are_in_order)
{
	ball = 0;
	ASSERT(run_crew(&crew, 8, take_turn));
	EXPECT_EQ(ball, 8 * 50);
}

static unsigned int tokens;

static void take_token(struct worker *worker)
{
	wait_event(&table, READ_ONCE(tokens) > 0);
	atomic_inc((atomic_t *)&ball);
}

static void give_tokens(struct worker *worker)
{
	if (worker->id) {
		take_token(worker);
		return;
	}
	sleep_until_ns(clock_monotonic_ns() + 20 * NSEC_PER_MSEC);
	WRITE_ONCE(tokens, 1);
	for (int i = 0; i < 9; i++)
		wake_up_one(&table);
}

SELFTEST(sched, wake_one_wakes_each)
{
	ball = 0;
	tokens = 0;
	ASSERT(run_crew(&crew, 10, give_tokens));
	EXPECT_EQ(ball, 9);
}

static void sleep_lengths(struct worker *worker)
{
	static const u64 lengths_ns[] = { 0, 1, 1000, 300000, 1000000, 2500000, 10000000 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths_ns);) {
		u64 start_ns = clock_monotonic_ns(), took_ns;

		EXPECT_EQ(sleep_until_ns(start_ns + lengths_ns[i]), 0);
		took_ns = clock_monotonic_ns() - start_ns;
		EXPECT(took_ns >= lengths_ns[i]);
		/*
		 * Repeats a sleep that was too long, since the host may have caused it. If the
		 * kernel did, the crew never finishes in time.
		 */
		if (took_ns < lengths_ns[i] + NSEC_PER_SEC)
			i++;
	}
}

SELFTEST(sched, sleeps_are_long_enough)
{
	EXPECT(run_crew(&crew, 8, sleep_lengths));
}

SELFTEST(sched, timeout_returns_time_left)
{
	u64 left_ns;

	WRITE_ONCE(current->state, TASK_UNINTERRUPTIBLE);
	EXPECT_EQ(schedule_timeout_ns(2 * NSEC_PER_MSEC), 0);
	/* The thread's state is running, so the call returns at once. */
	left_ns = schedule_timeout_ns(PATIENCE_NS);
	EXPECT(left_ns > 0 && left_ns <= PATIENCE_NS);
}

#define NR_TIMERS 20

static struct test_timer {
	struct timer timer;
	u64 fired_ns;
	unsigned int order;
} timers[NR_TIMERS];

static unsigned int nr_fired;

static void timer_fired(struct timer *timer)
{
	struct test_timer *test = container_of(timer, struct test_timer, timer);

	test->fired_ns = clock_monotonic_ns();
	test->order = nr_fired++;
}

/*
 * Timers started on one CPU in a scrambled order fire in the order of their times, and not early.
 */
SELFTEST(sched, timers_fire_in_order)
{
	u64 start_ns = clock_monotonic_ns();
	unsigned long flags = local_irq_save();

	nr_fired = 0;
	for (unsigned int i = 0; i < NR_TIMERS; i++) {
		unsigned int n = i * 7 % NR_TIMERS;

		timer_setup(&timers[n].timer, timer_fired);
		timer_start(&timers[n].timer, start_ns + (n + 1) * NSEC_PER_MSEC);
	}
	local_irq_restore(flags);
	EXPECT(becomes(READ_ONCE(nr_fired) == NR_TIMERS));
	for (unsigned int n = 0; n < NR_TIMERS; n++) {
		timer_cancel(&timers[n].timer);
		EXPECT_EQ(timers[n].order, n);
		EXPECT(timers[n].fired_ns >= start_ns + (n + 1) * NSEC_PER_MSEC);
	}
}

SELFTEST(sched, cancelled_timer_is_silent)
{
	u64 now_ns = clock_monotonic_ns();
	unsigned long flags = local_irq_save(); /* so that it cannot fire before the cancel */

	nr_fired = 0;
	timer_setup(&timers[0].timer, timer_fired);
	timer_start(&timers[0].timer, now_ns + 50 * NSEC_PER_MSEC);
	timer_cancel(&timers[0].timer);
	timer_cancel(&timers[0].timer);
	local_irq_restore(flags);
	sleep_until_ns(now_ns + 80 * NSEC_PER_MSEC);
	EXPECT_EQ(READ_ONCE(nr_fired), 0);
}

static void come_and_go(struct worker *worker)
{
	sched_yield();
}

/* Stacks and tasks of dead threads are reused. */
SELFTEST(sched, threads_come_and_go)
{
	for (int i = 0; i < 30; i++)
		ASSERT(run_crew(&crew, 16, come_and_go));
}

SELFTEST(time, cycles_to_ns_is_exact)
{
	u64 khz = tsc_khz;

	EXPECT_EQ(cycles_to_ns(0), 0);
	EXPECT_EQ(cycles_to_ns(khz), NSEC_PER_MSEC);
	EXPECT_EQ(cycles_to_ns(khz * 1000 * 3600 * 24 * 365), 365ULL * 24 * 3600 * NSEC_PER_SEC);
	EXPECT_EQ(cycles_to_ns(khz * 1000 + 1) - NSEC_PER_SEC, (NSEC_PER_MSEC + khz / 2) / khz);
}

/* The result is never early, and at most a nanosecond late. */
SELFTEST(time, ns_to_cycles_rounds_up)
{
	for (u64 ns = 1; ns < TIME_NEVER_NS / 16; ns = ns * 3 + 1) {
		u64 cycles = ns_to_cycles_up(ns);

		EXPECT(cycles_to_ns(cycles) >= ns);
		EXPECT(cycles_to_ns(cycles - 1) <= ns);
	}
	EXPECT_EQ(ns_to_cycles_up(0), 0);
	EXPECT_EQ(ns_to_cycles_up(3 * NSEC_PER_SEC), 3000 * tsc_khz);
}

SELFTEST(time, clocks_go_forward)
{
	u64 last_ns = clock_monotonic_ns(), day_ns = clock_realtime_ns();

	for (int i = 0; i < 10000; i++) {
		u64 now_ns = clock_monotonic_ns();

		if (now_ns < last_ns) {
			EXPECT(now_ns >= last_ns);
			return;
		}
		last_ns = now_ns;
	}
	EXPECT(clock_realtime_ns() >= day_ns);
}

/* A reader that is late, or whose clock is behind, makes no part shrink. */
SELFTEST(time, cpu_times_never_shrink)
{
	static const struct {
		u64 user, system, user_after, system_after;
	} steps[] = {
		{ 0, 100, 0, 100 },	    { 1000, 100, 1000, 100 },  { 1000, 200, 1000, 200 },
		{ 500, 650, 1000, 200 },    { 900, 2100, 1000, 2000 }, { 1500, 1900, 1400, 2000 },
		{ 1500, 2000, 1500, 2000 },
	};
	struct cpu_times times = { 0 };

	for (u32 i = 0; i < ARRAY_SIZE(steps); i++) {
		struct cputime time = { 0 };

		time.cycles[CPUTIME_USER] = ns_to_cycles_up(steps[i].user * NSEC_PER_USEC);
		time.cycles[CPUTIME_SYSTEM] = ns_to_cycles_up(steps[i].system * NSEC_PER_USEC);
		time.cycles[CPUTIME_REPORT] = time.cycles[CPUTIME_EXIT] = NSEC_PER_SEC;
		cpu_times_set(&times, &time);
		EXPECT_EQ((times.user_ns + 500) / NSEC_PER_USEC, steps[i].user_after);
		EXPECT_EQ((times.system_ns + 500) / NSEC_PER_USEC, steps[i].system_after);
	}
}

SELFTEST(time, udelay_is_long_enough)
{
	u64 start_ns = clock_monotonic_ns();

	udelay(1500);
	EXPECT(clock_monotonic_ns() - start_ns >= 1500 * NSEC_PER_USEC - 1);
}
