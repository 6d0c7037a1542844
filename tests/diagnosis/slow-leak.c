// SPDX-License-Identifier: BSD-2-Clause
/* handle_request() forgets to free the answer that it makes. */
#include "diagnosis.h"

#include <string.h>

#define NR_REQUESTS 30000

static size_t nr_bytes;

static char NOINLINE *make_answer(int request)
{
	char *answer = malloc(4000);

	if (!answer)
		die("malloc");
	sprintf(answer, "answer to request %d", request);
	return answer;
}

static void NOINLINE handle_request(int request)
{
	char *answer = make_answer(request);

	nr_bytes += strlen(answer);
}

int main(void)
{
	for (int i = 0; i < NR_REQUESTS; i++)
		handle_request(i);
	printf("%zu bytes\n", nr_bytes);
	return 0;
}
