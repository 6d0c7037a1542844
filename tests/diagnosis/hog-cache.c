// SPDX-License-Identifier: BSD-2-Clause
/* remember_answer() keeps each answer in a cache that nothing is ever taken from. */
#include "diagnosis.h"

#include <string.h>

#define NR_REQUESTS  20000
#define ANSWER_BYTES 1500

struct entry {
	struct entry *next;
	int request;
	char answer[ANSWER_BYTES];
};

static struct entry *cache[1024];

static void NOINLINE remember_answer(int request, const char *answer)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		die("malloc");
	entry->request = request;
	memcpy(entry->answer, answer, ANSWER_BYTES);
	entry->next = cache[request % 1024];
	cache[request % 1024] = entry;
}

/* Takes memory, too, but gives it back. */
static size_t NOINLINE answer_request(int request)
{
	char *answer = calloc(1, ANSWER_BYTES);
	size_t bytes;

	if (!answer)
		die("calloc");
	snprintf(answer, ANSWER_BYTES, "answer to request %d", request);
	remember_answer(request, answer);
	bytes = strlen(answer);
	free(answer);
	return bytes;
}

int main(void)
{
	size_t nr_bytes = 0;

	for (int i = 0; i < NR_REQUESTS; i++)
		nr_bytes += answer_request(i);
	printf("%zu bytes\n", nr_bytes);
	return 0;
}
