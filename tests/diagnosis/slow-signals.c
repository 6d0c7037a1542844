// SPDX-License-Identifier: BSD-2-Clause
/* tell_progress() sends a signal for each line of work, and the handler only counts them. */
#include "diagnosis.h"

#include <signal.h>

#define NR_LINES 50000

static volatile sig_atomic_t nr_done;

static void count_line(int signal)
{
	nr_done++;
}

static void NOINLINE tell_progress(void)
{
	if (kill(getpid(), SIGUSR1))
		die("kill");
}

int main(void)
{
	struct sigaction action = { .sa_handler = count_line };

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < NR_LINES; i++) {
		work(20);
		tell_progress();
	}
	return nr_done != NR_LINES;
}
