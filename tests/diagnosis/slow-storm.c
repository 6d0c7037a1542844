// SPDX-License-Identifier: BSD-2-Clause
/* main() sets a timer for a heartbeat, but in the wrong unit: signals interrupt the work. */
#include "diagnosis.h"

#include <signal.h>
#include <sys/time.h>

#define HEARTBEAT_MS 4
#define NR_ITEMS     400

static volatile sig_atomic_t nr_beats;

static void beat(int signal)
{
	nr_beats++;
}

int main(void)
{
	struct itimerval interval = { .it_interval.tv_usec = HEARTBEAT_MS,
				      .it_value.tv_usec = HEARTBEAT_MS };
	struct sigaction action = { .sa_handler = beat, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
	for (int i = 0; i < NR_ITEMS; i++)
		work(20000);
	return 0;
}
