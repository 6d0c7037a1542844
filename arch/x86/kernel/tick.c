// SPDX-License-Identifier: BSD-2-Clause
/*
 * The timer interrupt. The local APIC's timer counts down once to the earliest of the CPU's
 * deadlines: its tick, tick_hz times a second, its first kernel timer, and the profiler's next
 * sample. Deadlines are TSC values. The next tick is computed from the last deadline, not from the
 * time of the interrupt, so the tick does not drift. If the interrupt is late by several ticks,
 * they count as one.
 *
 * Under QEMU's -icount, all CPUs take turns on one thread of the host. A turn ends at `pause`, at
 * `hlt`, or at a deadline of any CPU's timer. After a deadline, QEMU gives time to the CPU with the
 * lowest number that does not halt, so that threads that compute would starve those on later CPUs.
 * Therefore ticks hand on the time: each busy CPU in turn owns the time from one tick to the next,
 * and the others execute `pause` in the handler, so QEMU comes to the owner. This works because all
 * CPUs have their ticks at the same moment, so all of them are in the handler. NMIs of the profiler
 * do the same: at 20 kHz, one CPU would have nearly all of the time otherwise. CPUs that run a
 * killed thread come first, because it may wait for other CPUs many times before it ends. A tick
 * costs some 70 instructions more with 4 CPUs and 120 with 8, which is 0.03 % and 0.1 % of the
 * time.
 */
#include <asm/tick.h>

#include <asm/apic.h>
#include <asm/processor.h>
#include <asm/tsc.h>
#include <asm/uart.h>
#include <asm/vectors.h>
#include <lego/account.h>
#include <lego/boot.h>
#include <lego/cputime.h>
#include <lego/errno.h>
#include <lego/params.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/time.h>
#include <lego/timer.h>

u32 tick_hz = CONFIG_HZ;

DEFINE_PER_CPU(u64, timer_deadline);

/*
 * How long the handlers of an NMI take on all CPUs, and how often a CPU may give up its turn in
 * one: once for the others' handlers, once because setting the timer of NMIs ends a turn, once for
 * the owner.
 */
#define NMI_ROUND_US  20
#define MAX_NMI_TURNS 3

static DEFINE_PER_CPU(u64, tick_deadline);
/*
 * When the tick or the first kernel timer is due, whichever is earlier. The timer may have been
 * cancelled since.
 */
static DEFINE_PER_CPU(u64, kernel_deadline);
static u64 tick_cycles;
static u64 counts_per_cycle; /* of the APIC timer, times 2^32 */

/* Accepts 2 to CONFIG_HZ: with less than 2, a tick's cycles would not fit into 32 bits. */
static int set_tick_hz(const char *value)
{
	u64 hz;

	if (parse_u64(value, &hz) || hz < 2 || hz > CONFIG_HZ)
		return -EINVAL;
	tick_hz = hz;
	return 0;
}
/*
 * Scheduler ticks of each CPU in a second: CONFIG_HZ (1000) by default. Fewer make exact
 * comparisons quieter.
 */
BOOT_PARAM(tick_hz, "tick_hz", "<2 to CONFIG_HZ>", set_tick_hz);

static __always_inline void rearm(void)
{
	u64 deadline = this_cpu_read(kernel_deadline), now;

	profile_next_deadline(&deadline);
	this_cpu_write(timer_deadline, deadline);
	now = rdtsc();
	/*
	 * Rounded up by one count, so that it never comes before the deadline. A tick's cycles fit
	 * into 32 bits.
	 */
	if (likely(deadline > now))
		apic_timer_set(((deadline - now) * counts_per_cycle >> 32) + 1);
	else
		apic_timer_set(1);
}

void timer_rearm(void)
{
	rearm();
}

void tick_interrupt_by(u64 deadline)
{
	/*
	 * kernel_deadline is 0 before the tick starts, and in the past while the handler runs; both
	 * set the timer later.
	 */
	if (deadline >= this_cpu_read(kernel_deadline))
		return;
	this_cpu_write(kernel_deadline, deadline);
	if (deadline < this_cpu_read(timer_deadline))
		timer_rearm();
}

