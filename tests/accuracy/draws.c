// SPDX-License-Identifier: BSD-2-Clause
/*
 * draws SAMPLES DRAWS SEED <truth: computes how far random samples are from their distribution.
 *
 * Each line of the input is a call chain: its weight, the number of the running function, and the
 * numbers of the other functions in the chain, each once. A draw takes SAMPLES random chains, by
 * their weights. Its distance from the truth is half the sum over all functions of the differences
 * of their shares (total variation distance). For each draw, prints `<distance> <distance>`: for
 * the running functions only, and for all functions in the chains.
 */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_CHAINS    (1 << 18)
#define MAX_FUNCTIONS (1 << 16)
#define MAX_LINKS     (1 << 23)

static double weight[MAX_CHAINS];
static uint32_t first_link[MAX_CHAINS + 1], links[MAX_LINKS], nr_chains, nr_links, nr_functions;
/* Walker's alias method: draws chain i with probability keep[i], else chain other[i]. */
static double keep[MAX_CHAINS];
static uint32_t other[MAX_CHAINS], nr_drawn[MAX_CHAINS], worklist[MAX_CHAINS];
static double own[MAX_FUNCTIONS], inclusive[MAX_FUNCTIONS];
static double drawn_own[MAX_FUNCTIONS], drawn_inclusive[MAX_FUNCTIONS];
static uint64_t state;

static void die(const char *what)
{
	fprintf(stderr, "draws: %s\n", what);
	exit(1);
}

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t x = state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static void read_chains(void)
{
	static char line[1 << 16];
	double sum = 0;

	while (fgets(line, sizeof(line), stdin)) {
		char *at = line, *end;

		if (nr_chains == MAX_CHAINS)
			die("too many chains");
		weight[nr_chains] = strtod(at, &at);
		sum += weight[nr_chains];
		first_link[nr_chains++] = nr_links;
		for (;; at = end) {
			uint32_t function = strtoul(at, &end, 10);

			if (end == at)
				break;
			if (nr_links == MAX_LINKS || function >= MAX_FUNCTIONS)
				die("too many functions");
			links[nr_links++] = function;
			if (function >= nr_functions)
				nr_functions = function + 1;
		}
		if (first_link[nr_chains - 1] == nr_links)
			die("a chain without a function");
	}
	first_link[nr_chains] = nr_links;
	if (!(sum > 0))
		die("no weight");
	for (uint32_t i = 0; i < nr_chains; i++)
		weight[i] /= sum;
}

static void make_alias(void)
{
	uint32_t small = 0, large = nr_chains;

	/* worklist has chains below the average at its front, and the others at its back. */
	for (uint32_t i = 0; i < nr_chains; i++) {
		keep[i] = weight[i] * nr_chains;
		other[i] = i;
		worklist[keep[i] < 1 ? small++ : --large] = i;
	}
	while (small && large < nr_chains) {
		uint32_t poor = worklist[--small], rich = worklist[large];

		other[poor] = rich;
		keep[rich] -= 1 - keep[poor];
		if (keep[rich] < 1) {
			large++;
			worklist[small++] = rich;
		}
	}
	/* The rest would be 1 without rounding errors. */
	while (small)
		keep[worklist[--small]] = 1;
	while (large < nr_chains)
		keep[worklist[large++]] = 1;
}

static void add(double *of_own, double *of_inclusive, uint32_t chain, double share)
{
	of_own[links[first_link[chain]]] += share;
	for (uint32_t i = first_link[chain]; i < first_link[chain + 1]; i++)
		of_inclusive[links[i]] += share;
}

static void draw(uint32_t nr_samples)
{
	double distance = 0, distance_inclusive = 0;

	for (uint32_t i = 0; i < nr_samples; i++) {
		uint64_t random = next_random();
		uint32_t chain = (random >> 32) * nr_chains >> 32;

		nr_drawn[(uint32_t)random * 0x1p-32 < keep[chain] ? chain : other[chain]]++;
	}
	for (uint32_t i = 0; i < nr_chains; i++) {
		if (nr_drawn[i])
			add(drawn_own, drawn_inclusive, i, (double)nr_drawn[i] / nr_samples);
		nr_drawn[i] = 0;
	}
	for (uint32_t i = 0; i < nr_functions; i++) {
		distance += fabs(drawn_own[i] - own[i]) / 2;
		distance_inclusive += fabs(drawn_inclusive[i] - inclusive[i]) / 2;
		drawn_own[i] = drawn_inclusive[i] = 0;
	}
	printf("%.9f %.9f\n", distance, distance_inclusive);
}

int main(int argc, char **argv)
{
	uint32_t nr_samples, nr_draws;

	if (argc != 4)
		die("usage: draws SAMPLES DRAWS SEED <truth");
	nr_samples = strtoul(argv[1], NULL, 0);
	nr_draws = strtoul(argv[2], NULL, 0);
	state = strtoull(argv[3], NULL, 0);
	read_chains();
	for (uint32_t i = 0; i < nr_chains; i++)
		add(own, inclusive, i, weight[i]);
	make_alias();
	while (nr_draws--)
		draw(nr_samples);
	return 0;
}
