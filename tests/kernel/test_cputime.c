// SPDX-License-Identifier: BSD-2-Clause
/* The accounts of CPU time. tests/boot/test_cputime.py compares them with a count by QEMU. */
#include <lego/cputime.h>

#include <asm/irqflags.h>
#include <asm/processor.h>
#include <lego/sched.h>
#include <lego/selftest.h>
#include <lego/smp.h>
#include <lego/time.h>
#include <lego/timer.h>
#include <lego/uaccess.h>

#define SPIN_NS (2 * NSEC_PER_MSEC)

static void spin(void)
{
	u64 end_ns = clock_monotonic_ns() + SPIN_NS;

	while (clock_monotonic_ns() < end_ns)
		cpu_relax();
}

static bool handler_ran;

static void long_handler(struct timer *timer)
{
	spin();
	WRITE_ONCE(handler_ran, true);
}

static void let_it_interrupt(void)
{
	unsigned long flags = local_irq_save();
	struct timer timer;

	timer_setup(&timer, long_handler);
	handler_ran = false;
	timer_start(&timer, clock_monotonic_ns());
	local_irq_restore(flags);
	while (!READ_ONCE(handler_ran))
		cpu_relax();
}

static u64 ns_of(const struct cputime *after, const struct cputime *before, u32 owner)
{
	return cycles_to_ns(after->cycles[owner] - before->cycles[owner]);
}

/* The owners of a CPU's time have all of it, and each cycle once. */
SELFTEST(cputime, owners_sum_to_the_time)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		struct cputime time = { 0 };
		u64 sum = 0, total = cputime_add_cpu(cpu, &time);

		for (u32 i = 0; i < NR_CPUTIMES; i++)
			sum += time.cycles[i];
		EXPECT_EQ(sum, total);
		EXPECT((s64)time.cycles[CPUTIME_SYSTEM] > 0);
	}
}

#ifdef CONFIG_CPU_ACCOUNTING
static struct cputime own_time(void)
{
	struct cputime time;

	cputime_of_task(current, &time);
	return time;
}

SELFTEST(cputime, interrupts_are_not_the_threads_code)
{
	struct cputime before = own_time(), after;

	let_it_interrupt();
	after = own_time();
	EXPECT(ns_of(&after, &before, CPUTIME_IRQ) >= SPIN_NS);
	EXPECT_EQ(after.cycles[CPUTIME_USER], 0);
}

/* An interrupt in a report is no part of the report. */
SELFTEST(cputime, owners_nest)
{
	struct cputime before = own_time(), after;
	u32 owner = cputime_set_owner(CPUTIME_REPORT);
	unsigned long flags = local_irq_save();

	spin();
	local_irq_restore(flags);
	let_it_interrupt();
	EXPECT_EQ(cputime_set_owner(owner), CPUTIME_REPORT);
	after = own_time();
	EXPECT_EQ(owner, CPUTIME_SYSTEM);
	EXPECT(ns_of(&after, &before, CPUTIME_REPORT) >= SPIN_NS);
	EXPECT(ns_of(&after, &before, CPUTIME_IRQ) >= SPIN_NS);
	EXPECT_EQ(cputime_own(&after), after.cycles[CPUTIME_SYSTEM] + after.cycles[CPUTIME_FAULT] +
					       after.cycles[CPUTIME_EXCEPTION] +
					       after.cycles[CPUTIME_IRQ] +
					       after.cycles[CPUTIME_NMI]);
}

/* Also one that the kernel causes: here at an address that nothing is mapped at. */
SELFTEST(cputime, faults_are_counted)
{
	struct cputime before = own_time(), after;
	u64 word;

	EXPECT_EQ(copy_from_user(&word, (const void __user *)4096, sizeof(word)), -EFAULT);
	after = own_time();
	EXPECT(after.cycles[CPUTIME_FAULT] > before.cycles[CPUTIME_FAULT]);
	EXPECT_EQ(after.cycles[CPUTIME_EXCEPTION], before.cycles[CPUTIME_EXCEPTION]);
}

/* A thread that is preempted, or sleeps, in the time of an owner gets it back. */
SELFTEST(cputime, owners_survive_switches)
{
	u32 owner = cputime_set_owner(CPUTIME_REPORT);

	for (int i = 0; i < 10; i++) {
		sleep_until_ns(clock_monotonic_ns() + NSEC_PER_USEC);
		schedule();
	}
	EXPECT_EQ(cputime_set_owner(owner), CPUTIME_REPORT);
	EXPECT(own_time().cycles[CPUTIME_REPORT] > 0);
}

/* Here no process runs, so idle time and kernel threads are all of CPUTIME_SYSTEM. */
SELFTEST(cputime, parts_are_not_more_than_the_whole)
{
	for (int i = 0; i < 100; i++) {
		struct cputime_machine machine;

		cputime_of_machine(&machine);
		EXPECT(machine.idle_cycles + machine.kernel_thread_cycles <=
		       machine.all.cycles[CPUTIME_SYSTEM]);
	}
}
#endif

/* Sums that were read while CPUs changed them: none stays negative, and they have the total. */
SELFTEST(cputime, sums_are_limited_to_the_total)
{
	struct cputime time = { .cycles = { [CPUTIME_USER] = 50, [CPUTIME_IRQ] = 30 } };

	cputime_add_rest(&time, 100);
	EXPECT(time.cycles[CPUTIME_SYSTEM] == 20 && time.cycles[CPUTIME_USER] == 50);
	time.cycles[CPUTIME_NMI] = (u64)-10;
	cputime_add_rest(&time, 70);
	EXPECT(time.cycles[CPUTIME_NMI] == 0 && time.cycles[CPUTIME_IRQ] == 30);
	EXPECT(time.cycles[CPUTIME_USER] == 40 && time.cycles[CPUTIME_SYSTEM] == 0);
	cputime_add_rest(&time, (u64)-10);
	EXPECT(time.cycles[CPUTIME_USER] == 0 && time.cycles[CPUTIME_IRQ] == 0);
}
