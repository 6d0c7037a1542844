// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sysrq.h>

#include <asm/irqflags.h>
#include <lego/printk.h>
#include <lego/profile.h>
#include <lego/time.h>

/*
 * A serial BREAK arms the next byte for a few seconds. Only the boot CPU's UART interrupt and
 * tick change the state, so it needs no lock.
 */

#define SYSRQ_TIMEOUT_NS (5 * NSEC_PER_SEC)

extern const struct sysrq_key __start_sysrq_keys[], __stop_sysrq_keys[];

static bool armed;
static u64 armed_until_ns;

void sysrq_break(void)
{
	WRITE_ONCE(armed_until_ns, clock_monotonic_ns() + SYSRQ_TIMEOUT_NS);
	WRITE_ONCE(armed, true);
}

bool sysrq_is_armed(void)
{
	return READ_ONCE(armed) && clock_monotonic_ns() < READ_ONCE(armed_until_ns);
}

static const struct sysrq_key *find(u8 letter)
{
	const struct sysrq_key *key;

	for (key = __start_sysrq_keys; key < __stop_sysrq_keys; key++) {
		if (key->letter == letter)
			return key;
	}
	return NULL;
}

/* In order of the letters; the linker's order means nothing. */
static void print_help(void)
{
	for (u8 letter = 'a'; letter <= 'z'; letter++) {
		const struct sysrq_key *key = find(letter);

		if (key)
			printk("sysrq: %c  %s\n", letter, key->help);
	}
}

bool sysrq_byte(u8 byte)
{
	bool was_armed = sysrq_is_armed();
	const struct sysrq_key *key;

	WRITE_ONCE(armed, false);
	if (!was_armed)
		return false;

	key = find(byte);
	if (key) {
		printk("sysrq: %s\n", key->help);
		key->run();
	} else {
		printk("sysrq: no such key; there are:\n");
		print_help();
	}
	return true;
}

bool sysrq_run(u8 letter)
{
	const struct sysrq_key *key = find(letter);
	unsigned long flags;

	if (!key)
		return false;
	printk("sysrq: %s\n", key->help);
	flags = local_irq_save();
	key->run();
	local_irq_restore(flags);
	return true;
}

SYSRQ_KEY(help, 'h', "list the keys", print_help);

/*
 * A real fault, so that the whole path from the trap to the report is taken. No page table maps a
 * non-canonical address, not even the first ones, which have physical memory at 0.
 */
static void crash(void)
{
	volatile int *nowhere = (int *)0xdead000000000000;

	asm volatile("" : "+r"(nowhere));
	*nowhere = 0;
}

SYSRQ_KEY(crash, 'c', "crash on purpose", crash);

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
