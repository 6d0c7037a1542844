// SPDX-License-Identifier: BSD-2-Clause
/*
 * Static keys: sites are switched while every CPU runs them, in threads with interrupts on and off
 * and in NMIs. A torn instruction would end the machine, a lost one would give a wrong answer.
 */

#include <lego/selftest.h>

#include <asm/apic.h>
#include <asm/irqflags.h>
#include <asm/processor.h>
#include <asm/uaccess.h>
#include <lego/atomic.h>
#include <lego/irq.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/static_key.h>

#include "busy.h"

#define MIN_SWITCHES 4
#define MAX_SWITCHES 12 /* all on a host that is fast enough */
#define MAX_BUSY     8	/* CPUs; with more, an emulator on a small host runs them in turn */
#define TIMEOUT_NS   (20 * NSEC_PER_SEC)

static struct static_key key, other_key;

/* Values that a torn instruction is unlikely to return. */
enum answer {
	OFF = 0x0ff0ff,
	ON = 0x11c0de,
};

static noinline enum answer first_site(void)
{
	return static_key_on(&key) ? ON : OFF;
}

static noinline enum answer second_site(void)
{
	return static_key_on(&key) ? ON : OFF;
}

static noinline enum answer other_site(void)
{
	return static_key_on(&other_key) ? ON : OFF;
}

static void expect_answers(enum answer key_sites, enum answer other_key_site)
{
	EXPECT_EQ(first_site(), key_sites);
	EXPECT_EQ(second_site(), key_sites);
	EXPECT_EQ(other_site(), other_key_site);
}

SELFTEST(static_key, all_sites_of_one_key)
{
	expect_answers(OFF, OFF);
	static_key_set(&key, true);
	expect_answers(ON, OFF);
	EXPECT(static_key_is_set(&key) && !static_key_is_set(&other_key));
	static_key_set(&key, true);
	expect_answers(ON, OFF);
	static_key_set(&other_key, true);
	expect_answers(ON, ON);
	static_key_set(&key, false);
	expect_answers(OFF, ON);
	static_key_set(&other_key, false);
	expect_answers(OFF, OFF);
}

static atomic_t nr_wrong;
static DEFINE_PER_CPU(u64, nr_nmi_visits);
static DEFINE_PER_CPU(u64, deepest_nmi);

static void visit(void)
{
	enum answer first = first_site(), second = second_site();

	if ((first != ON && first != OFF) || (second != ON && second != OFF))
		atomic_inc(&nr_wrong);
}

static void visit_twice(void)
{
	unsigned long flags;

	visit();
	flags = local_irq_save();
	visit();
	local_irq_restore(flags);
}

static void visit_in_nmi(void)
{
	visit();
	this_cpu_inc(nr_nmi_visits);
	if (this_cpu_read(irq_context) / NMI_OFFSET > this_cpu_read(deepest_nmi))
		this_cpu_write(deepest_nmi, this_cpu_read(irq_context) / NMI_OFFSET);
}

static void expect_on(void *on)
{
	enum answer want = on ? ON : OFF;

	if (first_site() != want || second_site() != want)
		atomic_inc(&nr_wrong);
}

static cpumask_t busy_cpus(void)
{
	return READ_ONCE(cpu_online_mask) & (BIT(MAX_BUSY) - 1);
}

/* Switches the key often. When static_key_set() returns, every CPU must see the new value. */
static void switch_often(bool with_nmis)
{
	u64 enough_ns = clock_monotonic_ns() + ENOUGH_NS;
	unsigned int cpu;

	for (int i = 0; i < MAX_SWITCHES; i++) {
		bool on = i % 2 == 0;

		if (on && i >= MIN_SWITCHES && clock_monotonic_ns() >= enough_ns)
			break;
		for_each_cpu_in(cpu, busy_cpus())
			if (with_nmis)
				apic_send_nmi(cpu);
		static_key_set(&key, on);
		smp_call_mask(READ_ONCE(cpu_online_mask), expect_on, on ? &key : NULL);
	}
}

static void storm(bool with_nmis)
{
	atomic_set(&nr_wrong, 0);
	busy_start(busy_cpus(), visit_twice);
	switch_often(with_nmis);
	busy_stop();
	EXPECT_EQ(atomic_read(&nr_wrong), 0);
}

SELFTEST(static_key, switched_while_all_cpus_run_it)
{
	storm(false);
}

SELFTEST(static_key, switched_in_nmis)
{
	unsigned int cpu;

	WRITE_ONCE(selftest_nmi_hook, visit_in_nmi);
	storm(true);
	WRITE_ONCE(selftest_nmi_hook, NULL);
	for_each_cpu_in(cpu, busy_cpus()) {
		EXPECT(per_cpu(nr_nmi_visits, cpu) > 0);
		/* A nested NMI would mean that the breakpoint returned by IRET. */
		EXPECT_EQ(per_cpu(deepest_nmi, cpu), 1);
	}
}

static u32 nr_nmis, nr_nmis_in_the_first;

/*
 * Sends an NMI, which stays pending, and causes an exception. If its return unblocked NMIs, the
 * pending one would arrive in the loop.
 */
static void fault_in_first_nmi(void)
{
	u64 end;

	if (nr_nmis++)
		return;
	apic_send_nmi(smp_processor_id());
	asm volatile("1:	ud2\n"
		     "2:\n" ASM_EXCEPTION("1b", "2b"));
	end = rdtsc() + tsc_khz;
	while (rdtsc() < end)
		cpu_relax();
	nr_nmis_in_the_first = READ_ONCE(nr_nmis);
}

/* An exception in an NMI returns without IRET, because IRET unblocks NMIs. */
SELFTEST(static_key, exception_in_nmi_keeps_nmis_blocked)
{
	unsigned long flags = local_irq_save();
	u64 end = rdtsc() + TIMEOUT_NS / NSEC_PER_MSEC * tsc_khz;

	nr_nmis = 0;
	WRITE_ONCE(selftest_nmi_hook, fault_in_first_nmi);
	apic_send_nmi(smp_processor_id());
	while (READ_ONCE(nr_nmis) < 2 && rdtsc() < end)
		cpu_relax();
	WRITE_ONCE(selftest_nmi_hook, NULL);
	local_irq_restore(flags);
	EXPECT_EQ(nr_nmis_in_the_first, 1);
	EXPECT_EQ(nr_nmis, 2);
}
