// SPDX-License-Identifier: BSD-2-Clause
/*
 * The timer interrupt. The local APIC's timer counts down once to the earliest of the CPU's
 * deadlines: its tick, CONFIG_HZ times a second, and what the profiler wants beside it. Deadlines
 * are TSC values and follow from each other, not from when the interrupt came, so the tick does
 * not drift. Ticks that were held up for longer than a tick are one.
 */
#include <asm/tick.h>

#include <asm/apic.h>
#include <asm/processor.h>
#include <asm/tsc.h>
#include <asm/uart.h>
#include <asm/vectors.h>
#include <lego/account.h>
#include <lego/boot.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/time.h>
#include <lego/timer.h>

DEFINE_PER_CPU(u64, timer_deadline);

static DEFINE_PER_CPU(u64, tick_deadline);
static u64 tick_cycles;
static u64 counts_per_cycle; /* of the APIC timer, times 2^32 */

void timer_rearm(void)
{
	u64 deadline = this_cpu_read(tick_deadline), now;

	profile_next_deadline(&deadline);
	this_cpu_write(timer_deadline, deadline);
	now = rdtsc();
	/* One count more than fits: never before the deadline. A tick's cycles need 32 bits. */
	if (likely(deadline > now))
		apic_timer_set(((deadline - now) * counts_per_cycle >> 32) + 1);
	else
		apic_timer_set(1);
}

static void tick(struct pt_regs *regs, u64 now)
{
	u64 deadline = this_cpu_read(tick_deadline) + tick_cycles;

	if (unlikely(deadline <= now))
		deadline += (now - deadline) / tick_cycles * tick_cycles + tick_cycles;
	this_cpu_write(tick_deadline, deadline);
	account_tick(regs);
	timer_tick();
	sched_tick();
	if (smp_processor_id() == 0)
		uart_poll_errors();
}

/*
 * The EOI comes last, and the timer is set before it: a deadline that passes meanwhile is kept.
 * Nothing here switches stacks: rescheduling waits for the return path.
 */
static void timer_interrupt(struct pt_regs *regs)
{
	u64 now = rdtsc();

	profile_tick(regs);
	if (now >= this_cpu_read(tick_deadline))
		tick(regs, now);
	timer_rearm();
	apic_eoi();
}

void clock_start_tick(void)
{
	apic_timer_oneshot();
	tick_cycles = tsc_khz * 1000 / CONFIG_HZ;
	counts_per_cycle = (apic_timer_hz << 32) / (tsc_khz * 1000);
	this_cpu_write(tick_deadline, rdtsc() + tick_cycles);
	timer_rearm();
}

void tick_init(void)
{
	irq_set_handler(VECTOR_TIMER, timer_interrupt);
}
