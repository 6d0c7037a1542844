// SPDX-License-Identifier: BSD-2-Clause
/* wait_for_mail() looks every 10 us whether the other thread, which takes 200 ms, is ready. */
#include "diagnosis.h"

static volatile int has_mail;

static void *send_mail(void *unused)
{
	set_name("sender");
	sleep_ms(200);
	has_mail = 1;
	return unused;
}

static void NOINLINE wait_for_mail(void)
{
	while (!has_mail)
		usleep(10);
}

int main(void)
{
	pthread_t sender = start(send_mail, NULL);

	wait_for_mail();
	pthread_join(sender, NULL);
	return 0;
}
