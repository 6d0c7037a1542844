// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads all of /proc/profile/stacks from full stores, in little memory. Reports must not fill the
 * stores.
 */
#include <lego/selftest.h>

#include <lego/errno.h>
#include <lego/page.h>

#include "../../kernel/profile/table.h"
#include "full_stores.h"

#include <asm/irqflags.h>

#if defined(CONFIG_PROFILE_HEATMAP) && defined(CONFIG_PROFILE_CALLCHAIN)
#define STACKS	    "/proc/profile/stacks"
#define NR_CHARS    4001 /* of a read */
#define SLACK_PAGES 64	 /* allowed for other allocations */

static char buf[NR_CHARS];

struct sums {
	u64 nr_samples, nr_stacks, nr_chars;
	u64 number; /* the number at the end of the current line, so far */
};

static void add_text(struct sums *sums, const char *text, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		if (text[i] == '\n') {
			sums->nr_samples += sums->number;
			sums->nr_stacks++;
		}
		if (text[i] >= '0' && text[i] <= '9')
			sums->number = 10 * sums->number + text[i] - '0';
		else
			sums->number = 0;
	}
	sums->nr_chars += n;
}

static struct sample_stats sum_of_stats(void)
{
	struct sample_stats sum = { 0 };
	unsigned int cpu;

	samples_pin();
	for_each_online_cpu(cpu) {
		const struct sample_stats *stats = samples_stats(cpu);

		sum.nr_stored += stats->nr_stored;
		sum.nr_records += stats->nr_records;
		sum.log_bytes += stats->log_bytes;
	}
	samples_unpin();
	return sum;
}

static ssize_t read_at(struct file *file, void *to, size_t n, u64 pos)
{
	return file->ops->read(file, to, n, pos);
}

/* Returns how many pages were allocated since nr_free pages were free. */
static u64 pages_since(u64 nr_free)
{
	u64 now = page_nr_free();

	return now < nr_free ? nr_free - now : 0;
}

SELFTEST(stacks, full_stores_are_read_to_the_end)
{
	struct source_settings saved;
	struct sample_stats stats;
	struct sums sums = { 0 };
	u64 nr_free, most_pages = 0;
	struct file *file;
	ssize_t n;

	start_empty(&saved);
	fill_stores(READ_ONCE(cpu_online_mask));
	stats = sum_of_stats();
	nr_free = page_nr_free();
	file = file_open(STACKS, O_RDONLY, 0);
	ASSERT(!IS_ERR(file));
	n = read_at(file, buf, NR_CHARS, 0);
	while (n > 0) {
		most_pages = max(most_pages, pages_since(nr_free));
		add_text(&sums, buf, n);
		n = read_at(file, buf, NR_CHARS, sums.nr_chars);
	}
	EXPECT_EQ(n, 0);
	EXPECT_EQ(sums.nr_samples, stats.nr_stored);
	EXPECT(stats.nr_records > 5000 && sums.nr_stacks <= stats.nr_records);
	/* The reader copies the records, and frees them as they are read. */
	EXPECT(most_pages > SLACK_PAGES);
	EXPECT(most_pages <= stats.log_bytes / PAGE_SIZE * 17 / 16 + SLACK_PAGES);
	EXPECT(pages_since(nr_free) <= SLACK_PAGES);
	/* A read from the start copies again. A position whose records are freed cannot be read. */
	EXPECT_EQ(read_at(file, buf, NR_CHARS, 10), -EINVAL);
	EXPECT_EQ(read_at(file, buf, NR_CHARS, 0), NR_CHARS);
	EXPECT_EQ(pages_since(nr_free) > SLACK_PAGES, true);
	file_put(file);
	EXPECT(pages_since(nr_free) <= SLACK_PAGES);
	source_apply(&saved);
	profile_reset();
}

#define NR_ALIKE 1000 /* less than half of a log of 256 KiB, so no CPU waits for the worker */

/* Takes samples with the same callers and different instruction pointers. */
static void take_alike(u32 depth)
{
	u64 stack[2 * FULL_DEPTH] = { 0 }, place = (u64)vprintk;
	struct pt_regs regs = { .cs = KERNEL_CS, .rsp = (u64)stack, .rbp = (u64)stack };
	unsigned long flags = local_irq_save();

	for (u32 i = 0; i < depth - 1; i++) {
		stack[2 * i] = i + 2 < depth ? (u64)&stack[2 * i + 2] : 0;
		stack[2 * i + 1] = place + i;
	}
	for (u32 i = 0; i < NR_ALIKE; i++) {
		regs.rip = place + 3 * i;
		sample_take(&regs, os_cycles(), 0);
	}
	local_irq_restore(flags);
}

/*
 * The hash rotates a chain's addresses by their depth. At any depth, the samples must spread over
 * the store.
 */
SELFTEST(stacks, chains_of_all_depths_fit)
{
	struct source_settings saved;

	for (u32 depth = 2; depth <= FULL_DEPTH; depth++) {
		start_empty(&saved);
		take_alike(depth);
		EXPECT_EQ(sum_of_stats().nr_records, NR_ALIKE);
		source_apply(&saved);
	}
	profile_reset();
}

static void print_tables(const void *report)
{
	report_print_tables(report);
}

static void make_report(void)
{
	const struct report report = { .top = 4, .wide = true };
	struct text text = { 0 };

	report_to_text(&text, &table_text, print_tables, &report);
	text_free(&text);
}

static bool is_in_tables(const struct sample_record *rec)
{
	for (u32 i = 0; i < rec->nr_kernel; i++) {
		u64 start;

		if (os_symbol_lookup(rec->pcs[i] - (i != 0), &start, NULL, 0) &&
		    start == (u64)report_print_tables)
			return true;
	}
	return false;
}

/*
 * Counts this thread's samples in reports, which have a truncated chain, and records with a chain
 * of report functions, of which there must be none.
 */
static void count_in_reports(u64 *nr_samples, u32 *nr_chains)
{
	unsigned int cpu;

	*nr_samples = *nr_chains = 0;
	samples_pin();
	for_each_online_cpu(cpu) {
		const struct sample_record *rec = NULL;

		while ((rec = samples_next(cpu, rec))) {
			if (rec->tid != os_task_tid(os_current_task()) || rec->class != HEAT_KERNEL)
				continue;
			if (rec->truncated == PROFILE_STACK_TRUNCATED_REPORT)
				*nr_samples += rec->nr_pinned;
			else if (is_in_tables(rec))
				++*nr_chains;
		}
	}
	samples_unpin();
}

SELFTEST(stacks, reports_do_not_fill_the_store)
{
	struct source_settings saved, fast;
	u64 nr_samples = 0;
	u32 nr_chains = 0;

	source_settings(&saved);
	fast = saved;
	fast.hz = 20000;
	fast.on = true;
	source_apply(&fast);
	for (u32 i = 0; i < 5000 && nr_samples < 20; i++) {
		make_report();
		count_in_reports(&nr_samples, &nr_chains);
	}
	EXPECT(nr_samples >= 20);
	EXPECT_EQ(nr_chains, 0);
	source_apply(&saved);
	profile_reset();
}
#endif
