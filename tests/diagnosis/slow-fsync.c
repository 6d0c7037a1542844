// SPDX-License-Identifier: BSD-2-Clause
/* log_event() writes each line of a log to the file, and the file to the disk. */
#include "diagnosis.h"

#define NR_EVENTS 50000

static FILE *log_file;

static void NOINLINE log_event(int number, const char *text)
{
	fprintf(log_file, "%d %s\n", number, text);
	fflush(log_file);
	if (fsync(fileno(log_file)))
		die("fsync");
}

int main(void)
{
	log_file = fopen("/tmp/events", "w");
	if (!log_file)
		die("/tmp/events");
	for (int i = 0; i < NR_EVENTS; i++) {
		work(20);
		log_event(i, "ok");
	}
	fclose(log_file);
	return 0;
}