/* Timers that are due may be left. For them the interrupt comes a microsecond after this one. */
static void update_kernel_deadline(void)
{
	u64 next = min(this_cpu_read(tick_deadline), timer_next_cycles());

	this_cpu_write(kernel_deadline, max(next, rdtsc() + tsc_khz / 1000));
}

static void tick(struct pt_regs *regs, u64 now)
{
	u64 deadline = this_cpu_read(tick_deadline) + tick_cycles;

	if (unlikely(deadline <= now))
		deadline += (now - deadline) / tick_cycles * tick_cycles + tick_cycles;
	this_cpu_write(tick_deadline, deadline);
	account_tick(regs);
	timer_run(now);
	sched_tick();
	if (smp_processor_id() == 0)
		uart_poll_errors();
}

static noinline void run_kernel_deadline(struct pt_regs *regs, u64 now)
{
	if (now >= this_cpu_read(tick_deadline))
		tick(regs, now);
	else
		timer_run(now);
	update_kernel_deadline();
}

static DEFINE_PER_CPU(bool, runs_killed); /* as its last tick has found it */

static unsigned int time_owner; /* from the last tick to the next */

/* Returns the CPU that owns the time from the last tick to the next. */
static unsigned int turn_owner(void)
{
	unsigned int cpu, nr = 0, busy[CONFIG_NR_CPUS];
	bool any_killed = false, killed;

	for_each_online_cpu(cpu) {
		killed = READ_ONCE(per_cpu(runs_killed, cpu));
		if (killed && !any_killed)
			nr = 0;
		any_killed |= killed;
		if (killed || (!any_killed && sched_nr_runnable(cpu)))
			busy[nr++] = cpu;
	}
	return nr ? busy[rdtsc() / tick_cycles % nr] : smp_processor_id();
}

/*
 * Calls no function: if calls are traced, NMIs would take all of the time.
 *
 * The CPUs after the owner leave the loop when the owner's time is over, and take the next NMI with
 * the others.
 */
notrace void tick_leave_nmi(u64 begin_cycles)
{
	for (int i = 0; i < MAX_NMI_TURNS; i++) {
		if (rdtsc() - begin_cycles >= tsc_khz / 1000 * NMI_ROUND_US)
			break;
		if (READ_ONCE(time_owner) == smp_processor_id())
			break;
		cpu_relax();
	}
}

/* Lets other CPUs run. That time belongs to the code that this handler interrupts. */
static void give_turn(void)
{
	u32 owner = cputime_set_owner(this_cpu_read(cpu_account.interrupted));

	cpu_relax();
	cputime_set_owner(owner);
}

/*
 * The handler. It sets the timer before the EOI, so that a deadline that passes in between is not
 * lost. It does not switch tasks: the return path reschedules.
 */
static void timer_interrupt(struct pt_regs *regs)
{
	u64 now = rdtsc();
	bool ticks = now >= this_cpu_read(tick_deadline);

	profile_trace_tick(local_timer_entry, VECTOR_TIMER);
	profile_tick(regs, now);
	if (now >= this_cpu_read(kernel_deadline))
		run_kernel_deadline(regs, now);
	/*
	 * Lets other CPUs take their samples. Four busy CPUs then miss 5 % of deadlines at 20 kHz,
	 * and 12 % without this.
	 */
	if (unlikely(cpus_take_turns) && !ticks)
		give_turn();
	this_cpu_write(runs_killed, task_killed(current));
	rearm();
	profile_trace_tick(local_timer_exit, VECTOR_TIMER);
	apic_eoi();
	/* After the timer is set: setting it can end the turn, which the owner needs. */
	if (unlikely(cpus_take_turns) && ticks) {
		unsigned int owner = turn_owner();

		WRITE_ONCE(time_owner, owner);
		if (owner != smp_processor_id())
			give_turn();
	}
}

void clock_start_tick(void)
{
	u64 first;

	apic_timer_oneshot();
	tick_cycles = tsc_khz * 1000 / tick_hz;
	counts_per_cycle = (apic_timer_hz << 32) / (tsc_khz * 1000);
	first = rdtsc() + tick_cycles;
	if (cpus_take_turns)
		first -= first % tick_cycles;
	this_cpu_write(tick_deadline, first);
	update_kernel_deadline();
	timer_rearm();
}

void tick_init(void)
{
	irq_set_handler(VECTOR_TIMER, timer_interrupt);
}
