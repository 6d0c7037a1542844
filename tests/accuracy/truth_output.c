// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the counts of truth.c as lines of words and numbers, for truth.py. The last line is `end`.
 *
 *   node ID PARENT FUNCTION JUMPED NR SEEN   a function in a chain; JUMPED: 1 if it was jumped to
 *   calls ID NR                              how often this node was called
 *   address ADDR NR SEEN                     an instruction of the kernel
 *   waits ID NR CYCLES SWITCH_CYCLES         waits of threads that were switched out in this node
 *   stretch ID NR                            longest stretch with interrupts off that ended here
 *   sampler FUNCTION NR                      instructions in the sampling interrupt
 *   cpu INDEX BUSY OFF IDLE OFF              instructions of a CPU; OFF: with interrupts off
 *   interrupts INDEX KIND NR INSTRUCTIONS    sampling interrupts, by their work
 *   odd_...                                  must be 0
 */
#include "truth_count.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void clear_counts(void)
{
	for (uint32_t i = 0; i < HASH_SLOTS; i++) {
		for (struct node *node = nodes[i]; node; node = node->next) {
			node->nr = node->nr_seen = node->nr_calls = node->longest_off = 0;
			node->waits = (struct waits){ 0 };
		}
		for (struct run *run = runs[i]; run; run = run->next) {
			run->nr_seen_first = 0;
			memset(run->nr_by_length, 0, (run->nr + 1) * sizeof(uint64_t));
			memset(run->nr_seen_by_length, 0, (run->nr + 1) * sizeof(uint64_t));
		}
	}
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		struct cpu *cpu = &cpus[i];

		cpu->nr_unseen = cpu->nr_stretch = 0;
		memset(cpu->nr, 0, sizeof(cpu->nr));
		memset(cpu->nr_off, 0, sizeof(cpu->nr_off));
		memset(cpu->nr_interrupts, 0, sizeof(cpu->nr_interrupts));
		memset(cpu->nr_instructions, 0, sizeof(cpu->nr_instructions));
	}
	memset(nr_sampler, 0, (nr_functions + 2) * sizeof(*nr_sampler));
	nr_odd_lengths = nr_odd_returns = nr_odd_jumps = 0;
}

static void write_addresses(FILE *file, const struct run *run)
{
	uint64_t nr = 0, nr_seen = 0;

	for (uint32_t i = run->nr; i > 0; i--) {
		nr += run->nr_by_length[i];
		nr_seen += run->nr_seen_by_length[i];
		if (i == 1)
			nr_seen += run->nr_seen_first;
		if (nr || nr_seen)
			fprintf(file, "address %" PRIx64 " %" PRIu64 " %" PRIu64 "\n",
				run->addrs[i - 1], nr, nr_seen);
	}
}

static void write_cpu(FILE *file, uint32_t index, const struct cpu *cpu)
{
	static const char *const kinds[NR_SAMPLINGS] = { "only", "work", "none" };

	fprintf(file, "cpu %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", index, cpu->nr[0],
		cpu->nr_off[0], cpu->nr[1], cpu->nr_off[1]);
	for (int i = 0; i < NR_SAMPLINGS; i++)
		fprintf(file, "interrupts %u %s %" PRIu64 " %" PRIu64 "\n", index, kinds[i],
			cpu->nr_interrupts[i], cpu->nr_instructions[i]);
}

void write_counts(void)
{
	FILE *file = fopen(args.out, "w");

	if (!file)
		die("cannot write the counts");
	for (uint32_t i = 0; i < HASH_SLOTS; i++) {
		for (const struct node *node = nodes[i]; node; node = node->next) {
			fprintf(file, "node %u %u %d %d %" PRIu64 " %" PRIu64 "\n", node->id,
				node->parent->id, node->function, node->is_jumped_to, node->nr,
				node->nr_seen);
			if (node->nr_calls)
				fprintf(file, "calls %u %" PRIu64 "\n", node->id, node->nr_calls);
			if (node->longest_off)
				fprintf(file, "stretch %u %" PRIu64 "\n", node->id,
					node->longest_off);
			if (node->waits.nr)
				fprintf(file, "waits %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
					node->id, node->waits.nr, node->waits.cycles,
					node->waits.switch_cycles);
		}
		for (const struct run *run = runs[i]; run; run = run->next) {
			if (run->function != user_function)
				write_addresses(file, run);
		}
	}
	for (int i = 0; i < nr_functions + 2; i++) {
		if (nr_sampler[i])
			fprintf(file, "sampler %d %" PRIu64 "\n", i, nr_sampler[i]);
	}
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (cpus[i].running)
			write_cpu(file, i, &cpus[i]);
	}
	fprintf(file, "odd_lengths %" PRIu64 "\nodd_returns %" PRIu64 "\nodd_jumps %" PRIu64 "\n",
		nr_odd_lengths, nr_odd_returns, nr_odd_jumps);
	fprintf(file, "end\n");
	if (fclose(file))
		die("cannot write the counts");
}
