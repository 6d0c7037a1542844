// SPDX-License-Identifier: BSD-2-Clause
/* wait_for_answer() keeps the CPU busy until another thread, which sleeps, sets a flag. */
#include "diagnosis.h"

#define NR_QUESTIONS 10

static volatile int nr_asked, nr_answered;

static void *answer_questions(void *unused)
{
	set_name("server");
	while (nr_answered < NR_QUESTIONS) {
		sleep_ms(20);
		nr_answered = nr_asked;
	}
	return unused;
}

static void NOINLINE wait_for_answer(int number)
{
	while (nr_answered < number)
		;
}

int main(void)
{
	pthread_t server = start(answer_questions, NULL);

	for (int i = 1; i <= NR_QUESTIONS; i++) {
		work(10000);
		nr_asked = i;
		wait_for_answer(i);
	}
	pthread_join(server, NULL);
	return 0;
}
