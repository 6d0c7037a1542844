// SPDX-License-Identifier: BSD-2-Clause
/*
 * A session: a program borrows the source of samples while it has /proc/profile/session open, and
 * reads the samples of that time. Writing "hz <n>" begins it. Closing the file ends it and restores
 * the settings, also when the program is killed.
 *
 * A session does not reset the samples, because other readers use them. When it begins, it notes
 * the number of samples of each record in the record. It shows the differences.
 *
 * The only effect on others is the rate: a report says for how long it was another one.
 */

#include "samples.h"

#include "../table.h"
#include "../words.h"

/* The counts of one CPU when the session began. */
struct session_cpu {
	u64 nr_dropped[NR_SAMPLE_DROPS];
};
OS_DEFINE_PER_CPU(struct session_cpu, session_cpus);

/* Changed by the session's program only, while no report is printed. */
static bool is_active;
static u64 generation; /* of the samples when the session began */
static u64 nr_late;    /* source_sums.lost when it began */
static u32 nr_resets;  /* since it began */

static u64 count_late(void)
{
	static struct source_snapshot source;

	source_snapshot(&source);
	return source.all.lost;
}

/* The records are pinned, so nobody else reads or moves their nr_before. */
static void note_counts(struct session_cpu *s, unsigned int cpu)
{
	struct sample_record *rec = NULL;

	memcpy(s->nr_dropped, samples_stats(cpu)->nr_dropped, sizeof(s->nr_dropped));
	while ((rec = (struct sample_record *)samples_next(cpu, rec)))
		rec->nr_before = rec->nr_pinned;
}

static void begin_session(const void *unused)
{
	unsigned int cpu;

	samples_pin();
	generation = samples_generation();
	nr_late = count_late();
	nr_resets = 0;
	os_for_each_cpu(cpu)
		note_counts(&os_per_cpu(session_cpus, cpu), cpu);
	samples_unpin();
	is_active = true;
}

static int parse_hz(const char *text, u64 *hz)
{
	char word[16];

	if (words_next(&text, word, sizeof(word)) <= 0 || strcmp(word, "hz") ||
	    words_next(&text, word, sizeof(word)) <= 0 || os_parse_u64(word, hz) ||
	    *hz > SOURCE_MAX_HZ || words_next(&text, word, sizeof(word)))
		return -OS_EINVAL;
	return 0;
}

int session_write(const char *text)
{
	u64 hz;
	int error = parse_hz(text, &hz) ?: source_borrow(hz);

	if (error)
		return error;
	report_to_text(NULL, &table_text, begin_session, NULL);
	return 0;
}

void session_close(void)
{
	source_give_back();
	is_active = false;
}

static void print_kernel_part(const struct sample_record *rec)
{
	char name[OS_SYMBOL_BYTES];

	for (u32 i = rec->nr_kernel; i--;)
		report_printf("%s%s", report_frame(name, rec->pcs[i], i != 0), i ? ";" : "");
}

static void print_user_part(const struct sample_record *rec)
{
	char name[USER_FRAME_BYTES];

	for (u32 i = rec->nr_user; i--;)
		report_printf("%s%s", sample_user_frame(name, rec, i), i ? ";" : "");
}

/* Prints the reason first if the chain is truncated. */
static void print_reason(const struct sample_record *rec, u32 nr)
{
	if (rec->truncated)
		report_printf("[cut: %s]%s", report_truncation_reasons[rec->truncated],
			      nr ? ";" : "");
}

/*
 * Prints the line of a record: samples, CPU, process, thread and its name; after tabs, the user's
 * part of the chain and the kernel's, outermost function first.
 */
static void print_record(const struct sample_record *rec, unsigned int cpu, u64 nr)
{
	char comm[SAMPLE_COMM_BYTES];
	bool user_is_cut = rec->nr_user || rec->truncated == PROFILE_STACK_TRUNCATED_USER_FRAME ||
			   rec->truncated == PROFILE_STACK_TRUNCATED_USER_MEMORY;

	sample_comm(rec, comm);
	report_printf("%lu %u %u %u %s\t", nr, cpu, rec->pid, rec->tid, comm);
	if (user_is_cut)
		print_reason(rec, rec->nr_user);
	print_user_part(rec);
	report_printf("\t");
	if (!user_is_cut)
		print_reason(rec, rec->nr_kernel);
	print_kernel_part(rec);
	report_printf("\n");
}

static void print_records(unsigned int cpu)
{
	const struct sample_record *rec = NULL;

	while ((rec = samples_next(cpu, rec))) {
		if (rec->nr_pinned > rec->nr_before)
			print_record(rec, cpu, rec->nr_pinned - rec->nr_before);
	}
}

static void print_losses(void)
{
	u64 late = count_late();
	unsigned int cpu;

	if (late > nr_late)
		report_printf("lost %lu late by a whole period\n", late - nr_late);
	for (u32 i = 0; i < NR_SAMPLE_DROPS; i++) {
		u64 nr = 0;

		os_for_each_cpu(cpu)
			nr += samples_stats(cpu)->nr_dropped[i] -
			      os_per_cpu(session_cpus, cpu).nr_dropped[i];
		if (nr)
			report_printf("lost %lu %s\n", nr, report_drop_reasons[i]);
	}
}

/* After a reset, all samples are the session's, and the earlier ones are gone. */
static void forget_counts(void)
{
	unsigned int cpu;

	generation = samples_generation();
	nr_late = 0;
	os_for_each_cpu(cpu) {
		struct session_cpu *s = &os_per_cpu(session_cpus, cpu);

		memset(s->nr_dropped, 0, sizeof(s->nr_dropped));
	}
}

void session_print(const void *unused)
{
	unsigned int cpu;

	if (!is_active)
		return;
	samples_pin();
	if (generation != samples_generation()) {
		forget_counts();
		nr_resets++;
	}
	report_printf("resets %u\n", nr_resets);
	print_losses();
	os_for_each_cpu(cpu)
		print_records(cpu);
	samples_unpin();
}
