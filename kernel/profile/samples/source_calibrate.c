// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures two values on one CPU, when the source is first switched on: how late the timer
 * interrupt comes when no code delays it, and what a sample costs beyond what the store measures
 * (entry, exit, and setting the timer again). For the cost, it times a loop without a sample and
 * with one.
 */

#include "source.h"

/* Measurements of lateness. */
#define NR_CALIBRATIONS	  24
#define NR_OUTLIERS	  3 /* the latest ones are ignored: the host may have delayed them */
#define CALIBRATION_HZ	  50000
#define MOST_EXACT_CYCLES 32 /* the spread under an emulator that counts instructions, at most */

#define NR_ROUNDS    9
#define MOST_MS	     5	  /* for all rounds; only if others take the time, they are fewer */
#define WORK_TIMER   2000 /* turns of the timed loop, which takes longer than a sample */
#define WORK_NMI     60000
#define SAMPLE_AT_US 1 /* after the start of the loop */
#define COST_HZ	     20000
#define NMI_HZ	     20000

static u64 calibration[NR_CALIBRATIONS];
static u32 nr_calibrations;

void source_note_lateness(u64 late_cycles)
{
	if (late_cycles && nr_calibrations < NR_CALIBRATIONS)
		calibration[nr_calibrations++] = late_cycles;
}

static int compare_cycles(const void *a, const void *b)
{
	return compare_u64(*(const u64 *)a, *(const u64 *)b);
}

/*
 * Returns the normal lateness of the timer, in cycles: how late it comes at most on this CPU while
 * the CPU spins or halts with interrupts on.
 */
static u64 measure_lateness(bool halt)
{
	u64 give_up = os_cycles() + os_cycles_per_second(), first, last;

	nr_calibrations = 0;
	source_time_here(true);
	while (pf_read_once(nr_calibrations) < NR_CALIBRATIONS && os_cycles() < give_up)
		os_wait_for_interrupt(halt);
	source_time_here(false);
	if (nr_calibrations < NR_CALIBRATIONS) {
		source.is_imprecise = true;
		return os_cycles_per_second(); /* hardly any interrupt is so late */
	}
	os_sort(calibration, nr_calibrations, sizeof(calibration[0]), compare_cycles);
	first = calibration[0];
	last = calibration[NR_CALIBRATIONS - 1 - NR_OUTLIERS];
	if (last - first <= MOST_EXACT_CYCLES)
		return last;
	if (last > 2 * first)
		source.is_imprecise = true;
	return calibration[NR_CALIBRATIONS * 3 / 4] * 9 / 8 + 1;
}

static u64 time_work(u32 nr_turns)
{
	u64 start = os_cycles();

	for (u32 i = 0; i < nr_turns; i++)
		pf_barrier();
	return os_cycles() - start;
}

/*
 * Returns what a sample costs beyond what the store measures, in cycles: the lower quartile of the
 * rounds, because ticks may lengthen half of them.
 */
static u64 measure_cost(u32 nr_turns, void (*begin)(void), void (*end)(void))
{
	u64 costs[NR_ROUNDS], without = ~0ull, nr_before, nr, self_before, self;
	u64 give_up = os_cycles() + os_cycles_per_second() / 1000 * MOST_MS;
	u32 nr_costs = 0;

	for (u32 i = 0; i < NR_ROUNDS && (!i || os_cycles() < give_up); i++)
		without = pf_min(without, time_work(nr_turns));
	give_up = os_cycles() + os_cycles_per_second() / 1000 * MOST_MS;
	for (u32 i = 0; i < NR_ROUNDS && (!i || os_cycles() < give_up); i++) {
		u64 with;

		sample_self_cost(&nr_before, &self_before);
		begin();
		with = time_work(nr_turns);
		end();
		sample_self_cost(&nr, &self);
		with -= pf_min(with, without + self - self_before);
		if (nr != nr_before)
			costs[nr_costs++] = with / (nr - nr_before);
	}
	os_sort(costs, nr_costs, sizeof(costs[0]), compare_cycles);
	return nr_costs ? costs[nr_costs / 4] : 0;
}

/* Sets one deadline within the loop. The next deadline is soon after the loop, as at high rates. */
static void begin_deadline(void)
{
	unsigned long flags;

	source_time_here(true);
	flags = os_irq_save();
	os_this_cpu_write(os_local(profile_deadline),
			  os_cycles() + os_cycles_per_second() / (1000000 / SAMPLE_AT_US));
	os_timer_rearm();
	os_irq_restore(flags);
}

static void end_deadline(void)
{
	source_time_here(false);
}

static void begin_nmis(void)
{
	bool jitter = false;

	os_nmi_start(NMI_HZ, &jitter, &os_per_cpu(source_cpus, 0).moves_nmis);
}

static void end_nmis(void)
{
	pf_write_once(os_per_cpu(source_cpus, 0).moves_nmis, false);
	os_nmi_stop();
}

void source_calibrate_nmis(void)
{
	static bool is_done;

	os_assert_process_context();
	if (is_done)
		return;
	is_done = true;
	source.nmi_sample_cycles = measure_cost(WORK_NMI, begin_nmis, end_nmis);
}

/* Takes samples to measure; the caller resets them afterwards. */
void source_calibrate(void)
{
	u64 busy, idle;

	os_assert_process_context();
	source_set_slots(CALIBRATION_HZ, true);
	busy = measure_lateness(false);
	idle = measure_lateness(true);
	source.idle_late_limit = pf_max(busy, idle);
	source.late_limit = busy;
	source_set_slots(COST_HZ, false);
	source.sample_cycles = measure_cost(WORK_TIMER, begin_deadline, end_deadline);
}
