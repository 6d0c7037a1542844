// SPDX-License-Identifier: BSD-2-Clause
/* build_index() needs much memory for a short time. It is long gone when the program ends. */
#include "diagnosis.h"

#include <string.h>

#define NR_WORDS 3000000

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int NOINLINE build_index(void)
{
	int *words = malloc(NR_WORDS * sizeof(*words)), median;

	if (!words)
		die("malloc");
	for (int i = 0; i < NR_WORDS; i++)
		words[i] = i;
	qsort(words, 1000, sizeof(*words), compare);
	median = words[NR_WORDS / 2];
	free(words);
	return median;
}

/* The rest of the program: small pieces that are given back. */
static size_t NOINLINE answer_request(int request)
{
	char *answer = malloc(2000);
	size_t bytes;

	if (!answer)
		die("malloc");
	bytes = snprintf(answer, 2000, "answer to request %d", request);
	free(answer);
	return bytes;
}

int main(void)
{
	size_t nr_bytes = build_index();

	for (int i = 0; i < 10000; i++)
		nr_bytes += answer_request(i);
	printf("%zu\n", nr_bytes);
	return 0;
}
