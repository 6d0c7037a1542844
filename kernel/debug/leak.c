// SPDX-License-Identifier: BSD-2-Clause
/*
 * A dead task is freed by the next task on its CPU, and its process when the last reference is
 * dropped. So right after some work, a difference may be temporary, and the checks wait.
 */

#include <lego/leak.h>

#include <lego/account.h>
#include <lego/page.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/smp.h>
#include <lego/string.h>
#include <lego/sysrq.h>
#include <lego/time.h>
#include <lego/vmap.h>

#define MAX_NAPS   300
#define MAX_NAP_NS NSEC_PER_SEC
#define POLL_NS	   (5 * NSEC_PER_MSEC)
#define NR_SAME	   4

DEFINE_PER_CPU(s64[NR_LEAK_KINDS], leak_counters);

#define LEAK_TEXT(name, text) [LEAK_##name] = text,
static const char *const kind_names[] = { LEAK_KINDS(LEAK_TEXT) };

void leak_snapshot(struct leak_counts *counts)
{
	unsigned int cpu;

	profile_free_spare_tables();
	memset(counts, 0, sizeof(*counts));
	for_each_possible_cpu(cpu) {
		for (int kind = 0; kind < NR_LEAK_KINDS; kind++)
			counts->kinds[kind] += READ_ONCE(per_cpu(leak_counters, cpu)[kind]);
	}
	counts->pages = page_nr_total() - page_nr_free() - slab_nr_pages() - vmap_nr_stack_pages();
	counts->stacks = vmap_nr_stacks();
	counts->slab_bytes = slab_bytes_live();
	for (int class = 0; class < SLAB_NR_CLASSES; class ++)
		counts->objects[class] = slab_nr_live(class);
	counts->serial = slab_debug_serial();
}

/* Compares all counts but serial, which always grows. */
static bool are_equal(const struct leak_counts *a, const struct leak_counts *b)
{
	return !memcmp(a, b, offsetof(struct leak_counts, serial));
}

static void print_difference(const char *what, s64 before, s64 now)
{
	if (now != before)
		printk("leaks: %+lld %s (%lld before, %lld now)\n", (long long)(now - before), what,
		       (long long)before, (long long)now);
}

static void print_differences(const struct leak_counts *before, const struct leak_counts *now)
{
	for (int kind = 0; kind < NR_LEAK_KINDS; kind++)
		print_difference(kind_names[kind], before->kinds[kind], now->kinds[kind]);
	print_difference("pages", before->pages, now->pages);
	print_difference("stacks", before->stacks, now->stacks);
	print_difference("bytes of kmalloc", before->slab_bytes, now->slab_bytes);
	for (int class = 0; class < SLAB_NR_CLASSES; class ++) {
		char what[40];

		snprintf(what, sizeof(what), "objects of up to %u bytes", slab_class_size(class));
		print_difference(what, before->objects[class], now->objects[class]);
	}
	slab_debug_print_since(before->serial);
}

/*
 * Waits until every CPU has had a tick, even if a busy host delays one; but not longer than
 * MAX_NAP_NS.
 */
static void leak_sleep(void)
{
	u64 give_up_ns = clock_monotonic_ns() + MAX_NAP_NS;
	u64 before[CONFIG_NR_CPUS];
	unsigned int cpu;

	for_each_online_cpu(cpu)
		before[cpu] = account_nr_ticks(cpu);
	sleep_until_ns(clock_monotonic_ns() + POLL_NS);
	for_each_online_cpu(cpu) {
		while (account_nr_ticks(cpu) == before[cpu] && clock_monotonic_ns() < give_up_ns)
			sleep_until_ns(clock_monotonic_ns() + POLL_NS);
	}
}

void leak_wait_steady(void)
{
	struct leak_counts before, now;
	int nr_same = 0;

	leak_snapshot(&before);
	for (int i = 0; i < MAX_NAPS && nr_same < NR_SAME; i++) {
		leak_sleep();
		leak_snapshot(&now);
		nr_same = are_equal(&before, &now) ? nr_same + 1 : 0;
		before = now;
	}
}

bool leak_check(const struct leak_counts *before)
{
	struct leak_counts now;

	for (int i = 0; i < MAX_NAPS; i++) {
		leak_snapshot(&now);
		if (are_equal(before, &now))
			return true;
		leak_sleep();
	}
	print_differences(before, &now);
	return false;
}

/* Prints the counts, so that a test can compare them before and after some work. */
static void print_counts(void)
{
	struct leak_counts counts;

	leak_snapshot(&counts);
	printk("leaks: pages %lld, stacks %lld, bytes of kmalloc %lld", (long long)counts.pages,
	       (long long)counts.stacks, (long long)counts.slab_bytes);
	for (int kind = 0; kind < NR_LEAK_KINDS; kind++)
		printk(", %s %lld", kind_names[kind], (long long)counts.kinds[kind]);
	printk("\n");
}

SYSRQ_KEY(leaks, 'l', "count what the kernel holds, to find leaks", print_counts);
